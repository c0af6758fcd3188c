import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.stream.Stream;

import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Kafka's log cleaner over copies of partitions. Each line of stdin is a task, its fields separated by tabs: the
 * partition, the cleaner's checkpoint or -1, the time in ms, the bytes of the offset map, where the cleaned copy stays or -,
 * and topic configs KEY=VALUE. A line of JSON answers it. With the argument "time" a round's milliseconds are printed too.
 */
public final class Clean {
    private static KafkaScheduler scheduler;

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        scheduler = new KafkaScheduler(1);
        scheduler.startup();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            out.println(task(line.split("\t"), args.length > 0));
            out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static String task(String[] f, boolean timed) throws Exception {
        Path scratch = f[4].equals("-") ? Files.createTempDirectory("kseg-clean") : Path.of(f[4]);
        Path dir = scratch.resolve(Path.of(f[0]).getFileName().toString());
        StringBuilder b = new StringBuilder("{");
        try {
            copy(Path.of(f[0]), dir);
            round(f, dir, b, timed);
        } catch (Throwable e) {
            Throwable cause = e instanceof java.lang.reflect.InvocationTargetException ? e.getCause() : e;
            b.append("\"error\":\"").append(cause.getClass().getSimpleName()).append("\",");
            if (System.getenv("KSEG_ORACLE_TRACE") != null) cause.printStackTrace();
        }
        b.append("\"after\":[");
        String sep = "";
        for (Path p : list(dir)) {
            String name = p.getFileName().toString();
            if (name.matches("\\d{20}\\.(log|index|timeindex|txnindex)")) {
                b.append(sep).append("{\"name\":\"").append(name).append("\",\"size\":").append(Files.size(p)).append('}');
                sep = ",";
            }
        }
        if (f[4].equals("-")) remove(scratch.toFile());
        else for (Path p : list(dir)) if (p.toString().endsWith(".deleted")) Files.delete(p);
        return b.append("]}").toString();
    }

    private static void round(String[] f, Path dir, StringBuilder b, boolean timed) throws Exception {
        long cleaned = Long.parseLong(f[1]), now = Long.parseLong(f[2]);
        Properties p = new Properties();
        p.put("cleanup.policy", "compact");
        long watermark = -1;
        for (int i = 5; i < f.length; i++) {
            String[] kv = f[i].split("=", 2);
            if (kv[0].equals("high.watermark")) watermark = Long.parseLong(kv[1]);
            else p.put(kv[0], kv[1]);
        }
        UnifiedLog log = UnifiedLog.create(dir.toFile(), new LogConfig(p), 0, 0, scheduler, new BrokerTopicStats(), Time.SYSTEM, 900000,
            new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600000, new LogDirFailureChannel(4), true, Optional.empty());
        try {
            log.updateHighWatermark(watermark < 0 ? log.logEndOffset() : watermark);
            var method = LogCleanerManager.class.getDeclaredMethod("cleanableOffsets", UnifiedLog.class, Optional.class, long.class);
            method.setAccessible(true);
            Object range = method.invoke(null, log, cleaned < 0 ? Optional.empty() : Optional.of(cleaned), now);
            LogToClean todo = new LogToClean(log, number(range, "firstDirtyOffset"), number(range, "firstUncleanableDirtyOffset"), false);
            var delay = LogCleanerManager.class.getDeclaredMethod("maxCompactionDelay", UnifiedLog.class, long.class, long.class);
            delay.setAccessible(true);
            field(b, "first_dirty", number(range, "firstDirtyOffset"));
            field(b, "first_uncleanable", number(range, "firstUncleanableDirtyOffset"));
            field(b, "last_stable", log.lastStableOffset());
            field(b, "clean_bytes", todo.cleanBytes());
            field(b, "cleanable_bytes", todo.cleanableBytes());
            field(b, "forced", ((Long) delay.invoke(null, log, number(range, "firstDirtyOffset"), now)) > 0 ? 1 : 0);
            b.append("\"ratio\":\"").append(todo.cleanableRatio()).append("\",");
            if (todo.cleanableBytes() == 0) return;
            Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(Integer.parseInt(f[3])), 1 << 20, 1 << 24, 0.9,
                new Throttler(Double.MAX_VALUE, 300, "kseg", "entries", Time.SYSTEM), Time.SYSTEM, tp -> { });
            long begin = System.nanoTime();
            var result = cleaner.doClean(todo, now);
            if (timed) field(b, "ms", (System.nanoTime() - begin) / 1000000);
            field(b, "keys", cleaner.offsetMap().size());
            field(b, "cleaned_to", result.getKey());
            for (String name : List.of("messagesRead", "messagesWritten", "bytesRead", "bytesWritten")) field(b, name, number(result.getValue(), name));
        } finally {
            log.close();
        }
    }

    private static void field(StringBuilder b, String name, long value) {
        b.append('"').append(name).append("\":").append(value).append(',');
    }

    private static long number(Object o, String name) throws Exception {
        try {
            var m = o.getClass().getDeclaredMethod(name);
            m.setAccessible(true);
            return ((Number) m.invoke(o)).longValue();
        } catch (NoSuchMethodException e) {
            var f = o.getClass().getDeclaredField(name);
            f.setAccessible(true);
            return f.getLong(o);
        }
    }

    /** The files of a directory. A broker's scheduler may be making and removing others meanwhile. */
    private static List<Path> list(Path dir) {
        File[] files = dir.toFile().listFiles(File::isFile);
        return files == null ? List.of() : Stream.of(files).map(File::toPath).sorted().toList();
    }

    private static void copy(Path from, Path to) throws Exception {
        Files.createDirectories(to);
        for (Path p : list(from)) Files.copy(p, to.resolve(p.getFileName()), StandardCopyOption.COPY_ATTRIBUTES);
    }

    private static void remove(File dir) {
        File[] files = dir.listFiles();
        if (files != null) for (File f : files) remove(f);
        dir.delete();
    }
}
