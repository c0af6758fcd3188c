import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Path;
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
 * Cuts partitions off as a follower does that its leader tells to. Each line of stdin is a directory, a tab and an offset; the
 * answer to it is the log's end after that. Segments that are cut off whole stay as .deleted files.
 */
public final class Truncate {
    public static void main(String[] args) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        Properties properties = new Properties();
        properties.put("file.delete.delay.ms", "100000000");
        properties.put("segment.index.bytes", "2000");
        LogConfig config = new LogConfig(properties);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t");
            UnifiedLog log = UnifiedLog.create(Path.of(fields[0]).toFile(), config, 0, 0, scheduler, new BrokerTopicStats(), Time.SYSTEM,
                900000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600000, new LogDirFailureChannel(8), true, Optional.empty());
            log.truncateTo(Long.parseLong(fields[1]));
            System.out.println(log.logEndOffset());
            log.close();
        }
        Runtime.getRuntime().halt(0);
    }
}
