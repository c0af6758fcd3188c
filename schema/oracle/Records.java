import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.ConsumerProtocolAssignment;
import org.apache.kafka.common.message.ConsumerProtocolSubscription;
import org.apache.kafka.common.message.EndTxnMarker;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageSizeAccumulator;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.utils.internals.ByteUtils;
import org.apache.kafka.tools.DumpLogSegments;

/**
 * Writes segments of internal topics with random records of every type and version, made by Kafka's own message classes,
 * and broken variants of them; then has the real DumpLogSegments print them.
 *
 *   java Records.java SEED RECORDS_PER_VERSION OUT
 *
 * OUT/PARTITION/00000000000000000000.log and OUT/PARTITION.decoded.txt
 */
public class Records {
    static Random random;
    static int perVersion;
    static Path out;

    record Pair(byte[] key, byte[] value) { }

    public static void main(String[] args) throws Exception {
        perVersion = Integer.parseInt(args[1]);
        out = Path.of(args[2]);
        long seed = Long.parseLong(args[0]);

        random = new Random(seed);
        List<Pair> offsets = new ArrayList<>();
        for (var t : org.apache.kafka.coordinator.group.generated.CoordinatorRecordType.values())
            coordinator(offsets, t.newRecordKey(), t.newRecordValue());
        write("__consumer_offsets-0", "--offsets-decoder", offsets, false);

        random = new Random(seed + 1);
        List<Pair> transactions = new ArrayList<>();
        for (int i = 0; i < 4; i++)
            for (var t : org.apache.kafka.coordinator.transaction.generated.CoordinatorRecordType.values())
                coordinator(transactions, t.newRecordKey(), t.newRecordValue());
        write("__transaction_state-0", "--transaction-log-decoder", transactions, false);

        random = new Random(seed + 2);
        List<Pair> share = new ArrayList<>();
        for (int i = 0; i < 2; i++)
            for (var t : org.apache.kafka.coordinator.share.generated.CoordinatorRecordType.values())
                coordinator(share, t.newRecordKey(), t.newRecordValue());
        write("__share_group_state-0", "--share-group-state-decoder", share, false);

        random = new Random(seed + 3);
        List<Pair> metadata = new ArrayList<>();
        for (var t : MetadataRecordType.values()) framed(metadata, t.newMetadataRecord());
        frames(metadata);
        write("__cluster_metadata-0", "--cluster-metadata-decoder", metadata, false);

        random = new Random(seed + 4);
        List<Pair> remote = new ArrayList<>();
        for (int i = 0; i < 4; i++)
            for (var t : org.apache.kafka.server.log.remote.metadata.storage.generated.MetadataRecordType.values())
                framed(remote, t.newMetadataRecord());
        frames(remote);
        write("__remote_log_metadata-0", "--remote-log-metadata-decoder", remote, false);

        random = new Random(seed + 5);
        write("__cluster_metadata-1", "--cluster-metadata-decoder", controls(), true);
    }

    /** Records of one type, key in front: good ones in each version, then broken ones. */
    static void coordinator(List<Pair> list, ApiMessage key, ApiMessage value) throws Exception {
        for (short v = value.lowestSupportedVersion(); v <= value.highestSupportedVersion(); v++) {
            for (int i = 0; i < perVersion; i++) {
                ApiMessage k = (ApiMessage) message(key.getClass(), (short) 0, i);
                byte[] kb = MessageUtil.toCoordinatorTypePrefixedBytes(k);
                byte[] vb = MessageUtil.toVersionPrefixedBytes(v, message(value.getClass(), v, i));
                list.add(new Pair(kb, vb));
                list.add(new Pair(kb, mutate(vb)));
                list.add(new Pair(mutate(kb), vb));
                if (i == 0) {
                    list.add(new Pair(kb, null));
                    list.add(new Pair(kb, new byte[0]));
                    list.add(new Pair(kb, withShort(vb, (short) (value.highestSupportedVersion() + 1))));
                    list.add(new Pair(kb, withShort(vb, (short) -1)));
                    list.add(new Pair(withShort(kb, (short) random.nextInt()), vb));
                }
            }
        }
        list.add(new Pair(new byte[0], null));
        list.add(new Pair(new byte[1], new byte[3]));
        for (short unknown : new short[] {9, 18, 24, -1, Short.MAX_VALUE})
            list.add(new Pair(ByteBuffer.allocate(4).putShort(unknown).array(), new byte[2]));
    }

    /** Records of one type, in a frame. */
    static void framed(List<Pair> list, ApiMessage prototype) throws Exception {
        for (short v = prototype.lowestSupportedVersion(); v <= prototype.highestSupportedVersion(); v++) {
            for (int i = 0; i < perVersion; i++) {
                byte[] body = bytes(message(prototype.getClass(), v, i), v);
                byte[] whole = frame(1, prototype.apiKey(), v, body);
                list.add(new Pair(null, whole));
                list.add(new Pair(null, mutate(whole)));
                if (i == 0) {
                    list.add(new Pair(null, frame(1, prototype.apiKey(), prototype.highestSupportedVersion() + 1, body)));
                    list.add(new Pair(null, frame(1, prototype.apiKey(), v, Arrays.copyOf(body, body.length + 2))));
                    list.add(new Pair("a key".getBytes(), frame(1, prototype.apiKey(), -3, body)));
                }
            }
        }
    }

    /** Broken frames. */
    static void frames(List<Pair> list) {
        list.add(new Pair(null, null));
        list.add(new Pair(new byte[0], new byte[0]));
        for (int[] f : new int[][] {{0, 2, 0}, {2, 2, 0}, {1, 99, 0}, {1, 40000, 0}, {1, 2, 32768}, {70000, 1, 1}, {1, -1, 0},
                {0xffff0001, 20, 0}, {1, 6, 0}, {1, 13, 0}, {1, 16, 0}, {1, 30, 0}, {1, 4, 0}})
            list.add(new Pair(null, frame(f[0], f[1], f[2], new byte[] {0})));
        list.add(new Pair(null, new byte[] {1}));
        list.add(new Pair(null, new byte[] {1, 20}));
        list.add(new Pair(null, new byte[] {1, (byte) 0x80, (byte) 0x80, (byte) 0x80, (byte) 0x80, (byte) 0x80, 0}));
        list.add(new Pair(null, new byte[] {(byte) 0x81, 0, (byte) 0x94, 0, (byte) 0x80, (byte) 0x80, 0, 0}));
    }

    static byte[] frame(int version, int key, int messageVersion, byte[] body) {
        ByteBuffer b = ByteBuffer.allocate(15 + body.length);
        ByteUtils.writeUnsignedVarint(version, b);
        ByteUtils.writeUnsignedVarint(key, b);
        ByteUtils.writeUnsignedVarint(messageVersion, b);
        b.put(body);
        return Arrays.copyOf(b.array(), b.position());
    }

    /** Control records of all types that the real tool survives. */
    static List<Pair> controls() throws Exception {
        List<Pair> list = new ArrayList<>();
        for (int i = 0; i < 4 * perVersion; i++) {
            list.add(control(i % 2, MessageUtil.toVersionPrefixedBytes((short) 0, message(EndTxnMarker.class, (short) 0, i))));
            list.add(control(2, bytes(((LeaderChangeMessage) message(LeaderChangeMessage.class, (short) 0, i)).setVersion((short) 0), (short) 0)));
            short any = i < 4 ? 0 : (short) random.nextInt();
            list.add(control(3, bytes(((SnapshotHeaderRecord) message(SnapshotHeaderRecord.class, (short) 0, i)).setVersion(any), (short) 0)));
            list.add(control(4, bytes(((SnapshotFooterRecord) message(SnapshotFooterRecord.class, (short) 0, i)).setVersion(any), (short) 0)));
            list.add(control(5, bytes(((KRaftVersionRecord) message(KRaftVersionRecord.class, (short) 0, i)).setVersion(any), (short) 0)));
            list.add(control(6, bytes(((VotersRecord) message(VotersRecord.class, (short) 0, i)).setVersion(any), (short) 0)));
        }
        list.add(control(0, new byte[] {0, 5, 0, 0, 0, 7, 9, 9}));
        list.add(control(1, new byte[] {0, 0, -1, -1, -1, -1}));
        list.add(control(7, new byte[] {0, 0}));
        list.add(control(-3, null));
        list.add(control(2, new byte[] {0, 1, 0, 0, 0, 1, 1, 1, 0}));
        list.add(control(4, new byte[] {0, 0, 0, 77}));
        list.add(new Pair(new byte[] {0, 3, 0, 4, 8, 8}, new byte[] {0, 0, 0}));
        return list;
    }

    static Pair control(int type, byte[] value) {
        return new Pair(ByteBuffer.allocate(4).putShort((short) 0).putShort((short) type).array(), value);
    }

    static byte[] withShort(byte[] b, short n) {
        byte[] c = b.clone();
        ByteBuffer.wrap(c).putShort(n);
        return c;
    }

    /** A copy with something wrong: cut, longer, a byte or a few changed, a piece taken out or put in. */
    static byte[] mutate(byte[] b) {
        byte[] c = b.clone();
        if (c.length < 3) return c;
        int at = random.nextInt(8) == 0 ? random.nextInt(c.length) : 2 + random.nextInt(c.length - 2);
        switch (random.nextInt(6)) {
            case 0: return Arrays.copyOf(c, at);
            case 1: return Arrays.copyOf(c, c.length + 1 + random.nextInt(3));
            case 2: c[at] ^= (byte) (1 << random.nextInt(8)); return c;
            case 3: c[at] = (byte) new int[] {0, 1, 2, 0x7f, 0x80, 0xff, 0xc3, 0xed}[random.nextInt(8)]; return c;
            case 4:
                for (int i = at; i < Math.min(c.length, at + 5); i++) c[i] = (byte) (random.nextBoolean() ? 0xff : random.nextInt());
                return c;
            default:
                byte[] d = Arrays.copyOf(c, c.length - 1);
                System.arraycopy(c, at + 1 > c.length ? at : at + 1, d, at, c.length - at - 1);
                return d;
        }
    }

    static byte[] bytes(Message m, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer b = ByteBuffer.allocate(m.size(cache, version));
        m.write(new ByteBufferAccessor(b), cache, version);
        return b.array();
    }

    /** A message with random values in the fields that its version has. The first of a series has few surprises. */
    static Message message(Class<?> type, short version, int index) throws Exception {
        Message m = (Message) type.getDeclaredConstructor().newInstance();
        for (Field f : type.getDeclaredFields()) {
            if (Modifier.isStatic(f.getModifiers())) continue;
            f.setAccessible(true);
            if (f.getName().equals("_unknownTaggedFields")) continue;
            if (f.getName().equals("next") || f.getName().equals("prev")) continue; // of the collection it is in
            if (index == 0 && random.nextInt(3) == 0) continue; // keeps its default
            for (int attempt = 0; attempt < 4; attempt++) {
                Object value = value(f, m, version, index, attempt > 0);
                if (fits(type, f, value, version)) {
                    f.set(m, value);
                    break;
                }
            }
        }
        if (index > 1 && random.nextInt(6) == 0) addUnknownTags(m, version);
        return m;
    }

    static void addUnknownTags(Message m, short version) {
        List<RawTaggedField> tags = m.unknownTaggedFields();
        int before = tags.size();
        tags.add(new RawTaggedField(40 + random.nextInt(200), blob()));
        try {
            m.addSize(new MessageSizeAccumulator(), new ObjectSerializationCache(), version);
        } catch (RuntimeException e) {
            while (tags.size() > before) tags.remove(tags.size() - 1); // the version has no tags
        }
    }

    /** Whether the version can hold the value. */
    static boolean fits(Class<?> type, Field f, Object value, short version) throws Exception {
        Message probe = (Message) type.getDeclaredConstructor().newInstance();
        f.set(probe, value);
        try {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            MessageSizeAccumulator size = new MessageSizeAccumulator();
            probe.addSize(size, cache, version);
            ByteBuffer b = ByteBuffer.allocate(size.totalSize());
            probe.write(new ByteBufferAccessor(b), cache, version);
            return true;
        } catch (RuntimeException e) {
            return false;
        }
    }

    static Object value(Field f, Message owner, short version, int index, boolean notNull) throws Exception {
        Class<?> t = f.getType();
        if (t == boolean.class) return random.nextBoolean();
        if (t == byte.class && f.getName().endsWith("State") && random.nextInt(6) > 0) return (byte) random.nextInt(4);
        if (t == byte.class) return (byte) (random.nextInt(3) == 0 ? random.nextInt() : random.nextInt(9) - 1);
        if (t == short.class) return (short) integer();
        if (t == int.class) return f.getName().toLowerCase().endsWith("port") ? random.nextInt(1 << 16) : (int) integer();
        if (t == long.class && f.getName().equals("endOffset") && random.nextInt(6) > 0) return Long.MAX_VALUE - random.nextInt(1000);
        if (t == long.class) return integer();
        if (t == double.class) return number();
        if (!notNull && random.nextInt(4) == 0) return null;
        if (t == byte[].class) return f.getName().equals("subscription") || f.getName().equals("assignment") ? consumer(f.getName(), index) : blob();
        if (t == ByteBuffer.class) return ByteBuffer.wrap(blob());
        if (t == Uuid.class) return uuid();
        if (t == String.class) return f.getName().equals("protocolType") && random.nextInt(4) > 0 ? "consumer" : string();
        if (Message.class.isAssignableFrom(t) && !Collection.class.isAssignableFrom(t)) return message(t, version, index);
        int n = new int[] {0, 1, 1, 2, 3, 5}[random.nextInt(6)];
        if (Collection.class.isAssignableFrom(t) && t != List.class) return collection(t, version, index, n);
        Class<?> element = (Class<?>) ((ParameterizedType) f.getGenericType()).getActualTypeArguments()[0];
        List<Object> list = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            if (element == String.class) list.add(string());
            else if (element == Uuid.class) list.add(uuid());
            else if (element == Integer.class) list.add((int) integer());
            else if (element == Short.class) list.add((short) integer());
            else list.add(message(element, version, index));
        }
        return list;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static Object collection(Class<?> t, short version, int index, int n) throws Exception {
        Collection c = (Collection) t.getDeclaredConstructor().newInstance();
        Class<?> element = (Class<?>) ((ParameterizedType) t.getGenericSuperclass()).getActualTypeArguments()[0];
        for (int i = 0; i < n; i++) c.add(message(element, version, index));
        return c;
    }

    /** What a member of a group with the protocol "consumer" may write, and some of what it may not. */
    static byte[] consumer(String name, int index) throws Exception {
        if (random.nextInt(8) == 0) return blob();
        short v = (short) random.nextInt(4);
        Class<?> type = name.equals("subscription") ? ConsumerProtocolSubscription.class : ConsumerProtocolAssignment.class;
        byte[] b = MessageUtil.toVersionPrefixedBytes(v, message(type, v, index));
        if (random.nextInt(8) == 0) b = withShort(b, (short) (random.nextInt(8) - 2));
        return random.nextInt(8) == 0 ? mutate(b) : b;
    }

    static long integer() {
        switch (random.nextInt(6)) {
            case 0: return -1;
            case 1: return random.nextLong();
            case 2: return new long[] {0, 1, -2, Long.MAX_VALUE, Long.MIN_VALUE, Integer.MAX_VALUE, Short.MIN_VALUE}[random.nextInt(7)];
            default: return random.nextInt(1000);
        }
    }

    static double number() {
        switch (random.nextInt(5)) {
            case 0: return new double[] {0, -0.0, 1, 0.001, 1e7, 9999999, 1e-5, Double.MIN_VALUE, Double.MAX_VALUE, Double.NaN,
                Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, 1e23, 2e-3, 123456789.125}[random.nextInt(15)];
            case 1: return random.nextInt(1 << 30);
            case 2: return random.nextInt(1 << 20) / 8.0;
            case 3: return random.nextGaussian() * 1e6;
            default: return Double.longBitsToDouble(random.nextLong());
        }
    }

    static Uuid uuid() {
        return random.nextInt(5) == 0 ? Uuid.ZERO_UUID : new Uuid(random.nextLong(), random.nextLong());
    }

    static byte[] blob() {
        byte[] b = new byte[random.nextInt(3) == 0 ? 0 : random.nextInt(20)];
        random.nextBytes(b);
        return b;
    }

    static String string() {
        String[] pool = {"", "orders", "group-1", "a\"b\\c", "tab\tline\nreturn\rbell\u0007del\u007f", "caf\u00e9 \u20ac \ud83d\ude00",
            "\u2028</script>&", "consumer", "null", "\u0000\u001f\b\f", "x".repeat(130), "\ufffd"};
        return random.nextInt(3) == 0 ? Long.toString(random.nextLong(), 36) : pool[random.nextInt(pool.length)];
    }

    static void write(String partition, String decoder, List<Pair> pairs, boolean control) throws Exception {
        Path dir = Files.createDirectories(out.resolve(partition));
        Path log = dir.resolve("00000000000000000000.log");
        ByteArrayOutputStream file = new ByteArrayOutputStream();
        long offset = 0;
        for (int i = 0; i < pairs.size(); ) {
            MemoryRecordsBuilder b = MemoryRecords.builder(ByteBuffer.allocate(1 << 16), (byte) 2, Compression.NONE,
                TimestampType.CREATE_TIME, offset, 1700000000000L, -1, (short) -1, -1, false, 0);
            for (int n = 0; n < 50 && i < pairs.size(); n++, i++, offset++)
                b.append(1700000000000L, pairs.get(i).key(), pairs.get(i).value());
            MemoryRecords records = b.build();
            byte[] batch = new byte[records.sizeInBytes()];
            records.buffer().duplicate().get(batch);
            if (control) markControl(batch);
            file.write(batch);
        }
        Files.write(log, file.toByteArray());
        PrintStream stdout = System.out;
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        try (PrintStream to = new PrintStream(text, false, StandardCharsets.UTF_8)) {
            System.setOut(to);
            DumpLogSegments.main(new String[] {"--files", log.toString(), decoder});
        } finally {
            System.setOut(stdout);
        }
        Files.writeString(out.resolve(partition + ".decoded.txt"),
            text.toString(StandardCharsets.UTF_8).replace(out + "/", ""));
    }

    /** Makes a batch a control batch: attribute bit 5, and the checksum anew. */
    static void markControl(byte[] batch) {
        batch[22] |= 0x20;
        java.util.zip.CRC32C crc = new java.util.zip.CRC32C();
        crc.update(batch, 21, batch.length - 21);
        ByteBuffer.wrap(batch).putInt(17, (int) crc.getValue());
    }
}
