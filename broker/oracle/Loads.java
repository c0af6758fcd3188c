import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32;

import org.apache.kafka.common.errors.KafkaStorageException;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Loads partitions as a starting broker does, in place, one for each line of stdin:
 * <pre>
 * DIR clean|unclean RECOVERYPOINT LOGSTART INTERVAL INDEXBYTES [PREALLOCATE SEGMENTBYTES]
 * </pre>
 * and prints a line "loaded START END SEGMENTS" or "offline|stops EXCEPTION", then a line "NAME BYTES CRC32" for each file that is
 * there afterwards, and an empty line.
 */
public final class Loads {
    /** Runs at once what is due at once, and never what comes later. */
    private static final class Now implements Scheduler {
        private static final ScheduledExecutorService later = Executors.newScheduledThreadPool(1);

        @Override public void startup() { }
        @Override public void shutdown() { }
        @Override public void resizeThreadPool(int size) { }
        @Override public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (delayMs == 0 && periodMs < 0) task.run();
            return later.schedule(() -> { }, 365, TimeUnit.DAYS);
        }
    }

    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            StringBuilder out = new StringBuilder();
            File dir = new File(words[0]);
            UnifiedLog log = load(dir, words, out);
            var names = new TreeSet<String>();
            for (File f : dir.listFiles()) if (f.isFile()) names.add(f.getName());
            for (String name : names) {
                byte[] content = Files.readAllBytes(Path.of(words[0], name));
                CRC32 crc = new CRC32();
                crc.update(content);
                out.append(name).append(' ').append(content.length).append(' ').append(crc.getValue()).append('\n');
            }
            System.out.println(out);
            if (log != null) log.close(); // which changes the files
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static UnifiedLog load(File dir, String[] words, StringBuilder out) {
        Properties config = new Properties();
        config.put("index.interval.bytes", words[4]);
        config.put("segment.index.bytes", words[5]);
        if (words.length > 6) {
            config.put("preallocate", words[6]);
            config.put("segment.bytes", words[7]);
        }
        try {
            UnifiedLog log = UnifiedLog.create(dir, new LogConfig(config), Long.parseLong(words[3]), Long.parseLong(words[2]), new Now(),
                new BrokerTopicStats(), Time.SYSTEM, 900_000, new ProducerStateManagerConfig(86_400_000, false), 600_000,
                new LogDirFailureChannel(8), words[1].equals("clean"), Optional.empty());
            out.append("loaded ").append(log.logStartOffset()).append(' ').append(log.logEndOffset()).append(' ')
                .append(log.numberOfSegments()).append('\n');
            return log;
        } catch (Throwable t) {
            boolean offline = t instanceof IOException || t instanceof KafkaStorageException && t.getCause() instanceof IOException;
            out.append(offline ? "offline " : "stops ").append(t.toString().replace('\n', ' '))
                .append(t.getCause() == null ? "" : " | " + t.getCause().toString().replace('\n', ' ')).append('\n');
            return null;
        }
    }
}
