import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.Set;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerHeartbeatResponseData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.BrokerRegistrationResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.RequestUtils;
import org.apache.kafka.common.requests.ResponseHeader;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Does things at random to groups, topics, settings and a second broker, and prints what the cluster says in between. */
final class Churn {
    private final Admin admin;
    private final Properties base;
    private final Random random;
    private final String server;
    private final List<KafkaProducer<byte[], byte[]>> open = new ArrayList<>();
    private final List<AutoCloseable> live = new ArrayList<>();
    private final Set<String> joined = new HashSet<>();
    private long epoch = -1; // of the second broker
    private Socket controller;
    private int failed, done;

    Churn(Admin admin, Properties base, Random random) throws Exception {
        this.admin = admin;
        this.base = base;
        this.random = random;
        server = base.getProperty("bootstrap.servers");
    }

    void run(int steps) throws Exception {
        for (int i = 0; i < 4 && done == 0; i++) topic(i);
        for (int i = 0; i < steps; i++) {
            try {
                step();
                done++;
            } catch (Exception e) {
                failed++;
                Throwable why = e.getCause() == null ? e : e.getCause();
                System.err.println("step: " + why.getClass().getSimpleName() + " " + why.getMessage());
            }
        }
        System.err.println(done + " steps, " + failed + " refused");
    }

    private int any(int n) { return random.nextInt(n); }
    private String topicName() { return "c" + (any(5) == 0 ? 4 + any(2) : any(4)); }
    private String group() { return "g" + any(10); }
    private TopicPartition partition() { return new TopicPartition(topicName(), any(2)); }

    private void step() throws Exception {
        switch (any(24)) {
            case 0 -> { String t = topicName(); admin.deleteTopics(List.of(t)).all().get(); if (any(3) > 0) topic(t.charAt(1) - '0'); }
            case 1 -> topic(any(6));
            case 2, 3 -> produce();
            case 4, 5 -> admin.alterConsumerGroupOffsets(group(), offsets()).all().get();
            case 6 -> admin.deleteConsumerGroups(List.of(group())).all().get();
            case 7 -> admin.deleteConsumerGroupOffsets(group(), Set.of(partition())).all().get();
            case 8, 9 -> join();
            case 10 -> share();
            case 11, 12 -> transaction();
            case 13, 14 -> config();
            case 15 -> quota();
            case 16 -> acl();
            case 17 -> scram();
            case 18 -> feature();
            case 19 -> secondBroker();
            case 20 -> admin.alterPartitionReassignments(Map.of(partition(), any(4) == 0 ? Optional.empty()
                : Optional.of(new NewPartitionReassignment(any(2) == 0 ? List.of(1) : List.of(1, 2))))).all().get();
            case 21 -> { TopicPartition p = partition();
                admin.deleteRecords(Map.of(p, RecordsToDelete.beforeOffset(any(20)))).all().get(); }
            case 22 -> admin.createPartitions(Map.of(topicName(), NewPartitions.increaseTo(3 + any(2)))).all().get();
            default -> { if (any(2) == 0 || open.isEmpty()) leave(); else end(open.remove(any(open.size()))); }
        }
    }

    private void topic(int i) throws Exception {
        NewTopic t = epoch >= 0 && any(2) == 0 ? new NewTopic("c" + i, Map.of(0, List.of(1, 2), 1, List.of(2, 1)))
            : new NewTopic("c" + i, 2, (short) 1);
        admin.createTopics(List.of(t.configs(any(2) == 0 ? Map.of() : Map.of("retention.ms", "" + (1000000 + any(9)))))).all().get();
    }

    private void produce() throws Exception {
        TopicPartition t = partition();
        if (!admin.listTopics().names().get().contains(t.topic())) return;
        KafkaProducer<byte[], byte[]> p = new KafkaProducer<>(Cluster.with("max.block.ms", 1000, "delivery.timeout.ms", 2500, "request.timeout.ms", 2000,
            "linger.ms", 0, "acks", "1", "enable.idempotence", "false"), new ByteArraySerializer(), new ByteArraySerializer());
        for (int i = 0; i < 20; i++) p.send(new ProducerRecord<>(t.topic(), t.partition(), null, ("v" + i).getBytes(StandardCharsets.UTF_8)));
        p.close(Duration.ofSeconds(3));
    }

    private Map<TopicPartition, OffsetAndMetadata> offsets() {
        Map<TopicPartition, OffsetAndMetadata> m = new HashMap<>();
        for (int i = 1 + any(3); i > 0; i--)
            m.put(partition(), new OffsetAndMetadata(any(60), any(3) == 0 ? Optional.of(any(5)) : Optional.empty(), any(2) == 0 ? "" : "é " + any(9)));
        return m;
    }

    private void join() throws Exception {
        String g = group(), instance = any(2) == 0 ? "i" + any(3) : null;
        boolean classic = any(2) == 0;
        Properties p = Cluster.with("group.id", g, "group.protocol", classic ? "classic" : "consumer", "auto.offset.reset", "earliest",
            "enable.auto.commit", "false", "client.rack", "r" + any(2), "client.id", "client-" + any(3));
        if (instance != null) p.put("group.instance.id", instance);
        if (classic) p.put("session.timeout.ms", "45000");
        if (!joined.add(g + instance)) return; // a static member that is there would be fenced
        KafkaConsumer<String, String> c = new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer());
        try {
            if (!classic && any(4) == 0) c.subscribe(new org.apache.kafka.clients.consumer.SubscriptionPattern("c[0-" + any(6) + "]"));
            else c.subscribe(List.of(topicName(), topicName()));
            for (int i = 0; i < 8; i++) c.poll(Duration.ofMillis(100));
            if (any(2) == 0) c.commitSync(Duration.ofSeconds(3));
            if (any(3) > 0) c.enforceRebalance();
        } finally {
            if (any(3) > 0 || live.size() > 3) { c.close(Duration.ofSeconds(2)); if (instance == null) joined.remove(g + instance); } else live.add(c);
        }
    }

    private void leave() throws Exception {
        if (!live.isEmpty()) { AutoCloseable c = live.remove(any(live.size()));
            if (c instanceof KafkaConsumer<?, ?> k) k.close(Duration.ofSeconds(2)); else ((KafkaShareConsumer<?, ?>) c).close(Duration.ofSeconds(2)); }
    }

    private void share() throws Exception {
        String g = "s" + any(3);
        switch (any(5)) {
            case 0 -> admin.alterShareGroupOffsets(g, Map.of(partition(), (long) any(20))).all().get();
            case 1 -> admin.deleteShareGroupOffsets(g, Set.of(topicName())).all().get();
            case 2 -> admin.deleteShareGroups(List.of(g)).all().get();
            default -> {
                KafkaShareConsumer<String, String> s = new KafkaShareConsumer<>(Cluster.with("group.id", g), new StringDeserializer(), new StringDeserializer());
                s.subscribe(List.of(topicName(), topicName()));
                for (int i = 0; i < 12; i++) { s.poll(Duration.ofMillis(100)); s.commitSync(Duration.ofMillis(500)); }
                if (any(2) == 0) s.close(Duration.ofSeconds(2)); else live.add(s);
            }
        }
    }

    private void transaction() {
        KafkaProducer<byte[], byte[]> p = new KafkaProducer<>(Cluster.with("transactional.id", "x" + any(6), "transaction.timeout.ms", 900000, "max.block.ms", 2000),
            new ByteArraySerializer(), new ByteArraySerializer());
        try {
            p.initTransactions();
            for (int n = any(3); n >= 0; n--) {
                p.beginTransaction();
                if (any(2) == 0) { TopicPartition t = partition(); p.send(new ProducerRecord<>(t.topic(), t.partition(), null, "x".getBytes(StandardCharsets.UTF_8))); }
                p.sendOffsetsToTransaction(offsets(), new ConsumerGroupMetadata(group()));
                if (n == 0 && any(3) == 0) { open.add(p); return; }
                if (any(2) == 0) p.commitTransaction(); else p.abortTransaction();
            }
        } catch (RuntimeException e) {
            p.close(Duration.ZERO);
            throw e;
        }
        p.close(Duration.ofSeconds(2));
    }

    private void end(KafkaProducer<byte[], byte[]> p) {
        try {
            if (any(2) == 0) p.commitTransaction(); else p.abortTransaction();
        } finally {
            p.close(Duration.ZERO);
        }
    }

    private void config() throws Exception {
        ConfigResource.Type type = List.of(ConfigResource.Type.TOPIC, ConfigResource.Type.TOPIC, ConfigResource.Type.BROKER, ConfigResource.Type.GROUP, ConfigResource.Type.CLIENT_METRICS).get(any(5));
        String name = "", key = "", value = "";
        switch (type) {
            case TOPIC -> { name = topicName(); key = List.of("retention.ms", "max.message.bytes", "cleanup.policy", "min.insync.replicas").get(any(4));
                value = key.equals("cleanup.policy") ? List.of("compact", "delete", "compact,delete").get(any(3)) : key.equals("min.insync.replicas") ? "" + (1 + any(2)) : "" + (90000 + any(99)); }
            case BROKER -> { name = List.of("", "1").get(any(2)); key = List.of("log.retention.ms", "log.segment.delete.delay.ms", "message.max.bytes").get(any(3)); value = "" + (70000 + any(99)); }
            case GROUP -> { name = any(2) == 0 ? group() : "s" + any(3); key = List.of("consumer.session.timeout.ms", "share.record.lock.duration.ms").get(any(2)); value = "" + (46000 + any(9)); }
            default -> { name = "m" + any(2); key = "interval.ms"; value = "" + (5000 + any(9)); }
        }
        boolean delete = any(3) == 0;
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), List.of(new AlterConfigOp(new ConfigEntry(key, delete ? null : value),
            delete ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET)))).all().get();
    }

    private void quota() throws Exception {
        Map<String, String> entity = new HashMap<>();
        int kind = any(5);
        String who = any(2) == 0 ? null : "q" + any(2); // null is the default entity
        if (kind == 0) entity.put("ip", who == null ? null : "10.0.0." + any(2));
        if (kind == 1 || kind > 2) entity.put("user", who);
        if (kind > 1) entity.put("client-id", any(2) == 0 ? null : "i" + any(2));
        String key = kind == 0 ? "connection_creation_rate" : List.of("producer_byte_rate", "consumer_byte_rate", "request_percentage").get(any(3));
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(new ClientQuotaEntity(entity), List.of(new ClientQuotaAlteration.Op(key, any(3) == 0 ? null : (double) (1 + any(90)) ))))).all().get();
    }

    private void acl() throws Exception {
        AclBinding b = new AclBinding(new ResourcePattern(List.of(ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID, ResourceType.DELEGATION_TOKEN).get(any(4)), "r" + any(2),
            any(2) == 0 ? PatternType.LITERAL : PatternType.PREFIXED), new AccessControlEntry("User:u" + any(2), any(2) == 0 ? "*" : "10.0.0.1", AclOperation.DESCRIBE, any(3) == 0 ? AclPermissionType.DENY : AclPermissionType.ALLOW));
        if (any(3) == 0) admin.deleteAcls(List.of(b.toFilter())).all().get(); else admin.createAcls(List.of(b)).all().get();
    }

    private void scram() throws Exception {
        ScramMechanism m = any(2) == 0 ? ScramMechanism.SCRAM_SHA_256 : ScramMechanism.SCRAM_SHA_512;
        String name = "u" + any(3);
        if (any(3) == 0) admin.alterUserScramCredentials(List.of(new UserScramCredentialDeletion(name, m))).all().get();
        else admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(name, new ScramCredentialInfo(m, 4096 + any(9)), "pw"))).all().get();
    }

    private void feature() throws Exception {
        String name = List.of("eligible.leader.replicas.version", "transaction.version", "group.version", "share.version", "streams.version").get(any(5));
        short level = (short) (name.startsWith("tr") ? any(3) : any(2));
        short now = Optional.ofNullable(admin.describeFeatures().featureMetadata().get().finalizedFeatures().get(name)).map(f -> f.maxVersionLevel()).orElse((short) 0);
        if (level == now) return;
        if (name.startsWith("group") || name.startsWith("share")) level = 1; // consumers need them
        admin.updateFeatures(Map.of(name, new FeatureUpdate(level, level < now ? FeatureUpdate.UpgradeType.SAFE_DOWNGRADE : FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions()).all().get();
    }

    /** A second broker that is nothing but its registration: it comes, is unfenced, shut down, forgotten, or times out. */
    private void secondBroker() throws Exception {
        if (epoch < 0 || any(4) == 0) {
            BrokerRegistrationRequestData d = new BrokerRegistrationRequestData().setBrokerId(2).setClusterId(admin.describeCluster().clusterId().get()).setIncarnationId(Uuid.randomUuid())
                .setRack(any(2) == 0 ? null : "far").setLogDirs(List.of(new Uuid(5, 1 + any(3)))).setPreviousBrokerEpoch(-1);
            d.listeners().add(new BrokerRegistrationRequestData.Listener().setName("PLAINTEXT").setHost("127.0.0.1").setPort(9).setSecurityProtocol((short) 0));
            d.listeners().add(new BrokerRegistrationRequestData.Listener().setName("SASL_PLAINTEXT").setHost("127.0.0.1").setPort(8).setSecurityProtocol((short) 2));
            for (String f : List.of("metadata.version", "kraft.version", "group.version", "transaction.version", "eligible.leader.replicas.version", "share.version", "streams.version"))
                d.features().add(new BrokerRegistrationRequestData.Feature().setName(f).setMinSupportedVersion((short) 0).setMaxSupportedVersion((short) 99));
            BrokerRegistrationResponseData r = new BrokerRegistrationResponseData(send(ApiKeys.BROKER_REGISTRATION, d), ApiKeys.BROKER_REGISTRATION.latestVersion());
            if (r.errorCode() != 0) throw new Exception("registration: error " + r.errorCode());
            epoch = r.brokerEpoch();
            beat(false, false);
        } else {
            switch (any(4)) {
                case 0 -> { admin.unregisterBroker(2).all().get(); epoch = -1; }
                case 1 -> beat(false, true);
                case 2 -> beat(true, false);
                default -> beat(false, false);
            }
        }
    }

    /** Who lists groups asks all brokers that are unfenced, and the second cannot answer. */
    void fence() throws Exception {
        if (epoch >= 0) beat(true, false);
        while (admin.describeCluster().nodes().get().size() > 1) Thread.sleep(100);
    }

    private void beat(boolean fence, boolean shutDown) throws Exception {
        BrokerHeartbeatRequestData d = new BrokerHeartbeatRequestData().setBrokerId(2).setBrokerEpoch(epoch).setCurrentMetadataOffset(admin.describeMetadataQuorum().quorumInfo().get().highWatermark()).setWantFence(fence).setWantShutDown(shutDown);
        BrokerHeartbeatResponseData r = new BrokerHeartbeatResponseData(send(ApiKeys.BROKER_HEARTBEAT, d), ApiKeys.BROKER_HEARTBEAT.latestVersion());
        if (r.errorCode() != 0) throw new Exception("heartbeat: error " + r.errorCode());
    }

    private ByteBufferAccessor send(ApiKeys key, ApiMessage data) throws Exception {
        if (controller != null) controller.close();
        controller = new Socket("127.0.0.1", Integer.parseInt(server.substring(server.lastIndexOf(':') + 1)) + 1);
        controller.setSoTimeout(5000);
        short version = key.latestVersion();
        RequestHeader header = new RequestHeader(key, version, "churn", 1);
        ByteBuffer request = RequestUtils.serialize(header.data(), header.headerVersion(), data, version);
        DataOutputStream out = new DataOutputStream(controller.getOutputStream());
        out.writeInt(request.remaining());
        out.write(request.array(), request.arrayOffset() + request.position(), request.remaining());
        DataInputStream in = new DataInputStream(controller.getInputStream());
        byte[] answer = new byte[in.readInt()];
        in.readFully(answer);
        ByteBuffer response = ByteBuffer.wrap(answer);
        ResponseHeader.parse(response, key.responseHeaderVersion(version));
        return new ByteBufferAccessor(response);
    }
}
