import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Properties;

import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Loads copies of partitions as a starting broker does. Each line of stdin is a directory; the answer to it is a line
 *
 *   START END SAME, after a clean stop, and the same after an unclean one with everything to be recovered
 *
 * The copies stay in the folder for temporary files. Instead of START and END there may be FAILED and the exception. SAME is true if no .log has other bytes then, is gone or new.
 */
public final class Load {
    private static final KafkaScheduler SCHEDULER = new KafkaScheduler(1);

    public static void main(String[] args) throws Exception {
        SCHEDULER.startup();
        LogConfig config = new LogConfig(new Properties());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Path dir = Path.of(line);
            System.out.println(load(dir, true, config) + " " + load(dir, false, config));
        }
        Runtime.getRuntime().halt(0);
    }

    private static String load(Path source, boolean clean, LogConfig config) throws IOException {
        Path scratch = Files.createTempDirectory("load");
        Path dir = Files.createDirectory(scratch.resolve(source.getFileName().toString()));
        try {
            for (Path file : list(source)) Files.copy(file, dir.resolve(file.getFileName()));
            UnifiedLog log = UnifiedLog.create(dir.toFile(), config, 0, 0, SCHEDULER, new BrokerTopicStats(), Time.SYSTEM, 900000,
                new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600000, new LogDirFailureChannel(8), clean, Optional.empty());
            String answer = log.logStartOffset() + " " + log.logEndOffset();
            log.close();
            return answer + " " + same(source, dir);
        } catch (Exception e) {
            return "FAILED " + e.getClass().getSimpleName() + " -";
        }
    }

    private static boolean same(Path before, Path after) throws IOException {
        List<Path> logs = list(before).stream().filter(f -> f.toString().endsWith(".log")).toList();
        for (Path log : logs) {
            Path now = after.resolve(log.getFileName());
            if (!Files.exists(now) || Files.mismatch(log, now) >= 0) return false;
        }
        return list(after).stream().filter(f -> f.toString().endsWith(".log")).count() == logs.size();
    }

    private static List<Path> list(Path dir) throws IOException {
        try (var files = Files.list(dir)) {
            return files.filter(Files::isRegularFile).sorted().toList();
        }
    }
}
