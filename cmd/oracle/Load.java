import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.ExecutionException;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Loads a broker until its standard input ends, with all that moves files: every codec, transactions that commit and abort,
 * segments that roll each second, fast retention and compaction, preallocated segments, deleted records, offsets that are
 * committed, topics that are deleted and made anew. Arguments: HOST:PORT, a seed.
 */
public final class Load {
    private static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");
    private static volatile boolean ended;
    private static String server;
    private static long seed;

    /** A task that is done again and again. */
    private interface Task {
        void once(Random random) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        server = args[0];
        seed = Long.parseLong(args[1]);
        List<Thread> threads = new ArrayList<>();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", server))) {
            Map<String, String> fast = Map.of("segment.ms", "1000", "internal.segment.bytes", "40000", "retention.bytes", "150000",
                "retention.ms", "8000", "file.delete.delay.ms", "1000", "index.interval.bytes", "1000", "delete.retention.ms", "500",
                "min.cleanable.dirty.ratio", "0.01", "flush.messages", "50");
            for (String codec : CODECS)
                create(admin, "plain-" + codec, 2, with(fast));
            create(admin, "txn", 2, with(fast));
            create(admin, "keys", 2, with(fast, "cleanup.policy", "compact"));
            create(admin, "keys-txn", 1, with(fast, "cleanup.policy", "compact,delete"));
            create(admin, "room", 1, with(fast, "preallocate", "true"));
            System.out.println("loading");
            for (String codec : CODECS)
                threads.add(start(sender(codec, "plain-" + codec, 2, "keys", "room")));
            threads.add(start(transactions("one", "gzip")));
            threads.add(start(transactions("two", "none")));
            threads.add(start(random -> deleteRecords(admin, random)));
            threads.add(start(random -> topicOfAMoment(admin, random)));
            threads.add(start(random -> commitOffsets(admin, random)));
            while (System.in.read() >= 0) { }
            ended = true;
            for (Thread thread : threads)
                thread.join();
        }
        System.out.println("loaded");
    }

    private static Map<String, String> with(Map<String, String> settings, String... more) {
        Map<String, String> all = new HashMap<>(settings);
        for (int i = 0; i < more.length; i += 2)
            all.put(more[i], more[i + 1]);
        return all;
    }

    private static void create(Admin admin, String topic, int partitions, Map<String, String> settings) throws Exception {
        try {
            admin.createTopics(List.of(new NewTopic(topic, Optional.of(partitions), Optional.of((short) 1)).configs(settings))).all().get();
        } catch (ExecutionException e) {
            if (!(e.getCause() instanceof TopicExistsException))
                throw e;
        }
    }

    private static Thread start(Task task) {
        Random random = new Random(seed++);
        Thread thread = new Thread(() -> {
            while (!ended) {
                try {
                    task.once(random);
                } catch (Exception e) {
                    System.out.println(e);
                }
            }
        });
        thread.start();
        return thread;
    }

    private static KafkaProducer<byte[], byte[]> producer(String codec, String transactionalId) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", server, "compression.type", codec, "linger.ms", "2"));
        if (transactionalId != null)
            config.put("transactional.id", transactionalId);
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, int partition, Random random) {
        byte[] value = random.nextInt(10) == 0 && topic.startsWith("keys") ? null : new byte[random.nextInt(600)];
        if (value != null)
            random.nextBytes(value);
        return new ProducerRecord<>(topic, partition, ("key-" + random.nextInt(50)).getBytes(), value);
    }

    private static Task sender(String codec, String own, int partitions, String... shared) {
        KafkaProducer<byte[], byte[]> producer = producer(codec, null);
        return random -> {
            for (int i = random.nextInt(20); i >= 0; i--) {
                producer.send(record(own, random.nextInt(partitions), random));
                producer.send(record(shared[random.nextInt(shared.length)], 0, random));
            }
            Thread.sleep(random.nextInt(20));
        };
    }

    private static Task transactions(String id, String codec) {
        KafkaProducer<byte[], byte[]> producer = producer(codec, id);
        producer.initTransactions();
        return random -> {
            producer.beginTransaction();
            for (int i = random.nextInt(10); i >= 0; i--) {
                producer.send(record("txn", random.nextInt(2), random));
                producer.send(record("keys-txn", 0, random));
            }
            Thread.sleep(random.nextInt(30));
            if (random.nextInt(3) == 0)
                producer.abortTransaction();
            else
                producer.commitTransaction();
        };
    }

    private static void deleteRecords(Admin admin, Random random) throws Exception {
        Thread.sleep(1000);
        TopicPartition partition = new TopicPartition("plain-" + CODECS.get(random.nextInt(CODECS.size())), random.nextInt(2));
        long end = admin.listOffsets(Map.of(partition, OffsetSpec.latest())).all().get().get(partition).offset();
        admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(Math.max(0, end - random.nextInt(200))))).all().get();
    }

    private static void topicOfAMoment(Admin admin, Random random) throws Exception {
        String topic = "moment-" + random.nextInt(3);
        create(admin, topic, 2, Map.of("internal.segment.bytes", "5000"));
        try (KafkaProducer<byte[], byte[]> producer = producer(CODECS.get(random.nextInt(CODECS.size())), null)) {
            for (int i = random.nextInt(300); i >= 0; i--)
                producer.send(record(topic, random.nextInt(2), random));
        }
        admin.deleteTopics(List.of(topic)).all().get();
        Thread.sleep(random.nextInt(500));
    }

    private static void commitOffsets(Admin admin, Random random) throws Exception {
        Thread.sleep(50);
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (String codec : CODECS)
            offsets.put(new TopicPartition("plain-" + codec, random.nextInt(2)), new OffsetAndMetadata(random.nextInt(1000)));
        admin.alterConsumerGroupOffsets("group-" + random.nextInt(5), offsets).all().get();
    }
}
