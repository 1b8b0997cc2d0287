import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** ADDRESS TOPIC COUNT GROUP: reads that many in a group, commits, says each as key:value. For clients from 0.10 on. */
public class OldConsumer {
    public static void main(String[] a) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", a[0]);
        p.put("group.id", a[3]);
        p.put("auto.offset.reset", "earliest");
        p.put("enable.auto.commit", "false");
        p.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        p.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        KafkaConsumer<String, String> consumer = new KafkaConsumer<String, String>(p);
        consumer.subscribe(Collections.singletonList(a[1]));
        int left = Integer.parseInt(a[2]);
        long limit = System.currentTimeMillis() + 30000;
        while (left > 0 && System.currentTimeMillis() < limit) {
            for (ConsumerRecord<String, String> r : consumer.poll(500)) {
                System.out.println(r.key() + ":" + r.value());
                left--;
            }
        }
        consumer.commitSync();
        consumer.close();
    }
}
