/* Client.java - Apache Kafka's own Java client as a load: records of 100 bytes to a topic and back.
 *
 *   java Client HOST:PORT TOPIC WARM COUNT
 *
 * It says a word for each step that is done and goes on when a line comes in, so that the server's CPU can be read between two:
 * "warm" (WARM records were written and read), "produced" (COUNT more are acknowledged by all), "consumed N" (so many were read). */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Client {
    private static final BufferedReader in = new BufferedReader(new InputStreamReader(System.in));

    private static void say(String word) throws Exception {
        System.out.println(word);
        System.out.flush();
        if (in.readLine() == null) System.exit(1);
    }

    /** Acknowledged by all at return, or an exception. */
    private static void produce(KafkaProducer<byte[], byte[]> producer, String topic, long count) {
        byte[] value = "0123456789abcdef".repeat(7).substring(0, 100).getBytes();
        Exception[] failed = new Exception[1];
        for (long i = 0; i < count; i++)
            producer.send(new ProducerRecord<>(topic, 0, null, value), (where, error) -> { if (error != null) failed[0] = error; });
        producer.flush();
        if (failed[0] != null) throw new IllegalStateException(failed[0]);
    }

    private static long consume(KafkaConsumer<byte[], byte[]> consumer, long count) {
        long found = 0, until = System.nanoTime() + 120_000_000_000L;
        while (found < count && System.nanoTime() < until) found += consumer.poll(Duration.ofMillis(200)).count();
        return found;
    }

    public static void main(String[] words) throws Exception {
        String topic = words[1];
        long warm = Long.parseLong(words[2]), count = Long.parseLong(words[3]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", words[0]);
        settings.put("acks", "all");
        settings.put("linger.ms", "5");
        settings.put("enable.metrics.push", "false");
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
             KafkaConsumer<byte[], byte[]> consumer =
                 new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            produce(producer, topic, warm);
            consume(consumer, warm);
            say("warm");
            produce(producer, topic, count);
            say("produced");
            long found = consume(consumer, count);
            say("consumed " + found);
        }
    }
}
