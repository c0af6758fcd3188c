import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;

/** "fill SERVER SEED VERSION" sets transaction.version, and makes topics and transactions, some of which stay open; "describe SERVER" prints what a broker knows of them. */
public final class Transactions {
    public static void main(String[] args) throws Exception {
        if (args[0].equals("fill")) {
            fill(args[1], new Random(Long.parseLong(args[2])), Short.parseShort(args[3]));
        } else {
            describe(args[1]);
        }
        System.out.flush();
        Runtime.getRuntime().halt(0); // transactions stay open
    }

    private static Properties server(String server) {
        Properties p = new Properties();
        p.put("bootstrap.servers", server);
        return p;
    }

    private static void fill(String server, Random random, short version) throws Exception {
        try (Admin admin = Admin.create(server(server))) {
            var now = admin.describeFeatures().featureMetadata().get().finalizedFeatures().get("transaction.version");
            if (now == null || now.maxVersionLevel() != version) {
                admin.updateFeatures(Map.of("transaction.version", new FeatureUpdate(version, now == null ? FeatureUpdate.UpgradeType.UPGRADE
                    : FeatureUpdate.UpgradeType.SAFE_DOWNGRADE)), new UpdateFeaturesOptions()).all().get();
            }
            List<NewTopic> topics = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                topics.add(new NewTopic("t" + i, 2, (short) 1).configs(Map.of("internal.segment.bytes", "3000")));
            }
            admin.createTopics(topics).all().get();
        }
        for (int i = 0; i < 8; i++) {
            Properties p = server(server);
            p.put("transactional.id", "id-" + i);
            p.put("transaction.timeout.ms", String.valueOf(600_000 + i));
            KafkaProducer<String, String> producer = new KafkaProducer<>(p, new StringSerializer(), new StringSerializer());
            producer.initTransactions();
            for (int fenced = random.nextInt(3); fenced > 0 && i % 4 > 1; fenced--) { // the next one aborts what this one has open
                producer.beginTransaction();
                for (int k = 1 + random.nextInt(3); k > 0; k--) producer.send(new ProducerRecord<>("t" + random.nextInt(4), random.nextInt(2), "f", "fenced"));
                producer.flush();
                producer = new KafkaProducer<>(p, new StringSerializer(), new StringSerializer());
                producer.initTransactions();
            }
            int transactions = i == 0 ? 0 : 1 + random.nextInt(4);
            for (int n = 0; n < transactions; n++) {
                producer.beginTransaction();
                for (int k = 1 + random.nextInt(20); k > 0; k--) {
                    producer.send(new ProducerRecord<>("t" + random.nextInt(4), random.nextInt(2), "k" + k, "v".repeat(random.nextInt(80))));
                }
                producer.flush();
                if (n == transactions - 1 && i % 2 == 1) {
                    break; // it stays open
                }
                if (random.nextBoolean()) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        }
    }

    private static void describe(String server) throws Exception {
        try (Admin admin = Admin.create(server(server))) {
            var ids = admin.listTransactions().all().get().stream().map(t -> t.transactionalId()).sorted().toList();
            new TreeMap<>(admin.describeTransactions(ids).all().get()).forEach((id, t) -> System.out.println("id " + id + " " + t.state() + " " + t.producerId()
                + " " + t.producerEpoch() + " " + t.transactionTimeoutMs() + " " + t.topicPartitions().stream().map(Object::toString).sorted().toList()));
            List<TopicPartition> partitions = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                partitions.add(new TopicPartition("t" + i / 2, i % 2));
            }
            Map<TopicPartition, OffsetSpec> latest = new TreeMap<>(Comparator.comparing(TopicPartition::toString));
            partitions.forEach(p -> latest.put(p, OffsetSpec.latest()));
            var stable = admin.listOffsets(latest, new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).all().get();
            var producers = admin.describeProducers(partitions).all().get();
            for (TopicPartition p : partitions) {
                System.out.println("stable " + p + " " + stable.get(p).offset());
                producers.get(p).activeProducers().stream().sorted(Comparator.comparingLong(a -> a.producerId())).forEach(a -> System.out.println("producer " + p + " "
                    + a.producerId() + " " + a.producerEpoch() + " " + a.lastSequence() + " " + a.lastTimestamp() + " " + a.coordinatorEpoch().orElse(-1)
                    + " " + a.currentTransactionStartOffset().orElse(-1)));
            }
        }
    }
}
