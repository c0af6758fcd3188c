import java.io.File;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Optional;
import java.util.Properties;

import org.apache.kafka.common.message.DescribeProducersResponseData.ProducerState;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Says what a broker knows of the producers of partitions when it has loaded them. Each line of the file that is the first
 * argument names one: directory, "clean" or "unclean", log start offset, high watermark (-1: the log end), recovery point. The directories
 * are worked on, and no producer is forgotten for its age. For each there is a line "log START END STABLE" and a line "producer ID EPOCH SEQUENCE TIMESTAMP COORDINATOR
 * FIRST" for each producer by its id; or one line "fails EXCEPTION".
 */
public final class Producers {
    /** A clock that stands still long before any record, so that no producer is too old. */
    private static final Time EARLY = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
        (proxy, method, arguments) -> method.getName().equals("milliseconds") ? 0L : method.invoke(Time.SYSTEM, arguments));

    public static void main(String[] args) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            String[] f = line.split("\t");
            try {
                print(new File(f[0]), f[1].equals("clean"), Long.parseLong(f[2]), Long.parseLong(f[3]), Long.parseLong(f[4]), scheduler);
            } catch (Throwable e) {
                System.out.println("fails " + e.getClass().getSimpleName());
            }
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void print(File dir, boolean clean, long start, long watermark, long recoveryPoint, KafkaScheduler scheduler) throws Exception {
        UnifiedLog log = UnifiedLog.create(dir, new LogConfig(new Properties()), start, recoveryPoint, scheduler, new BrokerTopicStats(), EARLY,
            900_000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600_000, new LogDirFailureChannel(8), clean, Optional.empty());
        log.updateHighWatermark(watermark < 0 ? log.logEndOffset() : watermark);
        System.out.println("log " + log.logStartOffset() + " " + log.logEndOffset() + " " + log.lastStableOffset());
        var producers = new ArrayList<>(log.activeProducers());
        producers.sort(Comparator.comparingLong(ProducerState::producerId));
        for (ProducerState p : producers) {
            System.out.println("producer " + p.producerId() + " " + p.producerEpoch() + " " + p.lastSequence() + " " + p.lastTimestamp()
                + " " + p.coordinatorEpoch() + " " + p.currentTxnStartOffset());
        }
        log.close();
    }
}
