import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Makes a broker write every kind of file: codecs, times, transactions, compaction, groups of three protocols. */
public class FillLogs {
    static String servers;
    static final Random random = new Random(1);

    static KafkaProducer<byte[], byte[]> producer(Object... more) {
        Properties p = new Properties();
        p.put("bootstrap.servers", servers);
        p.put("key.serializer", ByteArraySerializer.class);
        p.put("value.serializer", ByteArraySerializer.class);
        for (int i = 0; i < more.length; i += 2) p.put(more[i].toString(), more[i + 1]);
        return new KafkaProducer<>(p);
    }

    static byte[] bytes(int size) {
        byte[] made = new byte[size];
        for (int i = 0; i < size; i++) made[i] = (byte) ('a' + random.nextInt(26));
        return made;
    }

    static ProducerRecord<byte[], byte[]> record(String topic, int i, int size) {
        byte[] key = i % 4 == 0 ? null : ("key-" + i % 50).getBytes();
        ProducerRecord<byte[], byte[]> made = new ProducerRecord<>(topic, 0, key, i % 7 == 6 ? null : bytes(size));
        if (i % 5 == 0) made.headers().add("trace", ("id " + i).getBytes()).add("empty", null);
        return made;
    }

    static void codecs() throws Exception {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            try (var p = producer("compression.type", codec, "linger.ms", 20, "batch.size", 4000)) {
                for (int i = 0; i < 400; i++) p.send(record("c-" + codec, i, 60));
            }
        }
        try (var p = producer("enable.idempotence", "false")) {
            for (int i = 0; i < 50; i++) p.send(record("appendtime", i, 20));
        }
        try (var p = producer("linger.ms", 5)) {
            for (int i = 0; i < 3500; i++) p.send(record("segments", i, 1000));
        }
    }

    static void transactions() throws Exception {
        for (int t = 0; t < 6; t++) {
            try (var p = producer("transactional.id", "txn-" + t % 3, "linger.ms", 5)) {
                p.initTransactions();
                p.beginTransaction();
                for (int i = 0; i < 5; i++) p.send(record("txn", i, 30));
                p.flush();
                if (t % 2 == 0) p.commitTransaction();
                else p.abortTransaction();
            }
        }
    }

    static void compacted() throws Exception {
        try (var p = producer("linger.ms", 0)) {
            for (int i = 0; i < 2500; i++) {
                byte[] key = ("key-" + i % 20).getBytes();
                p.send(new ProducerRecord<>("compacted", 0, key, i > 2000 && i % 20 < 5 ? null : bytes(1000)));
                if (i % 100 == 0) p.flush();
            }
        }
    }

    static void consume(String protocol) {
        Properties p = new Properties();
        p.put("bootstrap.servers", servers);
        p.put("group.id", "group-" + protocol);
        p.put("group.protocol", protocol);
        p.put("auto.offset.reset", "earliest");
        p.put("enable.auto.commit", "false");
        p.put("key.deserializer", ByteArrayDeserializer.class);
        p.put("value.deserializer", ByteArrayDeserializer.class);
        try (KafkaConsumer<byte[], byte[]> c = new KafkaConsumer<>(p)) {
            c.subscribe(List.of("c-none", "txn"));
            for (int i = 0, got = 0; i < 100 && got < 100; i++) got += c.poll(Duration.ofMillis(200)).count();
            c.commitSync();
        }
    }

    static void share() throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, "group-share");
            admin.incrementalAlterConfigs(Map.of(group, List.of(
                new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET)))).all().get();
        }
        Properties p = new Properties();
        p.put("bootstrap.servers", servers);
        p.put("group.id", "group-share");
        p.put("key.deserializer", ByteArrayDeserializer.class);
        p.put("value.deserializer", ByteArrayDeserializer.class);
        try (KafkaShareConsumer<byte[], byte[]> c = new KafkaShareConsumer<>(p)) {
            c.subscribe(List.of("c-lz4"));
            for (int i = 0, got = 0; i < 100 && got < 50; i++) got += c.poll(Duration.ofMillis(200)).count();
            c.commitSync();
        }
    }

    public static void main(String[] args) throws Exception {
        servers = args[0];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            NewTopic small = new NewTopic("segments", 1, (short) 1).configs(Map.of("segment.bytes", "1048576"));
            NewTopic compacted = new NewTopic("compacted", 1, (short) 1).configs(Map.of("cleanup.policy", "compact", "segment.bytes", "1048576",
                "min.cleanable.dirty.ratio", "0.01", "segment.ms", "500"));
            NewTopic stamped = new NewTopic("appendtime", 1, (short) 1).configs(Map.of("message.timestamp.type", "LogAppendTime"));
            admin.createTopics(List.of(small, compacted, stamped, new NewTopic("txn", 1, (short) 1))).all().get();
            for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd"))
                admin.createTopics(List.of(new NewTopic("c-" + codec, 1, (short) 1))).all().get();
        }
        codecs();
        transactions();
        compacted();
        consume("classic");
        consume("consumer");
        share();
        Thread.sleep(Long.parseLong(args[1]));
        compacted();
        Thread.sleep(Long.parseLong(args[1]));
    }
}
