"""kafka-python as a client of the age that a case names: messages of format v0 before 0.10, of v1 before 0.11."""
import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from common import RECORDS, check, key, main, name, until, value

ADDRESS = sys.argv[1]


def read(version, topic, group, count, start):
    """Reads count records from a member of a group, or of the partition where the age has no groups."""
    c = KafkaConsumer(bootstrap_servers=ADDRESS, api_version=version, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False)
    if group and version >= (0, 9):
        c.subscribe([topic])
    else:
        c.assign([TopicPartition(topic, 0)])
    got = []

    def poll():
        for records in c.poll(timeout_ms=100).values():
            got.extend(records)
        return len(got) >= count

    until(lambda: "%d of %d records" % (len(got), count), poll)
    for i, r in enumerate(got, start):
        check((r.offset, r.key, r.value) == (i, key(i), value(i)), "record", i, "is", r)
    if group:
        c.commit({TopicPartition(topic, 0): OffsetAndMetadata(start + count, "")})
    c.close()


def age(text):
    version = tuple(int(n) for n in text.split("."))
    for codec in [None, "gzip", "snappy", "lz4"]:
        if codec == "lz4" and version < (0, 8, 2):
            continue  # the client itself refuses
        topic = name("age")
        producer = KafkaProducer(bootstrap_servers=ADDRESS, api_version=version, compression_type=codec, linger_ms=20, batch_size=4000)
        group = "g-" + topic if version >= (0, 8, 2) else None  # before that offsets were ZooKeeper's
        for start in [0, RECORDS]:
            sent = [producer.send(topic, key=key(i), value=value(i), partition=0) for i in range(start, start + RECORDS)]
            producer.flush()
            for future in sent:
                future.get(timeout=30)
            if group or start == 0:
                read(version, topic, group, RECORDS, start)
        producer.close()


if __name__ == "__main__":
    main({"age": age})
