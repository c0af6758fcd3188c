import java.io.File;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidTxnStateException;
import org.apache.kafka.common.errors.KafkaStorageException;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.properties.MetaProperties;
import org.apache.kafka.metadata.properties.PropertiesUtils;
import org.apache.kafka.raft.FileQuorumStateStore;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.TimeIndex;

/**
 * Asks Kafka's own readers what they make of files: Answers KIND DIR prints a line for each file of DIR, by name.
 * KIND is offsets, epochs, partmeta, props, meta or quorum (small text files), index or timeindex (base offset 100; NAME.q
 * holds the keys to look up), or producers (a log with base offset 0).
 */
public final class Answers {
    private static final Set<String> KNOWN = Set.of("IOException", "NumberFormatException", "IllegalArgumentException",
        "IllegalStateException", "NullPointerException", "OutOfMemoryError", "RuntimeException");
    private static final KafkaScheduler SCHEDULER = new KafkaScheduler(1);

    public static void main(String[] args) throws Exception {
        SCHEDULER.startup();
        Path dir = Files.createTempDirectory("answers");
        List<Path> files = new ArrayList<>();
        try (var list = Files.list(Path.of(args[1]))) {
            list.filter(f -> !f.toString().endsWith(".q")).sorted().forEach(files::add);
        }
        StringBuilder out = new StringBuilder();
        for (Path file : files) {
            String answer;
            try {
                answer = answer(args[0], file, Files.createTempDirectory(dir, "p"));
            } catch (Throwable t) {
                answer = "throws " + thrown(t);
            }
            out.append(answer).append('\n');
        }
        System.out.print(out);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static String answer(String kind, Path file, Path dir) throws Exception {
        switch (kind) {
            case "offsets":
                Map<String, String> offsets = new TreeMap<>();
                new OffsetCheckpointFile(copy(file, dir, "checkpoint"), new LogDirFailureChannel(5)).read()
                    .forEach((k, v) -> offsets.put(escape(k.toString()), v.toString()));
                return "ok " + offsets;
            case "epochs":
                StringBuilder epochs = new StringBuilder("ok ");
                epochCache(copy(file, dir, "leader-epoch-checkpoint")).epochEntries()
                    .forEach(e -> epochs.append(e.epoch()).append(':').append(e.startOffset()).append(','));
                return epochs.toString();
            case "partmeta":
                var metadata = new PartitionMetadataFile(copy(file, dir, "partition.metadata"), new LogDirFailureChannel(5)).read();
                return "ok " + metadata.version() + " " + metadata.topicId();
            case "props":
                Properties properties = new Properties();
                try (InputStream in = Files.newInputStream(file)) {
                    properties.load(in);
                }
                Map<String, String> sorted = new TreeMap<>();
                properties.stringPropertyNames().forEach(k -> sorted.put(escape(k), escape(properties.getProperty(k))));
                return "ok " + sorted;
            case "meta":
                return "ok " + escape(new MetaProperties.Builder(PropertiesUtils.readPropertiesFile(file.toString())).build().toString());
            case "quorum":
                new FileQuorumStateStore(file.toFile()).readElectionState();
                return "ok ";
            case "producers":
                return producers(copy(file, dir, "00000000000000000000.log").getParentFile());
            default:
                return lookups(kind, file);
        }
    }

    private static String lookups(String kind, Path file) throws Exception {
        List<String> found = new ArrayList<>();
        OffsetIndex offsets = kind.equals("index") ? new OffsetIndex(file.toFile(), 100, 10485760, false) : null;
        TimeIndex times = kind.equals("index") ? null : new TimeIndex(file.toFile(), 100, 10485760, false);
        for (String key : Files.readString(Path.of(file + ".q")).trim().split(" ")) {
            if (offsets != null) {
                var entry = offsets.lookup(Long.parseLong(key));
                found.add(entry.offset() + "@" + entry.position());
            } else {
                var entry = times.lookup(Long.parseLong(key));
                found.add(entry.timestamp() + "@" + entry.offset());
            }
        }
        return String.join(" ", found);
    }

    /** The end offset, the transaction index and the snapshot after recovery, in hexadecimal; or why there are none. */
    private static String producers(File dir) throws Exception {
        var state = new ProducerStateManager(new TopicPartition("t", 0), dir, 900000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), Time.SYSTEM);
        LogSegment segment = LogSegment.open(dir, 0, new LogConfig(new Properties()), Time.SYSTEM, true, 0, false, "");
        try {
            if (segment.recover(state, epochCache(new File(dir, "leader-epoch-checkpoint"))) > 0) return "InvalidRecordException";
        } catch (InvalidTxnStateException e) {
            return "InvalidTxnStateException";
        } catch (RuntimeException e) {
            return "unreadable marker";
        }
        state.takeSnapshot();
        return state.mapEndOffset() + " " + hex(new File(dir, "00000000000000000000.txnindex")) + " "
            + hex(LogFileUtils.producerSnapshotFile(dir, state.mapEndOffset()));
    }

    private static String hex(File file) throws Exception {
        return file.exists() ? HexFormat.of().formatHex(Files.readAllBytes(file.toPath())) : "";
    }

    private static LeaderEpochFileCache epochCache(File file) throws Exception {
        return new LeaderEpochFileCache(new TopicPartition("t", 0), new LeaderEpochCheckpointFile(file, new LogDirFailureChannel(5)), SCHEDULER);
    }

    private static File copy(Path file, Path dir, String name) throws Exception {
        return Files.copy(file, dir.resolve(name), StandardCopyOption.REPLACE_EXISTING).toFile();
    }

    /** The first known class among that of the exception, or of the one it wraps, and its superclasses. */
    private static String thrown(Throwable t) {
        if ((t instanceof KafkaStorageException || t instanceof UncheckedIOException) && t.getCause() != null) t = t.getCause();
        for (Class<?> c = t.getClass(); c != null; c = c.getSuperclass())
            if (KNOWN.contains(c.getSimpleName())) return c.getSimpleName();
        return t.getClass().getName();
    }

    private static String escape(String s) {
        StringBuilder b = new StringBuilder();
        for (char c : s.toCharArray()) b.append(c > 32 && c < 127 && c != '\\' && c != '|' ? String.valueOf(c) : String.format("\\u%04x", (int) c));
        return b.toString();
    }
}
