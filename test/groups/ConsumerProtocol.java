import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's own consumer with group.protocol=consumer, for consumer_protocol.py.
 *
 *   run BOOTSTRAP            every scenario; a line "ok NAME" or "FAIL NAME reason" for each
 *   hold BOOTSTRAP GROUP     two members, one of them static; "ready" when they share foo, then waits to be killed
 *   describe BOOTSTRAP GROUP what the coordinator says of the group, sorted: to be compared
 */
public class ConsumerProtocol {
    interface Scenario {
        void run() throws Exception;
    }

    static String bootstrap;
    static Admin admin;
    static final List<KafkaConsumer<String, String>> open = new ArrayList<>();

    static KafkaConsumer<String, String> consumer(String group, String protocol, String... more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("group.protocol", protocol);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        if (protocol.equals("classic")) settings.put("session.timeout.ms", "10000");
        for (int i = 0; i < more.length; i += 2) settings.put(more[i], more[i + 1]);
        KafkaConsumer<String, String> made = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        open.add(made);
        return made;
    }

    static void close(KafkaConsumer<String, String> consumer) {
        open.remove(consumer);
        consumer.close();
    }

    /** All open consumers poll until it holds. */
    static void until(String what, BooleanSupplier holds) {
        long end = System.currentTimeMillis() + 30000;
        while (!holds.getAsBoolean()) {
            if (System.currentTimeMillis() > end) throw new IllegalStateException("not in 30 s: " + what + "; has " + owned());
            for (KafkaConsumer<String, String> each : open) each.poll(Duration.ofMillis(50));
        }
    }

    static void pollFor(long ms) {
        long end = System.currentTimeMillis() + ms;
        while (System.currentTimeMillis() < end)
            for (KafkaConsumer<String, String> each : open) each.poll(Duration.ofMillis(50));
    }

    static String owned() {
        return open.stream().map(c -> new TreeSet<>(c.assignment().stream().map(TopicPartition::toString).toList()).toString())
                   .collect(Collectors.joining(" "));
    }

    static int total() {
        return open.stream().mapToInt(c -> c.assignment().size()).sum();
    }

    static boolean shares(int... sizes) {
        for (int i = 0; i < sizes.length; i++)
            if (open.get(i).assignment().size() != sizes[i]) return false;
        return distinct() == total();
    }

    static long distinct() {
        return open.stream().flatMap(c -> c.assignment().stream()).distinct().count();
    }

    static void check(boolean holds, String what) {
        if (!holds) throw new IllegalStateException(what);
    }

    static void topic(String name, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1))).all().get();
    }

    static void fill(String topic, int count) throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap),
                                                                          new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < count; i++) producer.send(new ProducerRecord<>(topic, "k" + i, "v" + i));
            producer.flush();
        }
    }

    static void membersShare() throws Exception {
        topic("share", 6);
        fill("share", 600);
        KafkaConsumer<String, String> first = consumer("share", "consumer");
        first.subscribe(List.of("share"));
        int read = 0;
        long end = System.currentTimeMillis() + 30000;
        while (read < 600 && System.currentTimeMillis() < end) {
            ConsumerRecords<String, String> records = first.poll(Duration.ofMillis(200));
            read += records.count();
        }
        check(read == 600, "read " + read);
        first.commitSync();
        consumer("share", "consumer").subscribe(List.of("share"));
        until("two share", () -> shares(3, 3));
        consumer("share", "consumer", "group.remote.assignor", "range").subscribe(List.of("share"));
        until("three share", () -> shares(2, 2, 2));
        close(open.get(0));
        until("two are left", () -> total() == 6 && distinct() == 6);
        check(open.get(0).committed(Map.of(new TopicPartition("share", 0), 0).keySet()).size() == 1, "committed");
    }

    static void topicsGrow() throws Exception {
        topic("grow", 2);
        KafkaConsumer<String, String> one = consumer("grow", "consumer", "allow.auto.create.topics", "false");
        one.subscribe(List.of("grow", "later"));
        until("what is there", () -> total() == 2);
        admin.createPartitions(Map.of("grow", NewPartitions.increaseTo(5))).all().get();
        until("more partitions", () -> total() == 5);
        topic("later", 3);
        until("another topic", () -> total() == 8);
        admin.deleteTopics(List.of("later")).all().get();
        until("it is gone", () -> total() == 5);
    }

    static void staticMember() throws Exception {
        topic("static", 4);
        consumer("static", "consumer").subscribe(List.of("static"));
        consumer("static", "consumer", "group.instance.id", "i1").subscribe(List.of("static"));
        until("two share", () -> shares(2, 2));
        Collection<TopicPartition> before = List.copyOf(open.get(1).assignment());
        close(open.get(1));
        pollFor(7000); // More than one heartbeat.
        check(shares(2), "its partitions were given away: " + owned());
        consumer("static", "consumer", "group.instance.id", "i1").subscribe(List.of("static"));
        until("it is back", () -> shares(2, 2));
        check(before.containsAll(open.get(1).assignment()), "it has others now");
    }

    static void patterns() throws Exception {
        topic("pattern-a", 1);
        topic("pattern-b", 1);
        topic("other", 1);
        KafkaConsumer<String, String> one = consumer("pattern", "consumer");
        one.subscribe(new SubscriptionPattern("pattern-[a-y]"));
        until("two topics", () -> total() == 2);
        topic("pattern-c", 2);
        until("a third", () -> total() == 4);
        one.unsubscribe();
        one.subscribe(new SubscriptionPattern("pattern-(a|z)"));
        until("one", () -> total() == 1);
        KafkaConsumer<String, String> bad = consumer("pattern-bad", "consumer");
        bad.subscribe(new SubscriptionPattern("["));
        try {
            for (int i = 0; i < 100; i++) bad.poll(Duration.ofMillis(100));
            throw new IllegalStateException("taken for an expression");
        } catch (org.apache.kafka.common.errors.InvalidRegularExpression expected) {
            check(expected.getMessage().contains("["), expected.getMessage());
        }
    }

    static void groupSettings() throws Exception {
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, "settings");
        alter(group, "consumer.heartbeat.interval.ms", "6000");
        String told = admin.describeConfigs(List.of(group)).all().get().get(group).get("consumer.heartbeat.interval.ms").value();
        check(told.equals("6000"), "told " + told);
        for (String[] wrong : new String[][] {{"consumer.session.timeout.ms", "44000"}, {"consumer.heartbeat.interval.ms", "50000"}, {"foo", "1"}})
            try {
                alter(group, wrong[0], wrong[1]);
                throw new IllegalStateException("taken: " + wrong[0]);
            } catch (java.util.concurrent.ExecutionException reason) {
                check(reason.getCause() instanceof org.apache.kafka.common.errors.InvalidConfigurationException, reason.toString());
            }
    }

    static void alter(ConfigResource resource, String name, String value) throws Exception {
        admin.incrementalAlterConfigs(Map.of(resource, List.of(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)))).all().get();
    }

    /** A group changes its protocol while it runs, and back. */
    static void migration() throws Exception {
        topic("move", 6);
        consumer("move", "classic").subscribe(List.of("move"));
        consumer("move", "classic").subscribe(List.of("move"));
        until("two classic ones", () -> shares(3, 3));
        consumer("move", "consumer").subscribe(List.of("move"));
        until("a third by the new protocol", () -> shares(2, 2, 2));
        check(type("move").equals("Consumer"), "is " + type("move"));
        close(open.get(0));
        until("a classic one has left", () -> shares(3, 3));
        close(open.get(1));
        until("the classic one alone", () -> shares(6));
        check(type("move").equals("Classic"), "is " + type("move"));
        open.get(0).commitSync();
    }

    static String type(String group) throws Exception {
        return admin.listGroups().all().get().stream().filter(g -> g.groupId().equals(group)).findFirst().get().type().get().toString();
    }

    static void scenario(String name, Scenario scenario) {
        long start = System.currentTimeMillis();
        try {
            scenario.run();
            System.out.println("ok " + name + " " + (System.currentTimeMillis() - start) + " ms");
        } catch (Throwable reason) {
            System.out.println("FAIL " + name + " " + reason.toString().replace('\n', ' '));
        }
        for (KafkaConsumer<String, String> each : List.copyOf(open)) close(each);
    }

    static void hold(String group) throws Exception {
        topic("foo", 6);
        consumer(group, "consumer").subscribe(List.of("foo"));
        consumer(group, "consumer", "group.instance.id", "i1").subscribe(new SubscriptionPattern("fo+"));
        until("two share", () -> shares(3, 3));
        pollFor(6000);
        open.get(0).commitSync(Map.of(new TopicPartition("foo", open.get(0).assignment().iterator().next().partition()),
                                      new org.apache.kafka.clients.consumer.OffsetAndMetadata(0)));
        System.out.println("ready");
        while (true) pollFor(1000);
    }

    static void describe(String group) throws Exception {
        ConsumerGroupDescription told = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        Map<String, String> lines = new HashMap<>();
        for (MemberDescription member : told.members())
            lines.put(member.consumerId(), member.groupInstanceId() + " " + member.memberEpoch() + " " + member.clientId() + " " + member.host() + " "
                + new TreeSet<>(member.assignment().topicPartitions().stream().map(TopicPartition::toString).toList()) + " "
                + member.targetAssignment().map(t -> new TreeSet<>(t.topicPartitions().stream().map(TopicPartition::toString).toList()).toString())
                + " " + member.upgraded());
        System.out.println(told.type() + " " + told.groupState() + " " + told.groupEpoch() + " " + told.targetAssignmentEpoch() + " " + told.partitionAssignor());
        new TreeSet<>(lines.keySet()).forEach(id -> System.out.println(id + " " + lines.get(id)));
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[1];
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        switch (arguments[0]) {
        case "hold" -> hold(arguments[2]);
        case "describe" -> describe(arguments[2]);
        default -> {
            scenario("members_share", ConsumerProtocol::membersShare);
            scenario("topics_grow_and_go", ConsumerProtocol::topicsGrow);
            scenario("static_member_keeps_its_partitions", ConsumerProtocol::staticMember);
            scenario("subscription_pattern", ConsumerProtocol::patterns);
            scenario("group_settings", ConsumerProtocol::groupSettings);
            scenario("migration_there_and_back", ConsumerProtocol::migration);
        }
        }
        System.exit(0);
    }
}
