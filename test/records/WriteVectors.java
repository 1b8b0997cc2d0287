import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;
import java.util.zip.Checksum;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;

/**
 * Writes batches of every kind with Apache Kafka's own classes into a folder, one file each, and
 * index.tsv with what Kafka's own reader finds in them: a line per batch and a line per record.
 * Bytes are given as size:crc32c, null as "-".
 */
public class WriteVectors {
    static final long NOW = 1700000000000L;
    static Path folder;
    static final StringBuilder index = new StringBuilder();

    static String sum(ByteBuffer bytes) {
        if (bytes == null) return "-";
        CRC32C crc = new CRC32C();
        int size = bytes.remaining();
        crc.update(bytes.duplicate());
        return String.format("%d:%08x", size, crc.getValue());
    }

    static void write(String name, MemoryRecords records) throws Exception {
        ByteBuffer all = records.buffer().duplicate();
        byte[] bytes = new byte[all.remaining()];
        all.get(bytes);
        Files.write(folder.resolve(name + ".bin"), bytes);
        for (RecordBatch batch : records.batches()) {
            batch.ensureValid();
            index.append(String.join("\t", "batch", name, "" + batch.magic(), "" + batch.baseOffset(),
                "" + batch.lastOffset(), "" + batch.sizeInBytes(), batch.compressionType().name,
                batch.timestampType().name, "" + batch.isTransactional(), "" + batch.isControlBatch(),
                "" + batch.maxTimestamp(), "" + batch.producerId(), "" + batch.producerEpoch(),
                "" + batch.baseSequence(), "" + batch.lastSequence(), "" + batch.partitionLeaderEpoch(),
                "" + batch.deleteHorizonMs().orElse(-1))).append('\n');
            for (Record record : batch) {
                index.append(String.join("\t", "record", name, "" + record.offset(), "" + record.timestamp(),
                    "" + record.sequence(), sum(record.key()), sum(record.value())));
                for (Header header : record.headers()) {
                    index.append('\t').append(sum(ByteBuffer.wrap(header.key().getBytes("UTF-8"))));
                    index.append('\t').append(header.value() == null ? "-" : sum(ByteBuffer.wrap(header.value())));
                }
                if (batch.isControlBatch()) index.append('\t').append(ControlRecordType.parse(record.key()));
                index.append('\n');
            }
        }
    }

    /** A value that compresses, but not to nothing: words in an order that a small generator gives. */
    static byte[] value(int size, long seed) {
        byte[] bytes = new byte[size];
        long state = seed * 7919 + 17;
        for (int i = 0; i < size;) {
            state = state * 6364136223846793005L + 1442695040888963407L;
            String word = "jackdaw-" + ((state >>> 40) & 63) + " ";
            for (int j = 0; j < word.length() && i < size; j++) bytes[i++] = (byte) word.charAt(j);
        }
        return bytes;
    }

    static MemoryRecordsBuilder builder(Compression codec, byte magic, TimestampType type, long baseOffset) {
        return new MemoryRecordsBuilder(new ByteBufferOutputStream(1024), magic, codec, type, baseOffset,
            type == TimestampType.LOG_APPEND_TIME ? NOW + 9999 : RecordBatch.NO_TIMESTAMP,
            RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_PRODUCER_EPOCH, RecordBatch.NO_SEQUENCE, false, false,
            magic < 2 ? -1 : 3, 1 << 24);
    }

    static void fill(MemoryRecordsBuilder builder, int count, int valueSize) {
        for (int i = 0; i < count; i++) {
            byte[] key = i % 3 == 0 ? null : ("key-" + i).getBytes();
            byte[] body = i % 5 == 4 ? null : value(valueSize, i);
            Header[] headers = builder.magic() == 2 && i % 4 == 1
                ? new Header[] {new RecordHeader("h", "x".getBytes()), new RecordHeader("h", null), new RecordHeader("", new byte[0])}
                : new Header[0];
            builder.append(NOW + (i * 37 % 11) * 1000, key, body, headers);
        }
    }

    static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};

    static Compression codec(String name) {
        return Compression.of(name).build();
    }

    static void codecs() throws Exception {
        for (String name : CODECS) {
            for (TimestampType type : new TimestampType[] {TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME}) {
                MemoryRecordsBuilder builder = builder(codec(name), (byte) 2, type, 40);
                fill(builder, 12, 60);
                write("v2-" + name + "-" + type.name, builder.build());
            }
            if (name.equals("none")) continue;
            // Several blocks or chunks of each framing, and records across their bounds.
            MemoryRecordsBuilder builder = builder(codec(name), (byte) 2, TimestampType.CREATE_TIME, 0);
            for (int i = 0; i < 3; i++) builder.append(NOW + i, ("big-" + i).getBytes(), new byte[90_000 + i]);
            builder.append(NOW, null, value(3000, 1));
            write("v2-" + name + "-blocks", builder.build());
        }
        for (int level : new int[] {1, 9}) write("v2-gzip-" + level, levelled(Compression.gzip().level(level).build()));
        for (int level : new int[] {1, 17}) write("v2-lz4-" + level, levelled(Compression.lz4().level(level).build()));
        for (int level : new int[] {-5, 22}) write("v2-zstd-" + level, levelled(Compression.zstd().level(level).build()));
    }

    static MemoryRecords levelled(Compression codec) {
        MemoryRecordsBuilder builder = builder(codec, (byte) 2, TimestampType.CREATE_TIME, 7);
        fill(builder, 5, 200);
        return builder.build();
    }

    static void producers() throws Exception {
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(new ByteBufferOutputStream(1024), (byte) 2, codec("zstd"),
            TimestampType.CREATE_TIME, 100, RecordBatch.NO_TIMESTAMP, 9000, (short) 2, Integer.MAX_VALUE - 1, true, false, 5, 1 << 20);
        fill(builder, 4, 50);
        write("v2-transaction-wrap", builder.build());
        write("v2-commit", MemoryRecords.withEndTransactionMarker(42, NOW, 5, 4000, (short) 3, new EndTransactionMarker(ControlRecordType.COMMIT, 7)));
        write("v2-abort", MemoryRecords.withEndTransactionMarker(43, NOW, 5, 4000, (short) 3, new EndTransactionMarker(ControlRecordType.ABORT, 8)));
        // As compaction leaves it: gaps in the offsets, a delete horizon as base timestamp.
        builder = new MemoryRecordsBuilder(new ByteBufferOutputStream(1024), (byte) 2, codec("none"), TimestampType.CREATE_TIME, 200,
            RecordBatch.NO_TIMESTAMP, 9000, (short) 2, 50, false, false, 5, 1 << 20, NOW + 86_400_000L);
        builder.appendWithOffset(201, NOW, "a".getBytes(), (byte[]) null);
        builder.appendWithOffset(205, NOW + 5, "b".getBytes(), "x".getBytes());
        builder.overrideLastOffset(209);
        write("v2-compacted", builder.build());
    }

    static void kraft() throws Exception {
        LeaderChangeMessage change = new LeaderChangeMessage().setVersion((short) 0).setLeaderId(1)
            .setVoters(List.of(new LeaderChangeMessage.Voter().setVoterId(1)))
            .setGrantingVoters(List.of(new LeaderChangeMessage.Voter().setVoterId(1)));
        write("v2-leader-change", MemoryRecords.withLeaderChangeMessage(0, NOW, 1, ByteBuffer.allocate(512), change));
        write("v2-snapshot-header", MemoryRecords.withSnapshotHeaderRecord(0, NOW, 1, ByteBuffer.allocate(512),
            new SnapshotHeaderRecord().setVersion((short) 0).setLastContainedLogTimestamp(NOW)));
        write("v2-snapshot-footer", MemoryRecords.withSnapshotFooterRecord(9, NOW, 1, ByteBuffer.allocate(512), new SnapshotFooterRecord().setVersion((short) 0)));
        write("v2-kraft-version", MemoryRecords.withKRaftVersionRecord(1, NOW, 1, ByteBuffer.allocate(512),
            new KRaftVersionRecord().setVersion((short) 0).setKRaftVersion((short) 1)));
        VotersRecord.EndpointCollection endpoints = new VotersRecord.EndpointCollection();
        endpoints.add(new VotersRecord.Endpoint().setName("CONTROLLER").setHost("localhost").setPort(9093));
        write("v2-kraft-voters", MemoryRecords.withVotersRecord(2, NOW, 1, ByteBuffer.allocate(512), new VotersRecord().setVersion((short) 0)
            .setVoters(List.of(new VotersRecord.Voter().setVoterId(1).setVoterDirectoryId(new Uuid(1, 2)).setEndpoints(endpoints)
                .setKRaftVersionFeature(new VotersRecord.KRaftVersionFeature().setMinSupportedVersion((short) 0).setMaxSupportedVersion((short) 1))))));
    }

    static void legacy() throws Exception {
        for (byte magic = 0; magic < 2; magic++) {
            for (String name : CODECS) {
                if (name.equals("zstd")) continue;
                for (TimestampType type : TimestampType.values()) {
                    if ((magic == 0) != (type == TimestampType.NO_TIMESTAMP_TYPE)) continue;
                    MemoryRecordsBuilder builder = builder(codec(name), magic, type, 50);
                    fill(builder, 6, 40);
                    write("v" + magic + "-" + name + "-" + type.name, builder.build());
                }
            }
        }
    }

    public static void main(String[] args) throws Exception {
        folder = Path.of(args[0]);
        Files.createDirectories(folder);
        index.append("# Written by test/records/WriteVectors.java with the classes of Apache Kafka ").append(args[1]).append('\n');
        codecs();
        producers();
        kraft();
        legacy();
        Files.writeString(folder.resolve("index.tsv"), index.toString());
    }
}
