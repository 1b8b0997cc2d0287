import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/** ADDRESS TOPIC COUNT CODEC: sends k0:v0 ... and says the last offset. Compiles against clients from 0.8.2 on. */
public class OldProducer {
    public static void main(String[] a) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", a[0]);
        p.put("acks", "all");
        p.put("compression.type", a[3]);
        p.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        KafkaProducer<String, String> producer = new KafkaProducer<String, String>(p);
        List<Future<RecordMetadata>> sent = new ArrayList<Future<RecordMetadata>>();
        for (int i = 0; i < Integer.parseInt(a[2]); i++)
            sent.add(producer.send(new ProducerRecord<String, String>(a[1], 0, "k" + i, "v" + i)));
        long last = -1;
        for (Future<RecordMetadata> one : sent) last = one.get().offset();
        producer.close();
        System.out.println(last);
    }
}
