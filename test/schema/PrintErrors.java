import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints Apache Kafka's errors, one a line: code, name, retriable, message; separated by tabs. */
public class PrintErrors {
    public static void main(String[] args) {
        for (Errors error : Errors.values()) {
            boolean retriable = error.exception() instanceof RetriableException;
            System.out.println(error.code() + "\t" + error.name() + "\t" + retriable + "\t" + error.message());
        }
    }
}
