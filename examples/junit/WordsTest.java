import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class WordsTest {
    static Dohle dohle;

    @BeforeAll
    static void start() throws Exception {
        dohle = new Dohle("words:3");
    }

    @AfterAll
    static void stop() throws Exception {
        dohle.close();
    }

    @Test
    void wordsComeBackInOrder() {
        List<String> words = List.of("jackdaw", "jackfruit", "jackpot");
        Map<String, Object> settings = Map.of("bootstrap.servers", dohle.bootstrap);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (String word : words) producer.send(new ProducerRecord<>("words", 2, null, word));
        }
        List<String> got = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            TopicPartition partition = new TopicPartition("words", 2);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            for (int i = 0; i < 50 && got.size() < words.size(); i++)
                consumer.poll(Duration.ofMillis(200)).forEach(record -> got.add(record.value()));
        }
        assertEquals(words, got);
    }
}
