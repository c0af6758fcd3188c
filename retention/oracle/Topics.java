import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Fills a broker as told on stdin, a command a line:
 * <pre>
 * broker KEY=VALUE            a dynamic config of all brokers
 * topic NAME [KEY=VALUE...]   a topic of one partition
 * send NAME TIMESTAMP BYTES   a record in a batch of its own, with a key that no other record has
 * delete NAME OFFSET          DeleteRecords up to OFFSET
 * </pre>
 */
public final class Topics {
    public static void main(String[] args) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", args[0]);
        Properties producing = new Properties();
        producing.putAll(config);
        producing.put("batch.size", "0");
        producing.put("enable.idempotence", "false");
        producing.put("acks", "all");
        int sent = 0;
        try (Admin admin = Admin.create(config);
             var producer = new KafkaProducer<>(producing, new ByteArraySerializer(), new ByteArraySerializer());
             var in = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                String[] words = line.split(" ");
                switch (words[0]) {
                    case "broker" -> setForAllBrokers(admin, words[1]);
                    case "topic" -> admin.createTopics(List.of(new NewTopic(words[1], Optional.of(1), Optional.of((short) 1))
                        .configs(settings(words)))).all().get();
                    case "send" -> {
                        producer.send(new ProducerRecord<>(words[1], 0, Long.parseLong(words[2]), ("key-" + sent++).getBytes(),
                            new byte[Integer.parseInt(words[3])])).get();
                    }
                    case "delete" -> admin.deleteRecords(Map.of(new TopicPartition(words[1], 0),
                        RecordsToDelete.beforeOffset(Long.parseLong(words[2])))).all().get();
                    default -> throw new IllegalArgumentException(line);
                }
            }
        }
        System.out.println("filled");
    }

    private static void setForAllBrokers(Admin admin, String setting) throws Exception {
        String[] pair = setting.split("=", 2);
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.BROKER, ""),
            List.of(new AlterConfigOp(new ConfigEntry(pair[0], pair[1]), AlterConfigOp.OpType.SET)))).all().get();
    }

    private static Map<String, String> settings(String[] words) {
        Map<String, String> settings = new HashMap<>();
        for (int i = 2; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        return settings;
    }
}
