import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ProducerFencedException;

/** What Java clients have from 0.11 on. */
public class NewerClient {
    public static void run(String name) throws Exception {
        switch (name) {
            case "idempotent":
                OldClient.roundTrip(OldClient.props("enable.idempotence", "true"));
                return;
            case "transaction":
                transaction();
                return;
            case "fencing":
                fencing();
                return;
            case "admin":
                admin();
                return;
            default:
                throw new IllegalArgumentException(name);
        }
    }

    static String newTopic(String what) throws Exception {
        String topic = OldClient.name(what);
        try (AdminClient admin = AdminClient.create(OldClient.props())) {
            admin.createTopics(Collections.singletonList(new NewTopic(topic, 2, (short) 1))).all().get();
        }
        return topic;
    }

    static void send(KafkaProducer<byte[], byte[]> p, String topic, String what) {
        for (int i = 0; i < 2; i++) p.send(new ProducerRecord<byte[], byte[]>(topic, i, null, OldClient.bytes(what)));
    }

    static void transaction() throws Exception {
        String topic = newTopic("txn"), group = OldClient.name("g");
        TopicPartition tp = new TopicPartition(topic, 0);
        KafkaProducer<byte[], byte[]> p = OldClient.producer(OldClient.props("transactional.id", OldClient.name("id")));
        try {
            p.initTransactions();
            p.beginTransaction();
            send(p, topic, "first");
            p.commitTransaction();
            p.beginTransaction();
            send(p, topic, "second");
            p.flush();
            p.abortTransaction();
            p.beginTransaction();
            send(p, topic, "third");
            p.sendOffsetsToTransaction(Collections.singletonMap(tp, new OffsetAndMetadata(5)), group);
            p.commitTransaction();
        } finally {
            p.close();
        }
        read(topic, "read_committed", "first", "third");
        read(topic, "read_uncommitted", "first", "second", "third");
        KafkaConsumer<byte[], byte[]> c = OldClient.consumer("group.id", group);
        try {
            OldClient.check(c.committed(tp).offset() == 5, "committed is " + c.committed(tp));
        } finally {
            c.close();
        }
    }

    static void read(String topic, String isolation, String... want) {
        KafkaConsumer<byte[], byte[]> c = OldClient.consumer("isolation.level", isolation);
        try {
            c.assign(Arrays.asList(new TopicPartition(topic, 0), new TopicPartition(topic, 1)));
            c.seekToBeginning(c.assignment());
            List<String> got = new ArrayList<String>();
            long deadline = OldClient.deadline();
            // Twice the number, one for each partition, and then nothing more for a while.
            for (int quiet = 0; quiet < 3; ) {
                OldClient.check(System.nanoTime() < deadline, isolation + " has " + got);
                ConsumerRecords<byte[], byte[]> records = c.poll(200);
                if (records.isEmpty() && got.size() >= 2 * want.length) quiet++;
                for (ConsumerRecord<byte[], byte[]> r : records) got.add(OldClient.show(r.value()));
            }
            List<String> both = new ArrayList<String>(Arrays.asList(want));
            both.addAll(Arrays.asList(want));
            Collections.sort(both);
            Collections.sort(got);
            OldClient.check(got.equals(both), isolation + " has " + got);
        } finally {
            c.close();
        }
    }

    static void fencing() throws Exception {
        String topic = newTopic("fencing"), id = OldClient.name("id");
        KafkaProducer<byte[], byte[]> old = OldClient.producer(OldClient.props("transactional.id", id));
        old.initTransactions();
        old.beginTransaction();
        send(old, topic, "x");
        old.flush();
        KafkaProducer<byte[], byte[]> next = OldClient.producer(OldClient.props("transactional.id", id));
        next.initTransactions();
        try {
            old.commitTransaction();
            throw new AssertionError("the first producer could commit");
        } catch (ProducerFencedException e) {
            // as it should be
        } finally {
            old.close();
            next.close();
        }
    }

    static void admin() throws Exception {
        String topic = newTopic("admin");
        try (AdminClient admin = AdminClient.create(OldClient.props())) {
            OldClient.check(admin.listTopics().names().get().contains(topic), "the topic is not listed");
            OldClient.check(admin.describeCluster().nodes().get().size() == 1, "one node");
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            Config config = new Config(Collections.singletonList(new ConfigEntry("retention.ms", "3600000")));
            admin.alterConfigs(Collections.singletonMap(resource, config)).all().get();
            String retention = admin.describeConfigs(Collections.singletonList(resource)).all().get().get(resource).get("retention.ms").value();
            OldClient.check(retention.equals("3600000"), "retention.ms is " + retention);
            OldClient.check(admin.describeTopics(Collections.singletonList(topic)).all().get().get(topic).partitions().size() == 2, "two partitions");
            admin.deleteTopics(Collections.singletonList(topic)).all().get();
            for (long deadline = OldClient.deadline(); admin.listTopics().names().get().contains(topic); Thread.sleep(20)) {
                OldClient.check(System.nanoTime() < deadline, "the topic is still listed");
            }
        }
    }
}
