import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.ExpireDelegationTokenOptions;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RenewDelegationTokenOptions;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.token.delegation.DelegationToken;
import org.apache.kafka.common.security.token.delegation.TokenInformation;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.GroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.coordinator.group.generated.StreamsGroupCurrentMemberAssignmentKey;
import org.apache.kafka.coordinator.group.generated.StreamsGroupCurrentMemberAssignmentValue;
import org.apache.kafka.coordinator.group.generated.StreamsGroupMemberMetadataKey;
import org.apache.kafka.coordinator.group.generated.StreamsGroupMemberMetadataValue;
import org.apache.kafka.coordinator.group.generated.StreamsGroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.StreamsGroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTargetAssignmentMetadataKey;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTargetAssignmentMetadataValue;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTopologyKey;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTopologyValue;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** "churn SERVER SEED STEPS" does things at random and prints what the cluster says then; "fill SERVER SEED" gives a cluster groups of all kinds, topics, settings, users; "ask SERVER" prints what it says of them; "expire SERVER" waits until it has dropped what is too old. */
public final class Cluster {
    private static Properties base;
    private static Random random;

    public static void main(String[] a) throws Exception {
        base = new Properties();
        base.put("bootstrap.servers", a[1]);
        try (Admin admin = Admin.create(base)) {
            if (a[0].equals("expire")) {
                while (!admin.listConsumerGroupOffsets("old-0").partitionsToOffsetAndMetadata().get().isEmpty()) Thread.sleep(200);
                Thread.sleep(5000);
            } else if (a[0].equals("fill")) {
                random = new Random(Long.parseLong(a[2]));
                topics(admin);
                settings(admin);
                tokens();
                records();
                groups(admin);
                streams();
                old();
            } else if (a[0].equals("churn")) {
                random = new Random(Long.parseLong(a[2]));
                base.put("default.api.timeout.ms", "4000");
                base.put("request.timeout.ms", "3000");
                admin.alterUserScramCredentials(List.of(user("alice", ScramMechanism.SCRAM_SHA_256))).all().get();
                Admin quick = Admin.create(base);
                Churn churn = new Churn(quick, base, random);
                for (int round = 0; round < 3; round++) {
                    churn.run(Integer.parseInt(a[3]));
                    if (round == 2) break;
                    churn.fence();
                    Map<String, Object> said = ask(quick);
                    TopicPartition offsets = new TopicPartition("__consumer_offsets", 0);
                    said.put("offsets_end", admin.listOffsets(Map.of(offsets, OffsetSpec.latest())).partitionResult(offsets).get().offset());
                    said.put("metadata_end", admin.describeMetadataQuorum().quorumInfo().get().highWatermark());
                    new PrintStream(System.out, true, StandardCharsets.UTF_8).println(json(said));
                }
            } else {
                new PrintStream(System.out, true, StandardCharsets.UTF_8).println(json(ask(admin)));
            }
        }
        Runtime.getRuntime().halt(0);
    }

    static Properties with(Object... kv) {
        Properties p = new Properties();
        p.putAll(base);
        for (int i = 0; i < kv.length; i += 2) p.put(kv[i], kv[i + 1]);
        return p;
    }

    private static void topics(Admin admin) throws Exception {
        List<NewTopic> list = new ArrayList<>();
        for (int i = 0; i < 12; i++) list.add(new NewTopic("t" + i, 1 + random.nextInt(4), (short) 1).configs(Map.of("retention.ms", "" + (1000000 + i))));
        list.add(new NewTopic("odd.name_-x", 2, (short) 1));
        admin.createTopics(list).all().get();
        admin.deleteTopics(List.of("t9", "t10")).all().get();
        admin.createPartitions(Map.of("t0", NewPartitions.increaseTo(6))).all().get();
        admin.createTopics(List.of(new NewTopic("t9", 3, (short) 1))).all().get();
    }

    private static AlterConfigOp set(String k, String v) {
        return new AlterConfigOp(new ConfigEntry(k, v), v == null ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET);
    }

    private static void settings(Admin admin) throws Exception {
        ConfigResource t1 = new ConfigResource(ConfigResource.Type.TOPIC, "t1"), t2 = new ConfigResource(ConfigResource.Type.TOPIC, "t2");
        admin.incrementalAlterConfigs(Map.of(t1, List.of(set("cleanup.policy", "compact"), set("max.message.bytes", "77777")),
            t2, List.of(set("retention.ms", null)), new ConfigResource(ConfigResource.Type.BROKER, ""), List.of(set("log.retention.ms", "99999999")),
            new ConfigResource(ConfigResource.Type.BROKER, "1"), List.of(set("log.segment.delete.delay.ms", "61000")),
            new ConfigResource(ConfigResource.Type.GROUP, "sharers"), List.of(set("share.auto.offset.reset", "earliest")),
            new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "m"), List.of(set("interval.ms", "5000")))).all().get();
        admin.incrementalAlterConfigs(Map.of(t1, List.of(set("max.message.bytes", null)))).all().get();
        List<AclBinding> acls = new ArrayList<>();
        for (int i = 0; i < 6; i++)
            acls.add(new AclBinding(new ResourcePattern(List.of(ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID).get(i % 3), "r" + i,
                i % 2 == 0 ? PatternType.LITERAL : PatternType.PREFIXED), new AccessControlEntry("User:u" + i, i % 2 == 0 ? "*" : "10.0.0." + i,
                List.of(AclOperation.READ, AclOperation.DESCRIBE, AclOperation.ALL).get(i % 3), i == 4 ? AclPermissionType.DENY : AclPermissionType.ALLOW)));
        acls.add(new AclBinding(new ResourcePattern(ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL),
            new AccessControlEntry("User:op", "*", AclOperation.CLUSTER_ACTION, AclPermissionType.ALLOW)));
        admin.createAcls(acls).all().get();
        admin.deleteAcls(List.of(acls.get(2).toFilter())).all().get();
        Map<String, String> anyUser = new HashMap<>();
        anyUser.put("user", null);
        admin.alterClientQuotas(List.of(quota(Map.of("user", "alice"), "producer_byte_rate", 1024.0), quota(Map.of("user", "alice", "client-id", "c"), "consumer_byte_rate", 7.0),
            quota(anyUser, "request_percentage", 50.0), quota(Map.of("ip", "10.1.1.1"), "connection_creation_rate", 9.0), quota(Map.of("client-id", "gone"), "producer_byte_rate", 1.0))).all().get();
        admin.alterClientQuotas(List.of(quota(Map.of("client-id", "gone"), "producer_byte_rate", null))).all().get();
        for (UserScramCredentialUpsertion u : List.of(user("alice", ScramMechanism.SCRAM_SHA_256), user("alice", ScramMechanism.SCRAM_SHA_512),
            user("bob", ScramMechanism.SCRAM_SHA_512), user("carol", ScramMechanism.SCRAM_SHA_256))) admin.alterUserScramCredentials(List.of(u)).all().get();
        admin.alterUserScramCredentials(List.of(new UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_512))).all().get();
    }

    private static ClientQuotaAlteration quota(Map<String, String> entity, String key, Double value) {
        return new ClientQuotaAlteration(new ClientQuotaEntity(entity), List.of(new ClientQuotaAlteration.Op(key, value)));
    }

    private static UserScramCredentialUpsertion user(String name, ScramMechanism m) {
        return new UserScramCredentialUpsertion(name, new ScramCredentialInfo(m, 4096), "secret-" + name);
    }

    /** Delegation tokens are for clients that have said who they are, on a listener two ports above. */
    private static Admin alice() {
        String server = base.getProperty("bootstrap.servers");
        int colon = server.lastIndexOf(':') + 1;
        return Admin.create(with("bootstrap.servers", server.substring(0, colon) + (Integer.parseInt(server.substring(colon)) + 2),
            "security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", "SCRAM-SHA-256", "sasl.jaas.config",
            "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"alice\" password=\"secret-alice\";"));
    }

    private static KafkaPrincipal principal(String name) { return new KafkaPrincipal("User", name); }

    private static void tokens() throws Exception {
        try (Admin admin = alice()) {
            List<DelegationToken> made = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                CreateDelegationTokenOptions o = new CreateDelegationTokenOptions().maxLifetimeMs(86400000L * (i + 1));
                if (i % 2 == 1) o.renewers(List.of(principal("bob"), principal("dora")));
                if (i == 2) o.owner(principal("carol"));
                made.add(admin.createDelegationToken(o).delegationToken().get());
            }
            while (admin.describeDelegationToken().delegationTokens().get().size() < made.size()) Thread.sleep(100);
            admin.renewDelegationToken(made.get(1).hmac(), new RenewDelegationTokenOptions().renewTimePeriodMs(3600000)).expiryTimestamp().get();
            admin.expireDelegationToken(made.get(0).hmac(), new ExpireDelegationTokenOptions().expiryTimePeriodMs(7200000)).expiryTimestamp().get();
            admin.expireDelegationToken(made.get(3).hmac(), new ExpireDelegationTokenOptions().expiryTimePeriodMs(-1)).expiryTimestamp().get();
        }
    }

    private static Map<String, Object> askTokens() throws Exception {
        Map<String, Object> all = new TreeMap<>();
        try (Admin admin = alice()) {
            for (DelegationToken t : admin.describeDelegationToken().delegationTokens().get()) {
                TokenInformation i = t.tokenInfo();
                all.put(i.tokenId(), map("owner", i.owner().toString(), "requester", i.tokenRequester().toString(), "renewers",
                    i.renewersAsString().stream().sorted().toList(), "issue", i.issueTimestamp(), "max", i.maxTimestamp(), "expiry", i.expiryTimestamp()));
            }
        }
        return all;
    }

    private static void records() throws Exception {
        try (KafkaProducer<byte[], byte[]> p = new KafkaProducer<>(with(), new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < 200; i++) p.send(new ProducerRecord<>("t" + i % 3, 0, null, ("v" + i).getBytes(StandardCharsets.UTF_8)));
        }
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(int n) {
        Map<TopicPartition, OffsetAndMetadata> m = new HashMap<>();
        for (int i = 0; i < n; i++) m.put(new TopicPartition("t" + random.nextInt(3), 0), new OffsetAndMetadata(random.nextInt(60), "note " + random.nextInt(9)));
        return m;
    }

    private static KafkaConsumer<String, String> consumer(String group, String protocol, List<String> topics) {
        KafkaConsumer<String, String> c = new KafkaConsumer<>(with("group.id", group, "group.protocol", protocol, "auto.offset.reset", "earliest", "enable.auto.commit", "false"),
            new StringDeserializer(), new StringDeserializer());
        c.subscribe(topics);
        int got = 0;
        for (int i = 0; i < 100 && got == 0; i++) got += c.poll(Duration.ofMillis(200)).count();
        c.commitSync();
        return c;
    }

    private static void transaction(String id, String group, String end) {
        KafkaProducer<byte[], byte[]> p = new KafkaProducer<>(with("transactional.id", id, "transaction.timeout.ms", 900000), new ByteArraySerializer(), new ByteArraySerializer());
        p.initTransactions();
        p.beginTransaction();
        p.sendOffsetsToTransaction(offsets(2), new ConsumerGroupMetadata(group));
        if (end.equals("commit")) p.commitTransaction();
        if (end.equals("abort")) p.abortTransaction();
    }

    private static void groups(Admin admin) throws Exception {
        for (int i = 0; i < 8; i++) admin.alterConsumerGroupOffsets("simple-" + i, offsets(3)).all().get();
        for (int i = 0; i < 6; i++) transaction("tx-" + i, "simple-" + random.nextInt(8), i % 2 == 0 ? "commit" : "abort");
        admin.alterConsumerGroupOffsets("simple-0", offsets(3)).all().get();
        admin.deleteConsumerGroups(List.of("simple-7")).all().get();
        consumer("classic-left", "classic", List.of("t0")).close();
        consumer("consumer-left", "consumer", List.of("t0", "t1")).close();
        admin.alterConsumerGroupOffsets("classic-left", Map.of(new TopicPartition("t0", 0), new OffsetAndMetadata(1))).all().get();
        consumer("classic-gone", "classic", List.of("t2")).close();
        admin.deleteConsumerGroupOffsets("consumer-left", Set.of(new TopicPartition("t1", 0))).all().get();
        admin.deleteConsumerGroups(List.of("classic-gone")).all().get();
        consumer("upgraded", "classic", List.of("t0")).close();
        consumer("upgraded", "consumer", List.of("t0")).close();
        consumer("classic-live", "classic", List.of("t1"));
        consumer("consumer-live", "consumer", List.of("t0", "t2"));
        KafkaShareConsumer<String, String> s = new KafkaShareConsumer<>(with("group.id", "sharers"), new StringDeserializer(), new StringDeserializer());
        s.subscribe(List.of("t1", "t2"));
        for (int i = 0, got = 0; i < 100 && got == 0; i++) {
            got += s.poll(Duration.ofMillis(200)).count();
            s.commitSync();
        }
        transaction("tx-open-1", "simple-1", "open");
        transaction("tx-open-2", "only-pending", "open");
        admin.alterConsumerGroupOffsets("simple-2", Map.of(new TopicPartition("t0", 0), new OffsetAndMetadata(2))).all().get();
    }

    private static CoordinatorRecord record(ApiMessage key, ApiMessage value) { return CoordinatorRecord.record(key, new ApiMessageAndVersion(value, (short) 0)); }

    /** Streams groups have no client among the jars: their records are written as a coordinator would. */
    private static void streams() throws Exception {
        List<CoordinatorRecord> list = new ArrayList<>();
        String[] names = {"streams-empty", "streams-stable", "streams-assigning", "streams-not-ready", "streams-reconciling", "streams-unrevoked"};
        for (int i = 0; i < names.length; i++) {
            String g = names[i];
            list.add(record(new StreamsGroupMetadataKey().setGroupId(g), new StreamsGroupMetadataValue().setEpoch(i == 2 ? 6 : 5).setMetadataHash(1).setValidatedTopologyEpoch(i == 3 ? 2 : 1)));
            if (i == 0) continue;
            list.add(record(new StreamsGroupTopologyKey().setGroupId(g), new StreamsGroupTopologyValue().setEpoch(1).setSubtopologies(List.of(
                new StreamsGroupTopologyValue.Subtopology().setSubtopologyId("s").setSourceTopics(List.of("t0"))))));
            list.add(record(new StreamsGroupMemberMetadataKey().setGroupId(g).setMemberId("m"), new StreamsGroupMemberMetadataValue().setRebalanceTimeoutMs(600000).setClientId("c").setClientHost("/h").setProcessId("p").setTopologyEpoch(1)));
            list.add(record(new StreamsGroupTargetAssignmentMetadataKey().setGroupId(g), new StreamsGroupTargetAssignmentMetadataValue().setAssignmentEpoch(5)));
            list.add(record(new StreamsGroupCurrentMemberAssignmentKey().setGroupId(g).setMemberId("m"), new StreamsGroupCurrentMemberAssignmentValue().setMemberEpoch(i == 4 ? 4 : 5).setPreviousMemberEpoch(3).setState((byte) (i == 5 ? 2 : 1))));
        }
        write(list);
    }

    /** Offsets that were committed long ago, in groups of which a coordinator knows nothing else and in an empty one. */
    private static void old() throws Exception {
        List<CoordinatorRecord> list = new ArrayList<>();
        long now = System.currentTimeMillis(), day = 86400000L;
        for (int i = 0; i < 8; i++) {
            String g = "old-" + i;
            if (i % 2 == 1)
                list.add(CoordinatorRecord.record(new GroupMetadataKey().setGroup(g), new ApiMessageAndVersion(new GroupMetadataValue().setProtocolType("consumer")
                    .setGeneration(3).setCurrentStateTimestamp(now - (i == 3 ? 0 : 2 * day)), (short) 3)));
            for (int p = 0; p < 3; p++)
                list.add(CoordinatorRecord.record(new OffsetCommitKey().setGroup(g).setTopic("t0").setPartition(p),
                    new ApiMessageAndVersion(new OffsetCommitValue().setOffset(1).setMetadata("").setCommitTimestamp(now - (i < 4 || p == 0 ? 3 * day : day / 2)), (short) 3)));
        }
        write(list);
    }

    /** What has a producer id counts as a transaction's for a coordinator, so there is none. */
    private static void write(List<CoordinatorRecord> list) throws Exception {
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        try (KafkaProducer<byte[], byte[]> p = new KafkaProducer<>(with("client.id", "__admin_client", "enable.idempotence", "false"), new ByteArraySerializer(), new ByteArraySerializer())) {
            for (CoordinatorRecord r : list) p.send(new ProducerRecord<>("__consumer_offsets", 0, serde.serializeKey(r), serde.serializeValue(r))).get();
        }
    }

    private static List<Integer> ids(List<Node> nodes) { return nodes == null ? List.of() : nodes.stream().map(Node::id).toList(); }

    /** What the description of a group says of it and its members; the assignments of share and streams groups are not asked for. */
    private static void describe(Admin admin, GroupListing g, Map<String, Object> o) throws Exception {
        List<Object> members = new ArrayList<>();
        switch (g.type().orElse(GroupType.UNKNOWN)) {
            case SHARE -> {
                var d = admin.describeShareGroups(List.of(g.groupId())).all().get().get(g.groupId());
                o.put("epoch", d.groupEpoch());
                d.members().forEach(m -> members.add(map("id", m.consumerId(), "client", m.clientId(), "host", m.host(), "epoch", m.memberEpoch(), "assigned", partitions(m.assignment().topicPartitions()))));
            }
            case STREAMS -> {
                if (g.groupId().startsWith("streams-")) return; // written by hand, and not all that a description needs
                var d = admin.describeStreamsGroups(List.of(g.groupId())).all().get().get(g.groupId());
                o.put("epoch", d.groupEpoch());
                d.members().forEach(m -> members.add(map("id", m.memberId(), "client", m.clientId(), "host", m.clientHost(), "instance", m.instanceId().orElse(""), "epoch", m.memberEpoch())));
            }
            default -> {
                var d = admin.describeConsumerGroups(List.of(g.groupId())).all().get().get(g.groupId());
                d.groupEpoch().ifPresent(e -> o.put("epoch", e));
                d.members().forEach(m -> { Map<String, Object> one = map("id", m.consumerId(), "client", m.clientId(), "host", m.host(), "instance", m.groupInstanceId().orElse(""), "assigned", partitions(m.assignment().topicPartitions()));
                    m.memberEpoch().ifPresent(e -> one.put("epoch", e)); members.add(one); });
            }
        }
        o.put("members", members);
    }

    private static List<String> partitions(Collection<TopicPartition> list) { return list.stream().map(Object::toString).sorted().toList(); }

    private static Map<String, Object> ask(Admin admin) throws Exception {
        Map<String, Object> all = new TreeMap<>(), topics = new TreeMap<>(), configs = new TreeMap<>(), features = new TreeMap<>(), quotas = new TreeMap<>(), groups = new TreeMap<>();
        List<ConfigResource> res = new ArrayList<>(List.of(new ConfigResource(ConfigResource.Type.BROKER, ""), new ConfigResource(ConfigResource.Type.BROKER, "1")));
        admin.describeTopics(admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get()).allTopicNames().get().forEach((name, t) -> {
            res.add(new ConfigResource(ConfigResource.Type.TOPIC, name));
            topics.put(name, map("topic_id", t.topicId().toString(), "partitions", t.partitions().stream().map(i -> map("partition", i.partition(), "leader", i.leader() == null ? -1 : i.leader().id(),
                "replicas", ids(i.replicas()), "isr", ids(i.isr()), "elr", ids(i.elr()), "last_known_elr", ids(i.lastKnownElr()))).toList()));
        });
        admin.describeConfigs(res).all().get().forEach((r, c) -> {
            Map<String, Object> m = new TreeMap<>();
            for (ConfigEntry e : c.entries())
                if (Set.of("DYNAMIC_TOPIC_CONFIG", "DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG").contains(e.source().name())) m.put(e.name(), e.value());
            if (!m.isEmpty()) configs.put(r.type().toString().toLowerCase() + ":" + r.name(), m);
        });
        admin.describeFeatures().featureMetadata().get().finalizedFeatures().forEach((k, v) -> features.put(k, (int) v.maxVersionLevel()));
        admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().forEach((e, v) -> quotas.put(new TreeMap<>(e.entries()).toString(), v));
        for (GroupListing g : admin.listGroups().all().get()) {
            Map<String, Object> o = new TreeMap<>();
            if (g.type().orElse(GroupType.UNKNOWN) == GroupType.SHARE)
                admin.listShareGroupOffsets(Map.of(g.groupId(), new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo(g.groupId()).get().forEach((tp, i) -> o.put(tp.toString(), i == null ? -1 : i.startOffset()));
            else
                admin.listConsumerGroupOffsets(g.groupId()).partitionsToOffsetAndMetadata().get().forEach((tp, c) -> {
                    if (c != null) o.put(tp.toString(), map("offset", c.offset(), "leader_epoch", c.leaderEpoch().orElse(-1), "metadata", c.metadata()));
                });
            Map<String, Object> group = map("type", g.type().map(Object::toString).orElse(""), "state", g.groupState().map(Object::toString).orElse(""), "protocol", g.protocol(), "offsets", o);
            describe(admin, g, group);
            groups.put(g.groupId(), group);
        }
        all.put("topics", topics);
        all.put("configs", configs);
        all.put("features", features);
        all.put("quotas", quotas);
        all.put("groups", groups);
        all.put("acls", admin.describeAcls(AclBindingFilter.ANY).values().get().stream().map(Object::toString).sorted().toList());
        if (random == null) all.put("tokens", askTokens());
        all.put("brokers", admin.describeCluster(new DescribeClusterOptions().includeFencedBrokers(true)).nodes().get().stream().map(n -> map("id", n.id(), "fenced", n.isFenced(), "rack", n.rack() == null ? "" : n.rack())).toList());
        List<String> credentials = new ArrayList<>();
        admin.describeUserScramCredentials().all().get().forEach((name, d) -> d.credentialInfos().forEach(c -> credentials.add(name + " " + c.mechanism().mechanismName() + " " + c.iterations())));
        all.put("credentials", credentials.stream().sorted().toList());
        all.put("scram_users", new ArrayList<>(new TreeMap<>(admin.describeUserScramCredentials().all().get()).keySet()));
        return all;
    }

    private static Map<String, Object> map(Object... kv) {
        Map<String, Object> m = new TreeMap<>();
        for (int i = 0; i < kv.length; i += 2) m.put((String) kv[i], kv[i + 1]);
        return m;
    }

    private static String json(Object o) {
        if (o instanceof Map<?, ?> m) {
            StringBuilder b = new StringBuilder("{");
            m.forEach((k, v) -> b.append(b.length() > 1 ? "," : "").append(json(String.valueOf(k))).append(':').append(json(v)));
            return b.append('}').toString();
        }
        if (o instanceof Collection<?> c) return "[" + String.join(",", c.stream().map(Cluster::json).toList()) + "]";
        if (o == null || o instanceof Number || o instanceof Boolean) return String.valueOf(o);
        return '"' + o.toString().replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
