// The agent of Apache Kafka's Java clients; see ../README.md for what an agent answers.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Agent {
    static final ObjectMapper JSON = new ObjectMapper();

    static KafkaProducer<String, String> producer(JsonNode ask) {
        Properties p = new Properties();
        p.put("bootstrap.servers", ask.get("address").asText());
        p.put("compression.type", ask.path("codec").asText("none"));
        p.put("enable.idempotence", ask.path("idempotent").asBoolean(false));
        p.put("acks", "all");
        p.put("linger.ms", "5");
        return new KafkaProducer<>(p, new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(JsonNode ask) {
        Properties p = new Properties();
        p.put("bootstrap.servers", ask.get("address").asText());
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer());
    }

    static String text(JsonNode node) {
        return node == null || node.isNull() ? null : node.asText();
    }

    static void write(JsonNode ask) throws Exception {
        try (KafkaProducer<String, String> producer = producer(ask)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode r : ask.get("records")) {
                Long timestamp = r.get("t").isNull() ? null : r.get("t").asLong();
                ProducerRecord<String, String> record = new ProducerRecord<>(ask.get("topic").asText(), r.get("p").asInt(),
                        timestamp, text(r.get("k")), text(r.get("v")));
                for (JsonNode h : r.get("h"))
                    record.headers().add(h.get(0).asText(), h.get(1).asText().getBytes(StandardCharsets.UTF_8));
                sent.add(producer.send(record));
            }
            for (Future<RecordMetadata> one : sent) one.get();
        }
    }

    static ArrayNode read(JsonNode ask) {
        ArrayNode records = JSON.createArrayNode();
        try (KafkaConsumer<String, String> consumer = consumer(ask)) {
            List<TopicPartition> assigned = new ArrayList<>();
            for (int p = 0; p < ask.get("partitions").asInt(); p++)
                assigned.add(new TopicPartition(ask.get("topic").asText(), p));
            consumer.assign(assigned);
            consumer.seekToBeginning(assigned);
            long limit = System.nanoTime() + 20_000_000_000L;
            while (records.size() < ask.get("count").asInt() && System.nanoTime() < limit)
                for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(200))) records.add(record(r));
        }
        return records;
    }

    static ObjectNode record(ConsumerRecord<String, String> r) {
        ObjectNode one = JSON.createObjectNode();
        one.put("p", r.partition()).put("o", r.offset()).put("k", r.key()).put("v", r.value()).put("t", r.timestamp());
        ArrayNode headers = one.putArray("h");
        for (Header h : r.headers()) headers.addArray().add(h.key()).add(new String(h.value(), StandardCharsets.UTF_8));
        return one;
    }

    static long time(JsonNode ask) {
        try (KafkaConsumer<String, String> consumer = consumer(ask)) {
            TopicPartition partition = new TopicPartition(ask.get("topic").asText(), 0);
            return consumer.offsetsForTimes(Map.of(partition, ask.get("timestamp").asLong())).get(partition).offset();
        }
    }

    static ObjectNode load(JsonNode ask) throws Exception {
        ConcurrentSkipListSet<Integer> failed = new ConcurrentSkipListSet<>();
        int sent = 0;
        try (KafkaProducer<String, String> producer = producer(ask)) {
            long limit = System.nanoTime() + ask.get("seconds").asLong() * 1_000_000_000L;
            for (; System.nanoTime() < limit; sent++) {
                int i = sent;
                producer.send(new ProducerRecord<>(ask.get("topic").asText(), 0, null, String.format("load-%07d", i)),
                        (metadata, error) -> { if (error != null) failed.add(i); });
                if (i % 50 == 0) Thread.sleep(5);
            }
            producer.flush();
        }
        ObjectNode said = JSON.createObjectNode().put("sent", sent);
        failed.forEach(said.putArray("failed")::add);
        return said;
    }

    static String version() throws IOException {
        Properties p = new Properties();
        try (InputStream in = KafkaProducer.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            p.load(in);
        }
        return p.getProperty("version");
    }

    static ObjectNode answer(JsonNode ask) throws Exception {
        ObjectNode said = JSON.createObjectNode();
        switch (ask.get("do").asText()) {
            case "hello": said.put("version", version()); break;
            case "write": write(ask); break;
            case "read": said.set("records", read(ask)); break;
            case "time": said.put("offset", time(ask)); break;
            default: said = load(ask);
        }
        return said;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            ObjectNode said;
            try {
                said = answer(JSON.readTree(line));
            } catch (Exception reason) {
                said = JSON.createObjectNode().put("error", reason.toString());
            }
            System.out.println(said);
        }
    }
}
