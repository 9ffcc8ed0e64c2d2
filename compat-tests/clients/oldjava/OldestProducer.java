import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Drives the Java producer of 0.8.2, whose consumer is not finished: what it produced to the topic oldest-CODEC is read
 * back by somebody else. OldestProducer ADDRESS produce-CODEC..., a line of JSON for each.
 */
public class OldestProducer {
    public static void main(String[] args) {
        for (String name : Arrays.asList(args).subList(1, args.length)) {
            String why = null;
            try {
                produce(args[0], name.substring("produce-".length()));
            } catch (Throwable e) {
                why = e.toString().replaceAll("[\"\\\\\\p{Cntrl}]", " ");
            }
            System.out.println("{\"case\": \"" + name + "\", \"ok\": " + (why == null) + (why == null ? "" : ", \"why\": \"" + why + "\"") + "}");
        }
    }

    static void produce(String address, String codec) throws Exception {
        Map<String, Object> p = new HashMap<String, Object>();
        p.put("bootstrap.servers", address);
        p.put("compression.type", codec);
        p.put("linger.ms", 20L);
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<byte[], byte[]>(p, new ByteArraySerializer(), new ByteArraySerializer());
        List<Future<RecordMetadata>> sent = new ArrayList<Future<RecordMetadata>>();
        for (int i = 0; i < 300; i++) {
            byte[] key = i % 7 == 0 ? null : ("key " + i).getBytes(StandardCharsets.UTF_8);
            sent.add(producer.send(new ProducerRecord<byte[], byte[]>("oldest-" + codec, 0, key, ("value " + i + " the quick brown fox").getBytes(StandardCharsets.UTF_8))));
        }
        for (int i = 0; i < 300; i++) {
            long offset = sent.get(i).get(60, TimeUnit.SECONDS).offset();
            if (offset != i) throw new AssertionError("record " + i + " has offset " + offset);
        }
        producer.close();
    }
}
