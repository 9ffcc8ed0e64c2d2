import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

/**
 * Drives Java clients from 0.9 on, in what they all have: OldClient ADDRESS CASE..., a line of JSON for each. What came
 * later is asked for by name, or stands in NewerClient. Topics are created by asking for them, with four partitions,
 * because the clients before 0.11 have no other way.
 */
public class OldClient {
    static final int PARTITIONS = 4;
    static String address;

    interface Case {
        void run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        address = args[0];
        for (String name : Arrays.asList(args).subList(1, args.length)) {
            String why = null;
            try {
                find(name).run();
            } catch (Throwable e) {
                java.io.StringWriter w = new java.io.StringWriter();
                e.printStackTrace(new java.io.PrintWriter(w));
                why = w.toString();
            }
            System.out.println("{\"case\": " + quote(name) + ", \"ok\": " + (why == null) + (why == null ? "" : ", \"why\": " + quote(why)) + "}");
        }
        System.out.flush();
        System.exit(0); // some versions leave threads behind
    }

    static String quote(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\') b.append('\\').append(c);
            else if (c < ' ') b.append(String.format("\\u%04x", (int) c));
            else b.append(c);
        }
        return b.append('"').toString();
    }

    static Case find(final String name) {
        final String[] what = name.split("-", 2);
        switch (what[0]) {
            case "codec":
                return new Case() { public void run() throws Exception { roundTrip(props("compression.type", what[1])); } };
            case "acks":
                return new Case() { public void run() throws Exception { roundTrip(props("acks", what[1])); } };
            case "group":
                return new Case() { public void run() throws Exception { group(what[1]); } };
            case "restart":
                return new Case() { public void run() throws Exception { restart(what[1]); } };
            case "offsets":
                return new Case() { public void run() throws Exception { offsetsByTime(); } };
            default:
                return new Case() { public void run() throws Exception {
                    Class.forName("NewerClient").getMethod("run", String.class).invoke(null, name);
                } };
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

    static String name(String what) {
        return "oldjava-" + what + "-" + UUID.randomUUID();
    }

    static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    static KafkaProducer<byte[], byte[]> producer(Properties p) {
        return new KafkaProducer<byte[], byte[]>(p, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<byte[], byte[]> consumer(String... pairs) {
        Properties p = props("auto.offset.reset", "earliest", "enable.auto.commit", "false", "session.timeout.ms", "10000", "heartbeat.interval.ms", "500", "metadata.max.age.ms", "1000");
        for (int i = 0; i < pairs.length; i += 2) p.put(pairs[i], pairs[i + 1]);
        return new KafkaConsumer<byte[], byte[]>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static byte[] key(int i) {
        return i % 7 == 0 ? null : bytes("key " + i);
    }

    static byte[] value(int i) {
        if (i % 11 == 0 && i % 7 != 0) return null;
        StringBuilder b = new StringBuilder("value " + i + " ");
        for (int j = 0; j < i % 50; j++) b.append("the quick brown fox ");
        return bytes(b.toString());
    }

    /** Records have headers from 0.11 on. */
    static final Method headers = method(ProducerRecord.class, "headers");

    static Method method(Class<?> c, String name, Class<?>... types) {
        try {
            return c.getMethod(name, types);
        } catch (NoSuchMethodException e) {
            return null;
        }
    }

    static void addHeader(Object record, String key, byte[] value) throws Exception {
        if (headers == null) return;
        Object h = headers.invoke(record);
        Method add = Class.forName("org.apache.kafka.common.header.Headers").getMethod("add", String.class, byte[].class);
        add.invoke(h, key, value);
    }

    /** produce sends records from..to, to the partition i % PARTITIONS. */
    static void produce(Properties p, String topic, int from, int to) throws Exception {
        p.put("linger.ms", "20");
        KafkaProducer<byte[], byte[]> producer = producer(p);
        try {
            List<Future<RecordMetadata>> sent = new ArrayList<Future<RecordMetadata>>();
            for (int i = from; i < to; i++) {
                ProducerRecord<byte[], byte[]> r = new ProducerRecord<byte[], byte[]>(topic, i % PARTITIONS, key(i), value(i));
                addHeader(r, "i", bytes("" + i));
                addHeader(r, "null", null);
                sent.add(producer.send(r));
            }
            boolean told = !"0".equals(p.get("acks"));
            for (int i = from; i < to; i++) {
                long offset = sent.get(i - from).get(60, TimeUnit.SECONDS).offset();
                check(!told || offset == i / PARTITIONS, "record " + i + " has offset " + offset);
            }
        } finally {
            producer.close();
        }
    }

    static void checkRecord(ConsumerRecord<byte[], byte[]> r) throws Exception {
        int i = (int) r.offset() * PARTITIONS + r.partition();
        check(Arrays.equals(r.key(), key(i)), "record " + i + " has key " + show(r.key()));
        check(Arrays.equals(r.value(), value(i)), "record " + i + " has value " + show(r.value()));
        Method times = method(ConsumerRecord.class, "timestamp");
        if (times != null) {
            long age = System.currentTimeMillis() - (Long) times.invoke(r);
            check(age >= -1000 && age < 600000, "record " + i + " is " + age + " ms old");
        }
        Method read = method(ConsumerRecord.class, "headers");
        if (read != null) check(read.invoke(r).toString().contains("key = i"), "record " + i + " has headers " + read.invoke(r));
    }

    static String show(byte[] b) {
        return b == null ? "null" : new String(b, StandardCharsets.UTF_8);
    }

    static void roundTrip(Properties p) throws Exception {
        String topic = name("codec");
        produce(p, topic, 0, 300);
        KafkaConsumer<byte[], byte[]> c = consumer();
        try {
            List<TopicPartition> all = new ArrayList<TopicPartition>();
            for (int i = 0; i < PARTITIONS; i++) all.add(new TopicPartition(topic, i));
            c.assign(all);
            for (TopicPartition tp : all) c.seek(tp, 0);
            long[] next = new long[PARTITIONS];
            int seen = 0;
            for (long deadline = deadline(); seen < 300; ) {
                check(System.nanoTime() < deadline, "only " + seen + " records came");
                for (ConsumerRecord<byte[], byte[]> r : c.poll(500)) {
                    check(r.offset() == next[r.partition()]++, "offset " + r.offset() + " of partition " + r.partition() + " came out of order");
                    checkRecord(r);
                    seen++;
                }
            }
            // From the middle of what was one batch.
            c.seek(all.get(1), 33);
            for (long deadline = deadline(); ; ) {
                check(System.nanoTime() < deadline, "nothing came from the middle");
                ConsumerRecords<byte[], byte[]> got = c.poll(500);
                if (got.isEmpty()) continue;
                check(got.iterator().next().offset() == 33, "from the middle came offset " + got.iterator().next().offset());
                break;
            }
        } finally {
            c.close();
        }
    }

    static long deadline() {
        return System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    }

    /** A member of a group, on a thread of its own because the oldest consumers wait in poll for the others to join. */
    static class Member extends Thread {
        final KafkaConsumer<byte[], byte[]> consumer;
        final String topic;
        final Set<Long> seen;
        final AtomicReference<Throwable> failed = new AtomicReference<Throwable>();
        volatile int assigned;
        volatile boolean leave;

        Member(String topic, String group, String assignor, Set<Long> seen) {
            this.topic = topic;
            this.seen = seen;
            consumer = consumer("group.id", group, "partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor);
            start();
        }

        public void run() {
            try {
                consumer.subscribe(Arrays.asList(topic), new ConsumerRebalanceListener() {
                    public void onPartitionsRevoked(Collection<TopicPartition> p) {
                        consumer.commitSync();
                    }

                    public void onPartitionsAssigned(Collection<TopicPartition> p) {
                        assigned = p.size();
                    }
                });
                while (!leave) {
                    for (ConsumerRecord<byte[], byte[]> r : consumer.poll(100)) {
                        checkRecord(r);
                        check(seen.add(r.offset() * PARTITIONS + r.partition()), "offset " + r.offset() + " of partition " + r.partition() + " came twice");
                    }
                }
                consumer.commitSync();
            } catch (Throwable e) {
                failed.set(e);
            } finally {
                consumer.close();
            }
        }

        void end() throws Exception {
            leave = true;
            join();
            if (failed.get() != null) throw new Exception(failed.get());
        }
    }

    static void await(String what, Callable<Boolean> ok, Member... members) throws Exception {
        for (long deadline = deadline(); !ok.call(); Thread.sleep(20)) {
            for (Member m : members) if (m.failed.get() != null) throw new Exception(m.failed.get());
            check(System.nanoTime() < deadline, "waited in vain for " + what);
        }
    }

    static void awaitSeen(final Set<Long> seen, final int n, Member... members) throws Exception {
        await(n + " records, there are " + seen.size(), new Callable<Boolean>() {
            public Boolean call() { return seen.size() >= n; }
        }, members);
    }

    static void awaitAssigned(final int each, final Member... members) throws Exception {
        await(each + " partitions for each", new Callable<Boolean>() {
            public Boolean call() {
                for (Member m : members) if (m.assigned != each) return false;
                return true;
            }
        }, members);
    }

    static void group(String assignor) throws Exception {
        String topic = name("group"), group = name("g");
        assignor = assignor.equals("roundrobin") ? "RoundRobinAssignor" : assignor.equals("sticky") ? "StickyAssignor" : "RangeAssignor";
        Set<Long> seen = Collections.newSetFromMap(new ConcurrentHashMap<Long, Boolean>());
        produce(props(), topic, 0, 200);
        Member first = new Member(topic, group, assignor, seen);
        awaitSeen(seen, 200, first);
        Member second = new Member(topic, group, assignor, seen);
        awaitAssigned(2, first, second);
        produce(props(), topic, 200, 400);
        awaitSeen(seen, 400, first, second);
        second.end();
        awaitAssigned(4, first);
        produce(props(), topic, 400, 500);
        awaitSeen(seen, 500, first);
        first.end();
        produce(props(), topic, 500, 550);
        Set<Long> later = Collections.newSetFromMap(new ConcurrentHashMap<Long, Boolean>());
        Member third = new Member(topic, group, assignor, later);
        awaitSeen(later, 50, third);
        third.end();
        for (long i : later) check(i >= 500, "record " + i + " was read again");
        check(later.size() == 50 && seen.size() == 500, seen.size() + " and " + later.size() + " records came");
    }

    /** restart stops in the middle and goes on from the commit, in records of one codec. */
    static void restart(String codec) throws Exception {
        String topic = name("restart"), group = name("g");
        produce(props("compression.type", codec), topic, 0, 400);
        TopicPartition tp = new TopicPartition(topic, 2);
        KafkaConsumer<byte[], byte[]> c = consumer("group.id", group);
        try {
            c.assign(Arrays.asList(tp));
            check(c.committed(tp) == null, "something is committed");
            for (long deadline = deadline(); c.poll(200).isEmpty(); ) check(System.nanoTime() < deadline, "nothing came");
            c.commitSync(Collections.singletonMap(tp, new OffsetAndMetadata(37, "a note")));
        } finally {
            c.close();
        }
        c = consumer("group.id", group);
        try {
            c.assign(Arrays.asList(tp));
            OffsetAndMetadata committed = c.committed(tp);
            check(committed.offset() == 37 && committed.metadata().equals("a note"), "committed is " + committed);
            long next = 37;
            for (long deadline = deadline(); next < 100; ) {
                check(System.nanoTime() < deadline, "records came up to " + next);
                for (ConsumerRecord<byte[], byte[]> r : c.poll(200)) {
                    check(r.offset() == next++, "offset " + r.offset() + " came instead of " + (next - 1));
                    checkRecord(r);
                }
            }
        } finally {
            c.close();
        }
    }

    /** offsetsByTime needs records with times (0.10) and a search by time (0.10.1). */
    static void offsetsByTime() throws Exception {
        String topic = name("times");
        Constructor<?> timed = ProducerRecord.class.getConstructor(String.class, Integer.class, Long.class, Object.class, Object.class);
        long start = System.currentTimeMillis() - 100000;
        KafkaProducer<byte[], byte[]> producer = producer(props());
        try {
            for (int i = 0; i < 10; i++) {
                @SuppressWarnings("unchecked")
                ProducerRecord<byte[], byte[]> r = (ProducerRecord<byte[], byte[]>) timed.newInstance(topic, 0, start + 1000L * i, null, bytes("x"));
                producer.send(r).get();
            }
        } finally {
            producer.close();
        }
        TopicPartition tp = new TopicPartition(topic, 0);
        KafkaConsumer<byte[], byte[]> c = consumer();
        try {
            Method find = KafkaConsumer.class.getMethod("offsetsForTimes", Map.class);
            Object[] want = {4500L, 5L, 0L, 0L, 60000L, null};
            for (int i = 0; i < want.length; i += 2) {
                Object found = ((Map<?, ?>) find.invoke(c, Collections.singletonMap(tp, start + (Long) want[i]))).get(tp);
                Object offset = found == null ? null : found.getClass().getMethod("offset").invoke(found);
                check(Objects.equals(offset, want[i + 1]), "at " + want[i] + " ms is offset " + offset);
            }
            Object first = KafkaConsumer.class.getMethod("beginningOffsets", Collection.class).invoke(c, Arrays.asList(tp));
            Object last = KafkaConsumer.class.getMethod("endOffsets", Collection.class).invoke(c, Arrays.asList(tp));
            check(((Map<?, ?>) first).get(tp).equals(0L) && ((Map<?, ?>) last).get(tp).equals(10L), "offsets from " + first + " to " + last);
        } finally {
            c.close();
        }
    }
}
