import java.util.*;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.assignor.*;
import org.apache.kafka.coordinator.group.modern.*;

/**
 * Asks Apache Kafka's server-side assignors how they divide random groups, and prints one case a line as JSON.
 * Ids and maps are chosen so that the order of Java's hash maps is the natural one.
 */
public class Assignors {
    static final Random random = new Random(848);

    /** One member: what it subscribes to and what it has. */
    static class Member {
        final String id, instance;
        TreeSet<Integer> topics = new TreeSet<>();
        TreeMap<Integer, TreeSet<Integer>> assigned = new TreeMap<>();

        Member(String id, String instance) {
            this.id = id;
            this.instance = instance;
        }
    }

    public static void main(String[] args) {
        for (int chain = 0; chain < 40; chain++) {
            run(chain % 2 == 0 ? "uniform" : "range", chain % 4 < 2);
        }
    }

    /** run changes one group again and again; each division begins with the last. */
    static void run(String name, boolean homogeneous) {
        TreeMap<Integer, Integer> partitions = new TreeMap<>();
        for (int t = 1; t <= 1 + random.nextInt(4); t++) partitions.put(t, random.nextInt(13));
        TreeMap<String, Member> members = new TreeMap<>();
        for (int step = 0; step < 8; step++) {
            change(members, partitions, homogeneous);
            if (members.isEmpty()) continue;
            Map<String, MemberAssignment> result = assign(name, homogeneous, members, partitions);
            String want = members.keySet().stream()
                .map(id -> quote(id) + ":" + json(result.containsKey(id) ? result.get(id).partitions() : Map.of()))
                .collect(Collectors.joining(","));
            System.out.println("{\"assignor\":" + quote(name) + ",\"homogeneous\":" + homogeneous + ",\"topics\":" + counts(partitions)
                + ",\"members\":[" + members.values().stream().map(Assignors::json).collect(Collectors.joining(",")) + "],\"want\":{" + want + "}}");
            for (Member m : members.values()) {
                m.assigned = new TreeMap<>();
                if (!result.containsKey(m.id)) continue;
                result.get(m.id).partitions().forEach((t, ps) -> m.assigned.put((int) t.getLeastSignificantBits(), new TreeSet<>(ps)));
            }
        }
    }

    static void change(TreeMap<String, Member> members, TreeMap<Integer, Integer> partitions, boolean homogeneous) {
        for (int joining = random.nextInt(4); joining > 0; joining--) {
            String id = "m" + (10 + random.nextInt(80));
            members.putIfAbsent(id, new Member(id, random.nextInt(4) == 0 ? "i" + id.substring(1) : null));
        }
        if (members.size() > 1 && random.nextInt(3) == 0) {
            members.remove(new ArrayList<>(members.keySet()).get(random.nextInt(members.size())));
        }
        if (random.nextInt(3) == 0) {
            int t = 1 + random.nextInt(6);
            partitions.merge(t, 1 + random.nextInt(5), Integer::sum);
        }
        TreeSet<Integer> all = subset(partitions);
        boolean newSubscription = random.nextInt(3) == 0;
        for (Member m : members.values()) {
            if (homogeneous) {
                if (newSubscription || m.topics.isEmpty()) m.topics = all;
            } else if (m.topics.isEmpty() || random.nextInt(4) == 0) {
                m.topics = subset(partitions);
            }
        }
        if (homogeneous && !members.isEmpty()) {
            TreeSet<Integer> one = members.firstEntry().getValue().topics;
            for (Member m : members.values()) m.topics = one;
        }
    }

    static TreeSet<Integer> subset(TreeMap<Integer, Integer> partitions) {
        TreeSet<Integer> out = new TreeSet<>();
        for (int t : partitions.keySet()) if (random.nextInt(3) > 0) out.add(t);
        return out;
    }

    static Map<String, MemberAssignment> assign(String name, boolean homogeneous, TreeMap<String, Member> members, TreeMap<Integer, Integer> partitions) {
        TreeMap<String, MemberSubscriptionAndAssignmentImpl> specs = new TreeMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new TreeMap<>();
        for (Member m : members.values()) {
            Map<Uuid, Set<Integer>> assigned = new TreeMap<>();
            m.assigned.forEach((t, ps) -> {
                assigned.put(id(t), Collections.unmodifiableSet(ps));
                for (int p : ps) inverted.computeIfAbsent(id(t), __ -> new TreeMap<>()).put(p, m.id);
            });
            Set<Uuid> topics = m.topics.stream().map(Assignors::id).collect(Collectors.toCollection(TreeSet::new));
            specs.put(m.id, new MemberSubscriptionAndAssignmentImpl(Optional.empty(), Optional.ofNullable(m.instance), topics, new Assignment(assigned)));
        }
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topicId) {
                return partitions.get((int) topicId.getLeastSignificantBits());
            }

            public Set<String> racksForPartition(Uuid topicId, int partition) {
                return Set.of();
            }
        };
        ConsumerGroupPartitionAssignor assignor = name.equals("uniform") ? new UniformAssignor() : new RangeAssignor();
        SubscriptionType type = homogeneous ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        return assignor.assign(new GroupSpecImpl(specs, type, inverted, Optional.empty()), describer).members();
    }

    static Uuid id(int topic) {
        return new Uuid(0, topic);
    }

    static String quote(String s) {
        return "\"" + s + "\"";
    }

    static String counts(TreeMap<Integer, Integer> partitions) {
        return partitions.entrySet().stream().map(e -> quote("" + e.getKey()) + ":" + e.getValue()).collect(Collectors.joining(",", "{", "}"));
    }

    static String json(Member m) {
        TreeMap<Uuid, Set<Integer>> assigned = new TreeMap<>();
        m.assigned.forEach((t, ps) -> assigned.put(id(t), ps));
        return "{\"id\":" + quote(m.id) + (m.instance == null ? "" : ",\"instance\":" + quote(m.instance)) + ",\"topics\":" + new ArrayList<>(m.topics).toString().replace(" ", "")
            + ",\"assigned\":" + json(assigned) + "}";
    }

    static String json(Map<Uuid, Set<Integer>> assignment) {
        return new TreeMap<>(assignment).entrySet().stream().filter(e -> !e.getValue().isEmpty())
            .map(e -> quote("" + e.getKey().getLeastSignificantBits()) + ":" + new ArrayList<>(new TreeSet<>(e.getValue())).toString().replace(" ", ""))
            .collect(Collectors.joining(",", "{", "}"));
    }
}
