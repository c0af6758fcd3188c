import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Future;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Does what the lines on standard input say, with a cluster at args[0]; prints "ok" or "failed: why" after each. README.md lists them. */
public final class Drive {
    private static final List<Thread> LOAD = new ArrayList<>();
    private static final Map<String, KafkaProducer<byte[], byte[]>> TRANSACTIONAL = new HashMap<>();
    private static final List<KafkaShareConsumer<byte[], byte[]>> LEFT = new ArrayList<>();
    private static final Random RANDOM = new Random(1);
    private static String servers;
    private static Admin admin;
    private static volatile boolean quiet;

    /** A question that is asked until it says yes. */
    private interface Condition {
        boolean holds() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        servers = args[0];
        admin = Admin.create(Map.of("bootstrap.servers", servers, "default.api.timeout.ms", "30000"));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null;) {
            try {
                run(line.trim().split("\\s+"));
                System.out.println("ok");
            } catch (Exception e) {
                System.out.println("failed: " + e);
            }
        }
        System.exit(0);
    }

    private static void run(String[] w) throws Exception {
        Map<String, String> settings = new HashMap<>();
        for (String word : w)
            if (word.contains("="))
                settings.put(word.substring(0, word.indexOf('=')), word.substring(word.indexOf('=') + 1));
        switch (w[0]) {
            case "topic" -> topic(w[1], w[2], settings);
            case "delete" -> admin.deleteTopics(List.of(w[1])).all().get();
            case "delete-records" ->
                admin.deleteRecords(Map.of(partition(w[1]), RecordsToDelete.beforeOffset(Long.parseLong(w[2])))).all().get();
            case "send" -> send(partition(w[1]), Integer.parseInt(w[2]), settings);
            case "transaction" -> transaction(w[1], w[2].split(","), Integer.parseInt(w[3]), w[4], settings);
            case "commit" -> admin.alterConsumerGroupOffsets(w[1],
                Map.of(partition(w[2]), new OffsetAndMetadata(Long.parseLong(w[3])))).all().get();
            case "config" -> config(w[1], w[2], settings);
            case "reassign" -> reassign(partition(w[1]), w[2]);
            case "move" -> admin.alterReplicaLogDirs(Map.of(
                new TopicPartitionReplica(partition(w[1]).topic(), partition(w[1]).partition(), Integer.parseInt(w[2])), w[3])).all().get();
            case "elect" -> admin.electLeaders(ElectionType.valueOf(w[1].toUpperCase()), Set.of(partition(w[2]))).all().get();
            case "await-replicas" -> await(() -> replicas(partition(w[1])).equals(ids(w[2])) && inSync(partition(w[1])) == ids(w[2]).size());
            case "await-in-sync" -> await(() -> inSync(partition(w[1])) == Integer.parseInt(w[2]));
            case "await-leader" -> await(() -> described(partition(w[1])).leader() != null
                && described(partition(w[1])).leader().id() == Integer.parseInt(w[2]));
            case "await-start" -> await(() -> admin.listOffsets(Map.of(partition(w[1]), OffsetSpec.earliest())).all().get()
                .get(partition(w[1])).offset() >= Long.parseLong(w[2]));
            case "share" -> share(w[1], w[2],
                w[3].equals("leave") ? Optional.empty() : Optional.of(AcknowledgeType.valueOf(w[3].toUpperCase())), Integer.parseInt(w[4]));
            case "load" -> load(w[1], w[2].split(","), settings);
            case "quiet" -> quiet();
            default -> throw new IllegalArgumentException("no such command");
        }
    }

    private static TopicPartition partition(String name) {
        int at = name.lastIndexOf('-');
        return new TopicPartition(name.substring(0, at), Integer.parseInt(name.substring(at + 1)));
    }

    private static List<Integer> ids(String text) {
        return Arrays.stream(text.split(",")).map(Integer::valueOf).toList();
    }

    private static TopicPartitionInfo described(TopicPartition p) throws Exception {
        return admin.describeTopics(List.of(p.topic())).allTopicNames().get().get(p.topic()).partitions().get(p.partition());
    }

    private static List<Integer> replicas(TopicPartition p) throws Exception {
        return described(p).replicas().stream().map(node -> node.id()).toList();
    }

    private static int inSync(TopicPartition p) throws Exception {
        return described(p).isr().size();
    }

    private static void await(Condition condition) throws Exception {
        for (int i = 0; i < 600; i++) {
            if (condition.holds())
                return;
            Thread.sleep(100);
        }
        throw new IllegalStateException("waited for a minute");
    }

    /** Replicas of partitions are separated by semicolons, those of one by commas. */
    private static void topic(String name, String replicas, Map<String, String> settings) throws Exception {
        Map<Integer, List<Integer>> assignment = new HashMap<>();
        for (String one : replicas.split(";"))
            assignment.put(assignment.size(), ids(one));
        admin.createTopics(List.of(new NewTopic(name, assignment).configs(settings))).all().get();
        await(() -> admin.listTopics().names().get().contains(name) && described(new TopicPartition(name, 0)).leader() != null);
    }

    private static KafkaProducer<byte[], byte[]> producer(Map<String, String> settings, String transactionalId) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", servers,
            "compression.type", settings.getOrDefault("codec", "none"), "acks", settings.getOrDefault("acks", "all"),
            "linger.ms", settings.getOrDefault("linger", "5"), "batch.size", settings.getOrDefault("batch", "16384"),
            "enable.idempotence", settings.getOrDefault("idempotence", "true"),
            "max.block.ms", "20000", "delivery.timeout.ms", "30000", "request.timeout.ms", "10000"));
        if (transactionalId != null)
            config.put("transactional.id", transactionalId);
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static ProducerRecord<byte[], byte[]> record(TopicPartition p, int i, Random random, Map<String, String> settings) {
        int keys = Integer.parseInt(settings.getOrDefault("keys", "50"));
        byte[] value = new byte[Integer.parseInt(settings.getOrDefault("size", "200"))];
        random.nextBytes(value);
        if (settings.containsKey("value"))
            value = settings.get("value").getBytes();
        if (settings.containsKey("tombstones") && random.nextInt(10) == 0)
            value = null;
        Long time = settings.containsKey("time") ? Long.valueOf(settings.get("time")) + i / 10 : null;
        byte[] key = keys == 0 ? null : ("key-" + random.nextInt(keys)).getBytes();
        return new ProducerRecord<>(p.topic(), p.partition(), time, key, value);
    }

    private static void send(TopicPartition p, int count, Map<String, String> settings) throws Exception {
        List<Future<?>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = producer(settings, null)) {
            for (int i = 0; i < count; i++) {
                sent.add(producer.send(record(p, i, RANDOM, settings)));
                if (settings.containsKey("each"))
                    sent.get(i).get();
            }
        }
        for (Future<?> one : sent)
            one.get();
    }

    private static void transaction(String id, String[] partitions, int count, String end, Map<String, String> settings) throws Exception {
        KafkaProducer<byte[], byte[]> producer = TRANSACTIONAL.get(id);
        if (producer == null) {
            producer = producer(settings, id);
            producer.initTransactions();
            TRANSACTIONAL.put(id, producer);
        }
        producer.beginTransaction();
        for (String name : partitions)
            for (int i = 0; i < count; i++)
                producer.send(record(partition(name), i, RANDOM, settings));
        producer.flush();
        if (end.equals("commit"))
            producer.commitTransaction();
        else if (end.equals("abort"))
            producer.abortTransaction();
    }

    /** A share consumer acknowledges so many records of a topic, or, without a type, leaves them acquired. */
    private static void share(String group, String topic, Optional<AcknowledgeType> as, int count) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", servers, "group.id", group,
            "share.acknowledgement.mode", "explicit", "max.poll.records", 1, "share.acquire.mode", "record_limit");
        int left = count;
        KafkaShareConsumer<byte[], byte[]> consumer =
            new KafkaShareConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(Set.of(topic));
        for (long end = System.currentTimeMillis() + 60_000; left > 0 && System.currentTimeMillis() < end;) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                as.ifPresent(type -> consumer.acknowledge(record, type));
                left--;
            }
            if (as.isPresent())
                consumer.commitSync();
            else
                break;
        }
        if (as.isPresent())
            consumer.close();
        else
            LEFT.add(consumer);
        if (left > 0 && as.isPresent())
            throw new IllegalStateException("only " + (count - left) + " records in a minute");
    }

    /** "config topic:NAME set k=v" or "config broker:ID delete k=". */
    private static void config(String of, String how, Map<String, String> settings) throws Exception {
        String[] parts = of.split(":");
        ConfigResource resource = new ConfigResource(ConfigResource.Type.valueOf(parts[0].toUpperCase()), parts[1]);
        List<AlterConfigOp> ops = new ArrayList<>();
        settings.forEach((k, v) -> ops.add(new AlterConfigOp(new ConfigEntry(k, v), AlterConfigOp.OpType.valueOf(how.toUpperCase()))));
        admin.incrementalAlterConfigs(Map.of(resource, ops)).all().get();
    }

    private static void reassign(TopicPartition p, String to) throws Exception {
        Optional<NewPartitionReassignment> target =
            to.equals("cancel") ? Optional.empty() : Optional.of(new NewPartitionReassignment(ids(to)));
        admin.alterPartitionReassignments(Map.of(p, target)).all().get();
    }

    /** Sends records until "quiet"; with an id other than "-", in transactions of which a third is aborted. */
    private static void load(String id, String[] partitions, Map<String, String> settings) {
        quiet = false;
        Random random = new Random(RANDOM.nextLong());
        Thread thread = new Thread(() -> {
            while (!quiet) {
                try (KafkaProducer<byte[], byte[]> producer = producer(settings, id.equals("-") ? null : id)) {
                    if (!id.equals("-"))
                        producer.initTransactions();
                    while (!quiet)
                        burst(producer, !id.equals("-"), partitions, random, settings);
                } catch (Exception e) {
                    System.err.println(e);
                }
            }
        });
        LOAD.add(thread);
        thread.start();
    }

    private static void burst(KafkaProducer<byte[], byte[]> producer, boolean transactional, String[] partitions, Random random,
            Map<String, String> settings) throws Exception {
        if (transactional)
            producer.beginTransaction();
        for (int i = random.nextInt(20); i >= 0; i--)
            producer.send(record(partition(partitions[random.nextInt(partitions.length)]), i, random, settings));
        Thread.sleep(random.nextInt(30));
        if (transactional && random.nextInt(3) == 0)
            producer.abortTransaction();
        else if (transactional)
            producer.commitTransaction();
    }

    private static void quiet() throws Exception {
        quiet = true;
        for (Thread thread : LOAD)
            thread.join(Duration.ofSeconds(60).toMillis());
        LOAD.clear();
    }
}
