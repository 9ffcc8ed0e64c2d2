import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/** Drives one broker with consumers of the new group protocol (KIP-848): ConsumerProtocol ADDRESS PART..., a line for each part's outcome. */
public class ConsumerProtocol {
    static String address;
    static Admin admin;

    public static void main(String[] args) {
        address = args[0];
        admin = Admin.create(Map.of("bootstrap.servers", address));
        for (int i = 1; i < args.length; i++) {
            try {
                part(args[i]);
                System.out.println("passed " + args[i]);
            } catch (Throwable e) {
                System.out.println("failed " + args[i]);
                e.printStackTrace(System.out);
            }
        }
        admin.close();
        System.out.println("done");
    }

    static void part(String what) throws Exception {
        switch (what) {
            case "join" -> join("uniform");
            case "range" -> join("range");
            case "regex" -> regex();
            case "static" -> staticMember();
            case "migrate" -> migrate();
            case "commit" -> commit();
            case "configs" -> configs();
            default -> throw new IllegalArgumentException(what);
        }
    }

    static void check(boolean ok, String what) {
        if (!ok) throw new AssertionError(what);
    }

    static String newTopic(String prefix, int partitions) throws Exception {
        String name = prefix + UUID.randomUUID();
        admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1))).all().get();
        return name;
    }

    static void produce(String topic, int partitions, int from, int count) {
        Properties p = new Properties();
        p.put("bootstrap.servers", address);
        try (Producer<String, String> producer = new KafkaProducer<>(p, new StringSerializer(), new StringSerializer())) {
            for (int i = from; i < from + count; i++) producer.send(new ProducerRecord<>(topic, i % partitions, null, topic + "-" + i));
            producer.flush();
        }
    }

    /** A consumer on a thread of its own, which polls and commits until it is stopped. */
    static class Member implements AutoCloseable {
        final KafkaConsumer<String, String> consumer;
        final Map<String, Integer> seen;
        volatile Set<TopicPartition> assigned = Set.of();
        volatile boolean stop;
        volatile Throwable failed;
        final Thread thread;

        Member(String group, Map<String, Integer> seen, java.util.function.Consumer<KafkaConsumer<String, String>> subscribe, String... settings) {
            this.seen = seen;
            Properties p = new Properties();
            p.put("bootstrap.servers", address);
            p.put("group.id", group);
            p.put("group.protocol", "consumer");
            p.put("auto.offset.reset", "earliest");
            p.put("auto.commit.interval.ms", "200");
            p.put("metadata.max.age.ms", "1000");
            for (int i = 0; i < settings.length; i += 2) p.put(settings[i], settings[i + 1]);
            consumer = new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer());
            subscribe.accept(consumer);
            thread = new Thread(this::run);
            thread.start();
        }

        void run() {
            try {
                while (!stop) {
                    for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(100))) seen.merge(r.value(), 1, Integer::sum);
                    assigned = Set.copyOf(consumer.assignment());
                }
                consumer.close();
            } catch (Throwable e) {
                failed = e;
            }
        }

        public void close() throws Exception {
            stop = true;
            thread.join();
            if (failed != null) throw new AssertionError("a member failed", failed);
        }
    }

    static java.util.function.Consumer<KafkaConsumer<String, String>> to(String... topics) {
        return c -> c.subscribe(List.of(topics));
    }

    static void eventually(String what, Callable<Boolean> ok) throws Exception {
        for (long end = System.currentTimeMillis() + 60_000; System.currentTimeMillis() < end; Thread.sleep(50)) {
            if (ok.call()) return;
        }
        throw new AssertionError("never: " + what);
    }

    static boolean share(int each, Member... members) {
        Set<TopicPartition> all = new HashSet<>();
        for (Member m : members) {
            if (m.assigned.size() != each) return false;
            all.addAll(m.assigned);
        }
        return all.size() == each * members.length;
    }

    static void everyRecordOnce(Map<String, Integer> seen, int count) throws Exception {
        eventually(count + " records, not " + seen.size(), () -> seen.size() == count);
        check(seen.values().stream().allMatch(n -> n == 1), "some record was read twice: " + seen.entrySet().stream().filter(e -> e.getValue() > 1).toList());
    }

    static ConsumerGroupDescription describe(String group) throws Exception {
        return admin.describeConsumerGroups(List.of(group)).all().get().get(group);
    }

    static void join(String assignor) throws Exception {
        String topic = newTopic("p-", 6), group = "g-" + UUID.randomUUID();
        Map<String, Integer> seen = new ConcurrentHashMap<>();
        produce(topic, 6, 0, 600);
        String[] with = {"group.remote.assignor", assignor};
        try (Member a = new Member(group, seen, to(topic), with)) {
            eventually("one member with all", () -> share(6, a));
            Member b = new Member(group, seen, to(topic), with);
            try (Member c = new Member(group, seen, to(topic), with)) {
                eventually("three members with two each", () -> share(2, a, b, c));
                produce(topic, 6, 600, 600);
                everyRecordOnce(seen, 1200);
                ConsumerGroupDescription d = describe(group);
                check(d.type() == GroupType.CONSUMER && d.members().size() == 3 && d.partitionAssignor().equals(assignor), "described as " + d);
                eventually("a stable group", () -> describe(group).groupState() == GroupState.STABLE);
                b.close();
                eventually("two members with three each", () -> share(3, a, c));
                produce(topic, 6, 1200, 600);
                everyRecordOnce(seen, 1800);
            }
        }
        check(describe(group).groupState() == GroupState.EMPTY, "it is not empty");
        check(admin.listGroups().all().get().stream().anyMatch(g -> g.groupId().equals(group) && g.type().equals(Optional.of(GroupType.CONSUMER))), "it is not listed");
        admin.deleteConsumerGroups(List.of(group)).all().get();
    }

    static void regex() throws Exception {
        String prefix = "r-" + UUID.randomUUID() + "-", group = "g-" + UUID.randomUUID();
        String one = newTopic(prefix + "x", 2), other = newTopic(prefix + "y", 2);
        newTopic("not-" + prefix, 1);
        Map<String, Integer> seen = new ConcurrentHashMap<>();
        produce(one, 2, 0, 100);
        produce(other, 2, 0, 100);
        try (Member a = new Member(group, seen, c -> c.subscribe(new SubscriptionPattern(prefix + ".*")));
             Member b = new Member(group, seen, c -> c.subscribe(new SubscriptionPattern(prefix + ".*")))) {
            eventually("two each", () -> share(2, a, b));
            everyRecordOnce(seen, 200);
            String late = newTopic(prefix + "z", 2);
            produce(late, 2, 0, 100);
            eventually("three each", () -> share(3, a, b));
            everyRecordOnce(seen, 300);
        }
        try (KafkaConsumer<String, String> c = new KafkaConsumer<>(Map.of("bootstrap.servers", address, "group.id", group, "group.protocol", "consumer"), new StringDeserializer(), new StringDeserializer())) {
            c.subscribe(new SubscriptionPattern("a("));
            boolean refused = false;
            for (long end = System.currentTimeMillis() + 20_000; !refused && System.currentTimeMillis() < end; ) {
                try {
                    c.poll(Duration.ofMillis(100));
                } catch (org.apache.kafka.common.errors.InvalidRegularExpression e) {
                    refused = true;
                }
            }
            check(refused, "an expression that is none was taken");
        }
    }

    static void staticMember() throws Exception {
        String topic = newTopic("s-", 4), group = "g-" + UUID.randomUUID();
        Map<String, Integer> seen = new ConcurrentHashMap<>();
        try (Member a = new Member(group, seen, to(topic), "group.instance.id", "one")) {
            Member b = new Member(group, seen, to(topic), "group.instance.id", "two");
            eventually("two each", () -> share(2, a, b));
            Set<TopicPartition> had = b.assigned;
            int epoch = describe(group).groupEpoch().get();
            b.close(); // a static member leaves for a while
            Thread.sleep(1000);
            check(share(2, a), "the other member took over from one that will be back");
            try (Member again = new Member(group, seen, to(topic), "group.instance.id", "two")) {
                eventually("the same partitions", () -> again.assigned.equals(had));
                check(describe(group).groupEpoch().get() == epoch, "the group was divided anew");
                // An administrator removes an instance.
                admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("one")))).all().get();
                eventually("it is gone", () -> describe(group).groupEpoch().get() > epoch);
            }
        }
    }

    static void migrate() throws Exception {
        String topic = newTopic("m-", 6), group = "g-" + UUID.randomUUID();
        Map<String, Integer> seen = new ConcurrentHashMap<>();
        produce(topic, 6, 0, 600);
        String[] classic = {"group.protocol", "classic", "heartbeat.interval.ms", "500", "partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"};
        Member a = new Member(group, seen, to(topic), classic), b = new Member(group, seen, to(topic), classic);
        eventually("two classic members with three each", () -> share(3, a, b));
        check(describe(group).type() == GroupType.CLASSIC, "it is no classic group");
        Member c = new Member(group, seen, to(topic));
        eventually("three members with two each", () -> share(2, a, b, c));
        check(describe(group).type() == GroupType.CONSUMER, "it is no consumer group");
        produce(topic, 6, 600, 600);
        eventually("1200 records, not " + seen.size(), () -> seen.size() == 1200);
        // Roll the others over, one after the other.
        a.close();
        Member d = new Member(group, seen, to(topic));
        eventually("three members with two each", () -> share(2, b, c, d));
        produce(topic, 6, 1200, 600);
        eventually("1800 records", () -> seen.size() == 1800);
        // And back: the last members of the new protocol leave.
        c.close();
        d.close();
        eventually("one classic member with all", () -> share(6, b));
        check(describe(group).type() == GroupType.CLASSIC, "it is no classic group again");
        produce(topic, 6, 1800, 600);
        eventually("2400 records", () -> seen.size() == 2400);
        b.close();
    }

    static void commit() throws Exception {
        String topic = newTopic("c-", 1), group = "g-" + UUID.randomUUID();
        produce(topic, 1, 0, 100);
        Map<String, Object> p = Map.of("bootstrap.servers", address, "group.id", group, "group.protocol", "consumer", "auto.offset.reset", "earliest", "enable.auto.commit", false, "max.poll.records", 10);
        for (int round = 0; round < 2; round++) {
            try (KafkaConsumer<String, String> c = new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer())) {
                c.subscribe(List.of(topic));
                List<String> got = new ArrayList<>();
                while (got.size() < 50) for (ConsumerRecord<String, String> r : c.poll(Duration.ofSeconds(1))) got.add(r.value());
                check(got.get(0).equals(topic + "-" + round * 50), "round " + round + " begins with " + got.get(0));
                c.commitSync();
            }
        }
        check(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(new TopicPartition(topic, 0)).offset() == 100, "committed");
    }

    static void configs() throws Exception {
        String group = "g-" + UUID.randomUUID();
        ConfigResource r = new ConfigResource(ConfigResource.Type.GROUP, group);
        admin.incrementalAlterConfigs(Map.of(r, List.of(new AlterConfigOp(new ConfigEntry("consumer.heartbeat.interval.ms", "6000"), AlterConfigOp.OpType.SET)))).all().get();
        check(admin.describeConfigs(List.of(r)).all().get().get(r).get("consumer.heartbeat.interval.ms").value().equals("6000"), "set");
        check(admin.listConfigResources(Set.of(ConfigResource.Type.GROUP), new ListConfigResourcesOptions()).all().get().contains(r), "listed");
        try {
            admin.incrementalAlterConfigs(Map.of(r, List.of(new AlterConfigOp(new ConfigEntry("consumer.session.timeout.ms", "1"), AlterConfigOp.OpType.SET)))).all().get();
            check(false, "a session time-out of 1 ms was taken");
        } catch (ExecutionException e) {
            check(e.getCause() instanceof org.apache.kafka.common.errors.InvalidConfigurationException, "" + e.getCause());
        }
    }
}
