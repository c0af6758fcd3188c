import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Fills compacted topics c-0, c-1, ... with random keyed records: plain, idempotent and transactional producers, tombstones, aborts. */
public final class Keyed {
    public static void main(String[] args) throws Exception {
        Random random = new Random(Long.parseLong(args[1]));
        int topics = Integer.parseInt(args[2]);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            for (int i = 0; i < topics; i++) {
                Map<String, String> settings = new HashMap<>(Map.of("cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.001",
                    "internal.segment.bytes", String.valueOf(2000 + random.nextInt(8000)), "index.interval.bytes", "512",
                    "delete.retention.ms", String.valueOf((1 + random.nextInt(2)) * 40000000L)));
                admin.createTopics(List.of(new NewTopic("c-" + i, Optional.of(1), Optional.of((short) 1)).configs(settings))).all().get();
                fill("c-" + i, args[0], random, i);
            }
        }
        System.out.println("filled");
    }

    private static void fill(String topic, String server, Random random, int number) {
        try (var plain = producer(server, "enable.idempotence", "false"); var idempotent = producer(server, "enable.idempotence", "true");
             var transactional = producer(server, "transactional.id", "t" + number)) {
            transactional.initTransactions();
            boolean open = false;
            for (int n = 60 + random.nextInt(200); n > 0; n--) {
                int who = random.nextInt(3);
                var producer = who == 0 ? plain : who == 1 ? idempotent : transactional;
                if (who == 2 && !open) {
                    transactional.beginTransaction();
                    open = true;
                }
                byte[] value = random.nextInt(7) == 0 ? null : new byte[random.nextInt(200)];
                for (int i = 1 + random.nextInt(4); i > 0; i--)
                    producer.send(new ProducerRecord<>(topic, 0, null, ("k" + random.nextInt(5 + 8 * number)).getBytes(), value));
                producer.flush();
                if (open && random.nextInt(5) == 0) {
                    if (random.nextBoolean()) transactional.commitTransaction();
                    else transactional.abortTransaction();
                    open = false;
                }
            }
            if (open && random.nextBoolean()) transactional.commitTransaction();
        }
    }

    private static KafkaProducer<byte[], byte[]> producer(String server, String key, String value) {
        return new KafkaProducer<>(Map.of("bootstrap.servers", server, "linger.ms", "0", "acks", "all", key, value),
            new ByteArraySerializer(), new ByteArraySerializer());
    }
}
