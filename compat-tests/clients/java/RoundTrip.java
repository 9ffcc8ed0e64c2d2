import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/** Drives one broker with the Java producer, consumer and admin client: RoundTrip ADDRESS PART..., a line for each part's outcome. */
public class RoundTrip {
    static String address;

    public static void main(String[] args) {
        address = args[0];
        for (int i = 1; i < args.length; i++) {
            try {
                part(args[i].split(":"));
                System.out.println("passed " + args[i]);
            } catch (Throwable e) {
                System.out.println("failed " + args[i]);
                e.printStackTrace(System.out);
            }
        }
        System.out.println("done");
    }

    static void part(String[] what) throws Exception {
        switch (what[0]) {
            case "codec" -> codec(what[1], Boolean.parseBoolean(what[2]));
            case "group" -> group(what[1]);
            case "admin" -> admin();
            default -> throw new IllegalArgumentException(what[0]);
        }
    }

    static Properties props(String... pairs) {
        Properties p = new Properties();
        p.put("bootstrap.servers", address);
        for (int i = 0; i < pairs.length; i += 2) p.put(pairs[i], pairs[i + 1]);
        return p;
    }

    static void check(boolean ok, String what) {
        if (!ok) throw new AssertionError(what);
    }

    static String newTopic(Admin admin, int partitions) throws Exception {
        String name = "java-" + UUID.randomUUID();
        admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1))).all().get();
        return name;
    }

    static void produce(String topic, int from, int count, String codec, boolean idempotent) throws Exception {
        Properties p = props("compression.type", codec, "enable.idempotence", String.valueOf(idempotent), "linger.ms", "5", "batch.size", "8000");
        try (Producer<String, String> producer = new KafkaProducer<>(p, new StringSerializer(), new StringSerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = from; i < from + count; i++) {
                ProducerRecord<String, String> r = new ProducerRecord<>(topic, i % 7 == 0 ? null : "k" + i, i % 11 == 0 ? null : "v".repeat(i % 300));
                r.headers().add("i", String.valueOf(i).getBytes(StandardCharsets.UTF_8));
                sent.add(producer.send(r));
            }
            for (Future<RecordMetadata> f : sent) f.get();
        }
    }

    static Consumer<String, String> consumer(String group, String assignor) {
        return new KafkaConsumer<>(props("group.id", group, "auto.offset.reset", "earliest", "enable.auto.commit", "false", "group.protocol", "classic",
            "partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor), new StringDeserializer(), new StringDeserializer());
    }

    static void read(Consumer<String, String> c, BitSet seen, int want) {
        long deadline = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        while (seen.cardinality() < want) {
            check(System.nanoTime() < deadline, seen.cardinality() + " of " + want + " records came");
            for (ConsumerRecord<String, String> r : c.poll(Duration.ofMillis(500))) {
                int i = Integer.parseInt(new String(r.headers().lastHeader("i").value(), StandardCharsets.UTF_8));
                check(!seen.get(i), "record " + i + " came twice");
                seen.set(i);
                check((r.key() == null) == (i % 7 == 0) && (r.value() == null) == (i % 11 == 0), "record " + i + " has another key or value");
                check(r.value() == null || r.value().length() == i % 300, "record " + i + " has another length");
            }
        }
        c.commitSync();
    }

    static void codec(String codec, boolean idempotent) throws Exception {
        try (Admin admin = Admin.create(props())) {
            String topic = newTopic(admin, 3);
            produce(topic, 0, 2000, codec, idempotent);
            try (Consumer<String, String> c = consumer("g-" + topic, "RangeAssignor")) {
                c.subscribe(List.of(topic));
                read(c, new BitSet(), 2000);
            }
        }
    }

    static void group(String assignor) throws Exception {
        try (Admin admin = Admin.create(props())) {
            String topic = newTopic(admin, 4);
            BitSet seen = new BitSet();
            for (int part = 0; part < 2; part++) {
                produce(topic, part * 500, 500, "none", true);
                try (Consumer<String, String> c = consumer("g-" + topic, assignor)) {
                    c.subscribe(List.of(topic));
                    read(c, seen, (part + 1) * 500);
                }
            }
            long sum = 0;
            for (OffsetAndMetadata o : admin.listConsumerGroupOffsets("g-" + topic).partitionsToOffsetAndMetadata().get().values()) sum += o.offset();
            check(sum == 1000, "committed offsets add up to " + sum);
            admin.deleteConsumerGroups(List.of("g-" + topic)).all().get();
        }
    }

    static void admin() throws Exception {
        try (Admin admin = Admin.create(props())) {
            check(admin.describeCluster().nodes().get().size() == 1, "one node");
            String topic = newTopic(admin, 2);
            produce(topic, 0, 100, "none", true);
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            admin.incrementalAlterConfigs(Map.of(resource, List.of(new AlterConfigOp(new ConfigEntry("retention.ms", "3600000"), AlterConfigOp.OpType.SET)))).all().get();
            check(admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms").value().equals("3600000"), "retention.ms");
            long ends = 0, starts = 0;
            for (int p = 0; p < 2; p++) {
                TopicPartition tp = new TopicPartition(topic, p);
                ends += admin.listOffsets(Map.of(tp, OffsetSpec.latest())).partitionResult(tp).get().offset();
                starts += admin.listOffsets(Map.of(tp, OffsetSpec.earliest())).partitionResult(tp).get().offset();
                admin.listOffsets(Map.of(tp, OffsetSpec.maxTimestamp())).partitionResult(tp).get();
            }
            check(ends == 100 && starts == 0, "offsets from " + starts + " to " + ends);
            check(admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size() == 3, "three partitions");
            admin.describeLogDirs(List.of(1)).allDescriptions().get();
            admin.deleteTopics(List.of(topic)).all().get();
        }
    }
}
