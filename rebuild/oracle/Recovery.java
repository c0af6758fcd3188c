import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Properties;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogSegments;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * What Kafka's own recovery makes of partitions; it works on copies of them.
 *
 *   Recovery segments INTERVAL EXPIRATION DIR...   each segment by itself: a line DIR BASE KEPT INDEX TIMEINDEX TXNINDEX, or DIR BASE EXCEPTION
 *   Recovery load     INTERVAL EXPIRATION DIR...   all of a partition after an unclean stop: a line DIR OFFSET SNAPSHOT for each snapshot then
 *   Recovery time     INTERVAL EXPIRATION DIR      how long recovery of the first segment takes: a line like 1234us
 *
 * Files are in hexadecimal digits, "-" if there is none and "." if it is empty; of DIR only the last two names are printed.
 */
public final class Recovery {
    private static final TopicPartition NAME = new TopicPartition("recovery", 0);
    private static final KafkaScheduler SCHEDULER = new KafkaScheduler(1);

    public static void main(String[] args) throws Exception {
        SCHEDULER.startup();
        int expiration = Integer.parseInt(args[2]);
        Properties settings = new Properties();
        settings.put("index.interval.bytes", args[1]);
        LogConfig config = new LogConfig(settings);
        for (int i = 3; i < args.length; i++) {
            Path dir = Path.of(args[i]);
            String label = dir.getParent().getFileName() + "/" + dir.getFileName();
            if (args[0].equals("load")) {
                load(dir, label, config, expiration);
                continue;
            }
            if (args[0].equals("time")) {
                time(dir, config, expiration);
                continue;
            }
            for (long base : bases(dir)) System.out.println(label + " " + base + " " + recover(dir, base, config, expiration));
        }
        Runtime.getRuntime().halt(0);
    }

    private static String recover(Path source, long base, LogConfig config, int expiration) throws IOException {
        Path dir = copy(source);
        try {
            ProducerStateManager producers = producers(dir, expiration);
            LogSegments segments = new LogSegments(NAME);
            for (long b : bases(dir)) segments.add(LogSegment.open(dir.toFile(), b, config, Time.SYSTEM, true, 0, false, ""));
            UnifiedLog.rebuildProducerState(producers, segments, 0, base, Time.SYSTEM, false, "");
            Files.deleteIfExists(dir.resolve("leader-epoch-checkpoint"));
            segments.get(base).get().recover(producers, epochs(dir));
            segments.close();
            String stem = LogFileUtils.filenamePrefixFromOffset(base);
            return Files.size(dir.resolve(stem + ".log")) + " " + hex(dir.resolve(stem + ".index")) + " "
                + hex(dir.resolve(stem + ".timeindex")) + " " + hex(dir.resolve(stem + ".txnindex"));
        } catch (Exception e) {
            return e.getClass().getSimpleName();
        } finally {
            remove(dir);
        }
    }

    private static void load(Path source, String label, LogConfig config, int expiration) throws Exception {
        Path dir = copy(source);
        try {
            UnifiedLog log = UnifiedLog.create(dir.toFile(), config, 0, 0, SCHEDULER, new BrokerTopicStats(), Time.SYSTEM, 900000,
                new ProducerStateManagerConfig(expiration, false), 600000, new LogDirFailureChannel(8), false, Optional.empty());
            log.close();
            for (Path file : list(dir)) {
                String name = file.getFileName().toString();
                if (name.endsWith(".snapshot")) System.out.println(label + " " + Long.parseLong(name.substring(0, 20)) + " " + hex(file));
            }
        } finally {
            remove(dir);
        }
    }

    private static void time(Path source, LogConfig config, int expiration) throws IOException {
        Path dir = copy(source);
        try {
            ProducerStateManager producers = producers(dir, expiration);
            LeaderEpochFileCache epochs = epochs(dir);
            LogSegment segment = LogSegment.open(dir.toFile(), bases(dir).get(0), config, Time.SYSTEM, true, 0, false, "");
            long start = System.nanoTime();
            segment.recover(producers, epochs);
            System.out.println((System.nanoTime() - start) / 1000 + "us");
            segment.close();
        } finally {
            remove(dir);
        }
    }

    private static LeaderEpochFileCache epochs(Path dir) throws IOException {
        return new LeaderEpochFileCache(NAME,
            new LeaderEpochCheckpointFile(LeaderEpochCheckpointFile.newFile(dir.toFile()), new LogDirFailureChannel(1)), SCHEDULER);
    }

    private static ProducerStateManager producers(Path dir, int expiration) throws IOException {
        return new ProducerStateManager(NAME, dir.toFile(), 900000, new ProducerStateManagerConfig(expiration, false), Time.SYSTEM);
    }

    private static List<Long> bases(Path dir) throws IOException {
        List<Long> bases = new ArrayList<>();
        for (Path file : list(dir)) {
            String name = file.getFileName().toString();
            if (name.matches("\\d{20}\\.log")) bases.add(Long.parseLong(name.substring(0, 20)));
        }
        return bases;
    }

    private static List<Path> list(Path dir) throws IOException {
        try (var files = Files.list(dir)) {
            return files.filter(Files::isRegularFile).sorted().toList();
        }
    }

    /** A copy of the files of a folder, in a folder named as a partition. */
    private static Path copy(Path source) throws IOException {
        Path dir = Files.createDirectory(Files.createTempDirectory("recovery").resolve(NAME.toString()));
        for (Path file : list(source)) {
            Path to = dir.resolve(file.getFileName());
            Files.copy(file, to);
            to.toFile().setWritable(true);
        }
        return dir;
    }

    private static void remove(Path dir) throws IOException {
        try (var files = Files.walk(dir.getParent())) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) Files.delete(file);
        }
    }

    private static String hex(Path file) throws IOException {
        if (!Files.exists(file)) return "-";
        byte[] data = Files.readAllBytes(file);
        return data.length == 0 ? "." : HexFormat.of().formatHex(data);
    }
}
