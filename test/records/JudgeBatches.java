import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.ScheduledFuture;
import java.util.stream.Collectors;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.DefaultRecord;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Makes sound and broken batches from a seed and lets Apache Kafka's own log judge each. A line of
 * the output is a case:
 *
 *   code  indexes  readable  stored  rules  bytes
 *
 * code: the partition's error. indexes: of the record errors. readable: 1 when Kafka's full reader
 * takes every record. stored: bytes 21..60 of the stored header, "|", its decompressed records.
 * rules: version,compacted,append-time,codec (-1: producer),level,before,after,max-bytes.
 */
public class JudgeBatches {
    static final long NOW = 1700000005000L;
    static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    static final Compression[] CODEC = new Compression[5];
    static long producerIds = 1000;
    final Random random;
    final Map<String, UnifiedLog> logs = new HashMap<>();
    final File root;

    JudgeBatches(long seed, File root) {
        this.random = new Random(seed);
        this.root = root;
    }

    static class FixedTime implements Time {
        public long milliseconds() { return NOW; }
        public long nanoseconds() { return NOW * 1000000; }
        public void sleep(long ms) { }
    }

    static class NoScheduler implements Scheduler {
        public void startup() { }
        public void shutdown() { }
        public ScheduledFuture<?> schedule(String name, Runnable task, long delay, long period) { return null; }
        public void resizeThreadPool(int size) { }
    }

    // ---- rules

    record Rules(short version, boolean compacted, boolean appendTime, int codec, int level, long before, long after, int maxBytes) {
        public String toString() {
            return version + "," + (compacted ? 1 : 0) + "," + (appendTime ? 1 : 0) + "," + codec + "," + level + "," + before + "," + after + "," + maxBytes;
        }
    }

    boolean chance(double p) {
        return random.nextDouble() < p;
    }

    <T> T pick(T... values) {
        return values[random.nextInt(values.length)];
    }

    Rules rules(int size) {
        int codec = chance(0.6) ? -1 : random.nextInt(5);
        int level = codec == 1 ? pick(-1, 1, 9) : codec == 3 ? pick(9, 1, 17) : codec == 4 ? pick(3, -5, 10) : 0;
        int max = chance(0.9) ? 1048588 : chance(0.5) ? size : size - 1;
        return new Rules(pick((short) 3, (short) 6, (short) 7, (short) 9, (short) 13), chance(0.3), chance(0.2), codec, level,
            chance(0.7) ? Long.MAX_VALUE : 1000L, chance(0.7) ? 3600000L : 1000L, max);
    }

    UnifiedLog log(Rules rules) throws Exception {
        String key = rules.toString().substring(rules.toString().indexOf(',') + 1);
        UnifiedLog log = logs.get(key);
        if (log != null) return log;
        Properties config = new Properties();
        config.put("cleanup.policy", rules.compacted ? "compact" : "delete");
        config.put("message.timestamp.type", rules.appendTime ? "LogAppendTime" : "CreateTime");
        config.put("compression.type", rules.codec < 0 ? "producer" : rules.codec == 0 ? "uncompressed" : CODECS[rules.codec]);
        if (rules.codec == 1 || rules.codec == 3 || rules.codec == 4)
            config.put("compression." + CODECS[rules.codec] + ".level", "" + rules.level);
        config.put("message.timestamp.before.max.ms", "" + rules.before);
        config.put("message.timestamp.after.max.ms", "" + rules.after);
        config.put("max.message.bytes", "" + Math.max(rules.maxBytes, 0));
        File folder = new File(root, "t-" + logs.size());
        if (!folder.mkdirs()) throw new IllegalStateException("could not make " + folder);
        log = UnifiedLog.create(folder, new LogConfig(config), 0, 0, new NoScheduler(), new BrokerTopicStats(), new FixedTime(), 60000,
            new ProducerStateManagerConfig(86400000, false), 600000, new LogDirFailureChannel(1), true, Optional.of(Uuid.randomUuid()));
        logs.put(key, log);
        return log;
    }

    // ---- batches

    ByteBuffer bytes(int most) {
        byte[] made = new byte[random.nextInt(most)];
        for (int i = 0; i < made.length; i++) made[i] = (byte) ('a' + i % 7);
        return ByteBuffer.wrap(made);
    }

    long timestamp() {
        if (chance(0.1)) return -1;
        if (chance(0.05)) return pick(0L, Long.MAX_VALUE, Long.MIN_VALUE, -5L, NOW + 3600000, NOW + 3600001, NOW - 1000, NOW - 1001);
        return NOW - random.nextInt(900) + (chance(0.05) ? 2000000 : 0) - (chance(0.05) ? 2000000 : 0);
    }

    byte[] records(int count, long base, boolean shuffled) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        DataOutputStream data = new DataOutputStream(out);
        for (int i = 0; i < count; i++) {
            Header[] headers = new Header[chance(0.2) ? random.nextInt(3) : 0];
            for (int h = 0; h < headers.length; h++) headers[h] = new RecordHeader("h" + h, chance(0.3) ? null : new byte[] {1, 2});
            long delta = (i == 0 ? base : timestamp()) - base;
            DefaultRecord.writeTo(data, shuffled ? random.nextInt(4) - 1 : i, delta, chance(0.25) ? null : bytes(6), chance(0.1) ? null : bytes(20), headers);
        }
        return out.toByteArray();
    }

    static final int[] EDGES = {0, 1, 2, 3, 0x7e, 0x7f, 0x80, 0x81, 0xfe, 0xff};

    byte[] mutate(byte[] in) {
        byte[] out = in.clone();
        switch (random.nextInt(5)) {
            case 0: case 1:
                if (out.length > 0) out[random.nextInt(out.length)] = (byte) (chance(0.7) ? EDGES[random.nextInt(EDGES.length)] : random.nextInt(256));
                return out;
            case 2:
                return java.util.Arrays.copyOf(in, in.length + 1 + random.nextInt(30));
            case 3:
                return java.util.Arrays.copyOf(in, random.nextInt(in.length + 1));
            default:
                int at = random.nextInt(in.length + 1);
                byte[] more = new byte[in.length + 1];
                System.arraycopy(in, 0, more, 0, at);
                more[at] = (byte) EDGES[random.nextInt(EDGES.length)];
                System.arraycopy(in, at, more, at + 1, in.length - at);
                return more;
        }
    }

    byte[] compress(byte[] in, int codec) throws Exception {
        ByteBufferOutputStream out = new ByteBufferOutputStream(64);
        try (OutputStream wrapped = CODEC[codec].wrapForOutput(out, (byte) 2)) {
            wrapped.write(in);
        }
        ByteBuffer made = out.buffer();
        made.flip();
        byte[] bytes = new byte[made.remaining()];
        made.get(bytes);
        return bytes;
    }

    static byte[] join(byte[] a, byte[] b) {
        byte[] all = java.util.Arrays.copyOf(a, a.length + b.length);
        System.arraycopy(b, 0, all, a.length, b.length);
        return all;
    }

    /** What stands behind the header: now and then in a framing that other clients write. */
    byte[] payload(byte[] records, int codec) throws Exception {
        if (codec == 0) return records;
        if (chance(0.08)) {
            int cut = random.nextInt(records.length + 1);
            byte[] head = java.util.Arrays.copyOf(records, cut);
            byte[] tail = java.util.Arrays.copyOfRange(records, cut, records.length);
            return join(compress(head, codec), compress(tail, codec));
        }
        if (codec == 2 && chance(0.2)) return org.xerial.snappy.Snappy.compress(records);
        return compress(records, codec);
    }

    byte[] batch() throws Exception {
        int count = 1 + random.nextInt(4);
        int codec = random.nextInt(5);
        long base = timestamp();
        byte[] records = records(count, base, chance(0.08));
        if (chance(0.3)) records = mutate(records);
        byte[] payload = payload(records, codec);
        if (codec != 0 && chance(0.15)) payload = mutate(payload);
        ByteBuffer out = ByteBuffer.allocate(61 + payload.length);
        out.putLong(0).putInt(49 + payload.length).putInt(-1).put((byte) 2).putInt(0);
        int attributes = codec;
        if (chance(0.03)) attributes |= pick(8, 16, 32, 64, 128, 0x4000, 5, 6, 7);
        long producer = chance(0.2) ? producerIds++ : -1;
        out.putShort((short) attributes).putInt(count - 1).putLong(base).putLong(chance(0.7) ? NOW : timestamp());
        out.putLong(producer).putShort((short) (producer < 0 ? -1 : 0)).putInt(producer < 0 ? -1 : 0).putInt(count).put(payload);
        if (chance(0.2)) mutateHeader(out);
        if (chance(0.97)) {
            java.util.zip.CRC32C crc = new java.util.zip.CRC32C();
            crc.update(out.array(), 21, out.capacity() - 21);
            out.putInt(17, (int) crc.getValue());
        }
        return out.array();
    }

    void mutateHeader(ByteBuffer out) {
        int i = pick(0, 1, -1, 3, 4, -2, Integer.MAX_VALUE, Integer.MIN_VALUE);
        switch (random.nextInt(10)) {
            case 0: out.putLong(0, i); break;
            case 1: out.putInt(8, chance(0.5) ? i : out.capacity() - 12 + pick(-1, 1, -20)); break;
            case 2: out.put(16, (byte) (int) pick(0, 1, 3, -1, 127)); break;
            case 3: out.putShort(21, (short) (out.getShort(21) ^ (1 << random.nextInt(16)))); break;
            case 4: out.putInt(23, i); break;
            case 5: out.putLong(27, pick(NOW, 0L, -1L, Long.MAX_VALUE, Long.MIN_VALUE)); break;
            case 6: out.putLong(35, pick(NOW, 0L, -1L, Long.MAX_VALUE, Long.MIN_VALUE)); break;
            case 7: out.putLong(43, pick(-1L, -2L, producerIds++)); break;
            case 8: out.putInt(53, pick(-1, -2, 0)); break;
            default: out.putInt(57, i); break;
        }
    }

    byte[] bytes() throws Exception {
        byte[] batch = batch();
        if (chance(0.95)) return batch;
        byte[] tail;
        switch (random.nextInt(4)) {
            case 0: tail = new byte[random.nextInt(12)]; break;
            case 1: tail = batch(); break;
            case 2: tail = java.util.Arrays.copyOf(batch(), 12 + random.nextInt(40)); break;
            default:
                tail = new byte[30];
                ByteBuffer.wrap(tail).putInt(8, pick(5, 1000, -1, 13, 14)).put(16, (byte) (int) pick(2, 3, 0));
        }
        return join(batch, tail);
    }

    // ---- the judge

    static String hex(byte[] bytes, int from, int to) {
        StringBuilder out = new StringBuilder();
        for (int i = from; i < to; i++) out.append(String.format("%02x", bytes[i]));
        return out.toString();
    }

    static boolean readable(byte[] bytes) {
        try {
            for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches())
                for (Record record : batch) {
                    record.key();
                    record.headers();
                }
            return true;
        } catch (RuntimeException | Error e) {
            return false;
        }
    }

    /** What the payload holds; where it breaks off behind its records, which Kafka does not look at, what came before. */
    static byte[] inflate(byte[] stored, int codec) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteBuffer payload = ByteBuffer.wrap(stored, 61, stored.length - 61).slice();
        try (InputStream in = CODEC[codec].wrapForInput(payload, (byte) 2, BufferSupplier.NO_CACHING)) {
            for (int next = in.read(); next >= 0; next = in.read()) out.write(next);
        } catch (IOException | KafkaException e) {
            if (out.size() == 0) throw e;
        }
        return out.toByteArray();
    }

    static String stored(UnifiedLog log, long offset) throws Exception {
        FileRecords records = (FileRecords) log.read(offset, 1 << 24, FetchIsolation.LOG_END, true).records;
        ByteBuffer buffer = ByteBuffer.allocate(records.sizeInBytes());
        records.readInto(buffer, 0);
        byte[] stored = buffer.array();
        byte[] inflated = inflate(stored, stored[22] & 7);
        return hex(stored, 21, 61) + "|" + hex(inflated, 0, inflated.length);
    }

    String judge(Rules rules, byte[] bytes) throws Exception {
        UnifiedLog log = log(rules);
        long end = log.logEndOffset();
        try {
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes.clone()));
            ProduceRequest.validateRecords(rules.version, records);
            log.appendAsLeader(records, 0, AppendOrigin.CLIENT, RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 0);
        } catch (RecordValidationException e) {
            return Errors.forException(e.invalidException()).code() + "\t"
                + e.recordErrors().stream().map(r -> "" + r.batchIndex).collect(Collectors.joining(",")) + "\t-";
        } catch (Throwable e) {
            if (System.getenv("TRACE") != null) e.printStackTrace();
            short code = Errors.forException(e).code();
            // What the producer's state refuses has passed validation.
            boolean state = code == 45 || code == 47 || code == 48 || code == 49;
            return (state ? 0 : code) + "\t-\t-";
        }
        return "0\t-\t" + (log.logEndOffset() > end ? stored(log, end) : "-");
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 5; i++) CODEC[i] = Compression.of(CODECS[i]).build();
        File root = Files.createTempDirectory("judge").toFile();
        JudgeBatches judge = new JudgeBatches(Long.parseLong(args[0]), root);
        int count = Integer.parseInt(args[1]);
        int most = Integer.parseInt(args[2]);
        StringBuilder out = new StringBuilder("# Written by test/records/JudgeBatches.java with the classes of Apache Kafka " + args[3] + "\n");
        for (int i = 0; i < count;) {
            byte[] bytes = judge.bytes();
            if (bytes.length > most) continue;
            Rules rules = judge.rules(bytes.length);
            if (System.getenv("TRACE") != null) System.err.println("case " + (i + 2));
            String[] verdict = judge.judge(rules, bytes).split("\t");
            out.append(String.join("\t", verdict[0], verdict[1], readable(bytes) ? "1" : "0", verdict[2], rules.toString(), hex(bytes, 0, bytes.length))).append('\n');
            i++;
        }
        System.out.print(out);
        try (var files = Files.walk(root.toPath())) {
            files.sorted(java.util.Comparator.reverseOrder()).forEach(p -> p.toFile().delete());
        }
    }
}
