import java.nio.file.*;
import java.nio.file.attribute.FileTime;
import java.util.*;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.*;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * What a broker that loads a copy of a partition after a clean stop reads at each offset and finds for each timestamp.
 *
 * Reads NAME=DIR...   prints NAME,offset,N,SEGMENT,POSITION and NAME,time,T,OFFSET,TIMESTAMP; instead of an answer "empty", "none" or
 * the class of the exception.
 */
public final class Reads {
    static final long MODIFIED_MS = 1893456000000L; // 2030: segments without a timestamp are passed over or not by it

    public static void main(String[] args) throws Exception {
        for (String arg : args) {
            int equals = arg.indexOf('=');
            partition(arg.substring(0, equals), Path.of(arg.substring(equals + 1)));
        }
        Runtime.getRuntime().halt(0);
    }

    static void partition(String name, Path src) throws Exception {
        Path d = Files.createTempDirectory("reads").resolve(src.getFileName().toString());
        Files.createDirectories(d);
        try (DirectoryStream<Path> files = Files.newDirectoryStream(src)) {
            for (Path f : files) {
                Path to = d.resolve(f.getFileName());
                Files.copy(f, to);
                Files.setLastModifiedTime(to, FileTime.fromMillis(MODIFIED_MS));
            }
        }
        Properties settings = new Properties();
        settings.put("segment.index.bytes", "65536");
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        UnifiedLog log = UnifiedLog.create(d.toFile(), new LogConfig(settings), 0, 0, scheduler, new BrokerTopicStats(), Time.SYSTEM,
            900000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600000, new LogDirFailureChannel(8), true, Optional.empty());
        TreeSet<Long> times = new TreeSet<>(List.of(0L, 1L, 4102444800000L));
        for (LogSegment s : log.logSegments()) {
            try {
                for (RecordBatch b : s.log().batches()) times.addAll(List.of(b.maxTimestamp() - 1, b.maxTimestamp(), b.maxTimestamp() + 1));
            } catch (RuntimeException damage) {
                // The timestamps before the damage will do.
            }
        }
        offsets(name, log);
        List<Long> queries = new ArrayList<>(times.tailSet(0L));
        int step = queries.size() / 600 + 1;
        for (int i = 0; i < queries.size(); i += step) System.out.println(name + ",time," + queries.get(i) + "," + time(log, queries.get(i)));
        log.close();
        scheduler.shutdown();
    }

    static void offsets(String name, UnifiedLog log) {
        long first = Math.max(0, log.logStartOffset() - 2), end = log.logEndOffset();
        long step = Math.max(1, (end - first) / 700);
        for (long o = first; o <= end + 2; o += o + step < end - 2 ? step : 1) System.out.println(name + ",offset," + o + "," + offset(log, o));
    }

    static String offset(UnifiedLog log, long offset) {
        try {
            FetchDataInfo f = log.read(offset, 1 << 20, FetchIsolation.LOG_END, true);
            if (f.records.sizeInBytes() == 0) return "empty";
            return f.fetchOffsetMetadata.segmentBaseOffset + "," + f.fetchOffsetMetadata.relativePositionInSegment;
        } catch (Throwable t) {
            return t.getClass().getSimpleName();
        }
    }

    static String time(UnifiedLog log, long timestamp) {
        try {
            return log.fetchOffsetByTimestamp(timestamp, Optional.empty()).timestampAndOffsetOpt().map(x -> x.offset + "," + x.timestamp).orElse("none");
        } catch (Throwable t) {
            return t.getClass().getSimpleName();
        }
    }
}
