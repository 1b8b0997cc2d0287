import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;

/**
 * Offsets of groups as transactions leave them: `make ADDRESS` commits, aborts, and dies with transactions open; `end ADDRESS` has
 * Apache Kafka abort what is open.
 */
public class OpenTransactions {
    static Properties settings(String address) {
        Properties out = new Properties();
        out.put("bootstrap.servers", address);
        return out;
    }

    static KafkaProducer<byte[], byte[]> producer(String address, String id) {
        Properties out = settings(address);
        out.put("transactional.id", id);
        out.put("transaction.timeout.ms", "900000");
        out.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        out.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        KafkaProducer<byte[], byte[]> made = new KafkaProducer<>(out);
        made.initTransactions();
        return made;
    }

    /** "words-0=5,words-1=7" */
    static Map<TopicPartition, OffsetAndMetadata> offsets(String text, String metadata) {
        Map<TopicPartition, OffsetAndMetadata> out = new HashMap<>();
        for (String item : text.split(",")) {
            String[] parts = item.split("[-=]");
            out.put(new TopicPartition(parts[0], Integer.parseInt(parts[1])), new OffsetAndMetadata(Long.parseLong(parts[2]), metadata));
        }
        return out;
    }

    @SuppressWarnings("removal")
    static void in(KafkaProducer<byte[], byte[]> producer, String group, String text) {
        producer.sendOffsetsToTransaction(offsets(text, "transaction"), new ConsumerGroupMetadata(group));
    }

    static void plain(Admin admin, String group, String text) throws Exception {
        admin.alterConsumerGroupOffsets(group, offsets(text, "plain")).all().get();
    }

    static void make(String address, Admin admin) throws Exception {
        admin.createTopics(List.of(new NewTopic("words", 9, (short) 1), new NewTopic("gone", 2, (short) 1))).all().get();
        plain(admin, "mixed", "words-0=10,words-1=10,words-2=10,words-4=10,words-5=10,words-6=10,words-8=10,gone-0=10");
        KafkaProducer<byte[], byte[]> ended = producer(address, "ended");
        ended.beginTransaction();
        in(ended, "mixed", "words-1=20");
        in(ended, "all-committed", "words-0=20");
        ended.commitTransaction();
        ended.beginTransaction();
        in(ended, "mixed", "words-2=30,words-1=30");
        in(ended, "all-aborted", "words-0=30");
        ended.abortTransaction();
        KafkaProducer<byte[], byte[]> open = producer(address, "open");
        open.beginTransaction();
        in(open, "mixed", "words-6=39");
        open.commitTransaction();
        open.beginTransaction();
        in(open, "mixed", "words-0=40,words-3=40,words-4=40,words-5=40,words-7=40,gone-0=40,gone-1=40");
        in(open, "all-open", "words-0=40,words-1=40");
        in(open, "left", "words-0=40");
        KafkaProducer<byte[], byte[]> other = producer(address, "other");
        other.beginTransaction();
        in(other, "mixed", "words-3=50,words-8=50");
        overtaken(ended, other);
        plain(admin, "mixed", "words-4=60");
        admin.deleteConsumerGroupOffsets("mixed", Set.of(new TopicPartition("words", 5))).all().get();
        Runtime.getRuntime().halt(0);
    }

    /** What another transaction wrote later for a partition is committed before the one that is open. */
    static void overtaken(KafkaProducer<byte[], byte[]> ended, KafkaProducer<byte[], byte[]> other) {
        in(other, "mixed", "words-7=55");
        ended.beginTransaction();
        in(ended, "mixed", "words-7=57");
        ended.commitTransaction();
    }

    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(settings(arguments[1]))) {
            if (arguments[0].equals("make"))
                make(arguments[1], admin);
            else
                admin.fenceProducers(Arrays.asList("open", "other")).all().get();
        }
    }
}
