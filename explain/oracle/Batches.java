import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.clients.producer.internals.ProducerBatch;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;

/** Prints how Kafka's own producer classes cut records of one shape into batches: a line of CSV for each of many random shapes. */
public class Batches {
    public static void main(String[] args) {
        Random r = new Random(1);
        System.out.println("records,key_bytes,value_bytes,headers,timestamp_step,batch_size,batches");
        for (int i = 0; i < 300; i++) {
            int records = pick(r, 1, 2, 3, 10, 64, 65, 100, 1000, 9000);
            int key = pick(r, -1, -1, 0, 1, 8, 36, 63, 64, 200);
            int value = pick(r, -1, 0, 1, 2, 3, 11, 50, 63, 64, 100, 1000, 8191, 8192);
            long step = pick(r, 0, 0, 1, 7, 63, 1000, -5, 86400000);
            int batchSize = pick(r, 0, 0, 1, 61, 68, 79, 90, 97, 100, 200, 1000, 16384, 16384, 65536, 1048576);
            Header[] headers = new Header[pick(r, 0, 0, 0, 1, 2)];
            StringJoiner names = new StringJoiner(" ");
            for (int h = 0; h < headers.length; h++) {
                int k = pick(r, 0, 1, 5, 70), v = pick(r, -1, 0, 1, 16, 100);
                headers[h] = new RecordHeader("k".repeat(k), v < 0 ? null : new byte[v]);
                names.add(k + ":" + (v < 0 ? "null" : "" + v));
            }
            if ((long) records * Math.max(value, 1) > 3_000_000) records = 300;
            System.out.println(records + "," + key + "," + value + "," + names + "," + step + "," + batchSize + ","
                + batches(records, key < 0 ? null : new byte[key], value < 0 ? null : new byte[value], headers, step, batchSize));
        }
    }

    /** The batches as RECORDSxBYTES, runs of equal ones as N*RECORDSxBYTES; closed as RecordAccumulator does. */
    static String batches(int records, byte[] key, byte[] value, Header[] headers, long step, int batchSize) {
        StringJoiner out = new StringJoiner(" ");
        ProducerBatch batch = null;
        String last = "";
        int times = 0;
        for (int i = 0; i <= records; i++) {
            long now = 1700000000000L + i * step;
            boolean appended = i < records && batch != null && batch.tryAppend(now, key, value, headers, null, now) != null;
            if (appended) continue;
            if (batch != null) {
                batch.close();
                int count = 0;
                for (var record : batch.records().records()) count++;
                String text = count + "x" + batch.records().sizeInBytes();
                if (!text.equals(last) && times > 0) { out.add(times + "*" + last); times = 0; }
                last = text;
                times++;
            }
            if (i == records) break;
            int size = Math.max(Math.max(1, batchSize),
                AbstractRecords.estimateSizeInBytesUpperBound(RecordBatch.CURRENT_MAGIC_VALUE, CompressionType.NONE, key, value, headers));
            batch = new ProducerBatch(new TopicPartition("t", 0),
                MemoryRecords.builder(ByteBuffer.allocate(size), RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE, TimestampType.CREATE_TIME, 0L), now);
            if (batch.tryAppend(now, key, value, headers, null, now) == null) throw new IllegalStateException();
        }
        return out.add(times + "*" + last).toString();
    }

    static int pick(Random r, int... from) { return from[r.nextInt(from.length)]; }
}
