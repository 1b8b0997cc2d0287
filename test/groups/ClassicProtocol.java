import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/**
 * Kafka's own consumer in classic groups, for classic.py: every scenario against the broker at the address given; a line "ok NAME" or
 * "FAIL NAME reason" for each.
 */
public class ClassicProtocol extends ConsumerProtocol {
    static KafkaConsumer<String, String> member(String group, String strategy, String... more) {
        String[] settings = new String[more.length + 2];
        System.arraycopy(more, 0, settings, 2, more.length);
        settings[0] = "partition.assignment.strategy";
        settings[1] = "org.apache.kafka.clients.consumer." + strategy;
        return consumer(group, "classic", settings);
    }

    static void range() throws Exception {
        topic("range", 6);
        fill("range", 60);
        member("range", "RangeAssignor").subscribe(List.of("range"));
        until("one has all", () -> shares(6));
        until("it has read all", () -> open.get(0).assignment().stream().mapToLong(open.get(0)::position).sum() == 60);
        open.get(0).commitSync();
        member("range", "RangeAssignor").subscribe(List.of("range"));
        until("two share", () -> shares(3, 3));
        close(open.get(0));
        until("the other has all", () -> shares(6));
        Set<TopicPartition> all = open.get(0).assignment();
        check(open.get(0).committed(all).values().stream().mapToLong(o -> o == null ? 0 : o.offset()).sum() == 60, "not all was committed");
    }

    /** Nobody loses a partition that stays its own. */
    static void cooperative() throws Exception {
        topic("sticky", 6);
        Set<TopicPartition> revoked = new TreeSet<>((a, b) -> a.partition() - b.partition());
        member("sticky", "CooperativeStickyAssignor").subscribe(List.of("sticky"), new ConsumerRebalanceListener() {
            @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                revoked.addAll(partitions);
            }

            @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            }
        });
        until("one has all", () -> shares(6));
        member("sticky", "CooperativeStickyAssignor").subscribe(List.of("sticky"));
        until("two share", () -> shares(3, 3));
        check(revoked.size() == 3, "revoked " + revoked);
        check(revoked.stream().noneMatch(open.get(0).assignment()::contains), "revoked what it keeps");
    }

    static void staticMember() throws Exception {
        topic("fixed", 4);
        member("fixed", "RangeAssignor").subscribe(List.of("fixed"));
        member("fixed", "RangeAssignor", "group.instance.id", "i1").subscribe(List.of("fixed"));
        until("two share", () -> shares(2, 2));
        Collection<TopicPartition> before = List.copyOf(open.get(1).assignment());
        close(open.get(1)); // A static member does not leave.
        pollFor(3000);
        check(shares(2), "its partitions were given away: " + owned());
        member("fixed", "RangeAssignor", "group.instance.id", "i1").subscribe(List.of("fixed"));
        until("it is back", () -> shares(2, 2));
        check(before.containsAll(open.get(1).assignment()), "it has others now");
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        scenario("range", ClassicProtocol::range);
        scenario("cooperative_sticky", ClassicProtocol::cooperative);
        scenario("static_member", ClassicProtocol::staticMember);
        System.exit(0);
    }
}
