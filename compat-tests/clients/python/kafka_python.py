"""kafka-python, from 2.0.2 on."""
import importlib
import sys
import time

import kafka
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic
from kafka.structs import OffsetAndMetadata

from common import PARTITIONS, RECORDS, check, check_records, group_case, key, main, name, until, value

ADDRESS = sys.argv[1]
OLD = tuple(int(n) for n in kafka.__version__.split(".")[:2]) < (2, 1)

NULL = b""  # this client refuses null header values


def commit_at(offset):
    """The structure has got a third field."""
    return OffsetAndMetadata(offset, "") if OLD else OffsetAndMetadata(offset, "", -1)


def new_topic(what, partitions=PARTITIONS):
    topic = name(what)
    admin = KafkaAdminClient(bootstrap_servers=ADDRESS)
    admin.create_topics([NewTopic(topic, partitions, 1)])
    admin.close()
    return topic


def consumer(topic=None, **config):
    c = KafkaConsumer(bootstrap_servers=ADDRESS, auto_offset_reset="earliest", enable_auto_commit=False, **config)
    if topic:
        c.subscribe([topic])
    return c


def read(topic, count, partitions=PARTITIONS, **config):
    """Reads count records without a group, and waits a moment for one too many."""
    c = consumer(**config)
    c.assign([TopicPartition(topic, p) for p in range(partitions)])
    got, idle = [], 0
    while idle < 3 if len(got) >= count else idle < 100:
        batch = [r for records in c.poll(timeout_ms=100).values() for r in records]
        idle = 0 if batch else idle + 1
        got += batch
    c.close()
    return got


def round_trip(**config):
    topic = new_topic("codec")
    producer = KafkaProducer(bootstrap_servers=ADDRESS, linger_ms=20, batch_size=4000, **config)
    sent = [
        producer.send(topic, key=key(i), value=value(i), partition=i % PARTITIONS, headers=[("n", b"%d" % i), ("null", NULL)])
        for i in range(RECORDS)
    ]
    producer.flush()
    for future in sent:
        future.get(30)
    producer.close()
    got = read(topic, RECORDS, check_crcs=True)
    check_records([(r.partition, r.offset, r.key, r.value, r.headers) for r in got], null_header=NULL)


def acks(level):
    round_trip(acks={"0": 0, "1": 1, "all": "all"}[level])


class Driver:
    @staticmethod
    def poll(c):
        return [r.value for records in c.poll(timeout_ms=100).values() for r in records]

    @staticmethod
    def assignment(c):
        return c.assignment()

    @staticmethod
    def commit(c):
        c.commit()

    @staticmethod
    def close(c):
        c.close()


def group(assignor="range"):
    module, strategy = {
        "range": ("range", "RangePartitionAssignor"),
        "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
        "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
        "cooperative": ("cooperative_sticky", "CooperativeStickyAssignor"),
    }[assignor]
    strategy = getattr(importlib.import_module("kafka.coordinator.assignors." + module), strategy)
    topic = new_topic("group", 4)
    producer = KafkaProducer(bootstrap_servers=ADDRESS)

    def produce(values):
        for n, v in enumerate(values):
            producer.send(topic, value=v, partition=n % 4)
        producer.flush()

    def member():
        c = consumer(topic, group_id="g-" + topic, heartbeat_interval_ms=200, partition_assignment_strategy=[strategy])
        know(c, topic)
        return c

    group_case(Driver, member, produce)
    producer.close()


def know(c, topic):
    """Waits until a consumer that has subscribed knows the topic's partitions, before it joins.

    A leader of kafka-python 3.0.12 that does not know them assigns nobody anything, and joins once more when they come.
    That second join is lost when a poll's time ends in it, with every broker: need_rejoin compares the metadata with what
    was assigned by and sets no flag, _perform_assignment makes the two equal before SyncGroup is sent, so the next poll
    finds nothing to wait for. What SyncGroup answers is never read, and the heartbeats stay off. With answers of SyncGroup
    held for 150 ms, and polls of 100 ms, that is so nearly every time, with Apache Kafka 4.4 as well."""
    until(lambda: "no partitions of " + topic, lambda: c.partitions_for_topic(topic))


def offsets_by_time():
    topic = new_topic("time", 1)
    base = int(time.time() * 1000) - 3_600_000
    producer = KafkaProducer(bootstrap_servers=ADDRESS)
    for i in range(10):
        producer.send(topic, value=b"v", timestamp_ms=base + i * 1000)
    producer.flush()
    producer.close()
    c, tp = consumer(), TopicPartition(topic, 0)
    for stamp, want in (base, 0), (base + 4500, 5), (base + 60_000, None):
        at = c.offsets_for_times({tp: stamp})[tp]
        check((at and at.offset) == want, "the offset at", stamp - base, "ms is", at)
    check(c.beginning_offsets([tp])[tp] == 0, "the earliest offset")
    check(c.end_offsets([tp])[tp] == 10, "the latest offset")
    c.close()


def transaction():
    topic, group_id = new_topic("txn"), name("txn-group")
    producer = KafkaProducer(bootstrap_servers=ADDRESS, transactional_id=name("txn"))
    producer.init_transactions()
    for n, end in enumerate(("commit", "abort", "commit")):
        producer.begin_transaction()
        for i in range(10):
            producer.send(topic, value=b"%d" % n, partition=i % PARTITIONS)
        producer.flush()  # an abort would drop what has not been sent
        if n == 2:
            c = KafkaConsumer(bootstrap_servers=ADDRESS, group_id=group_id)
            producer.send_offsets_to_transaction({TopicPartition(topic, 0): commit_at(7)}, group_id)
            c.close()
        getattr(producer, end + "_transaction")()
    producer.close()
    for level, want in ("read_committed", {b"0": 10, b"2": 10}), ("read_uncommitted", {b"0": 10, b"1": 10, b"2": 10}):
        values = [r.value for r in read(topic, sum(want.values()), isolation_level=level)]
        check({v: values.count(v) for v in values} == want, level, "reads", values)
    c = KafkaConsumer(bootstrap_servers=ADDRESS, group_id=group_id)
    committed = c.committed(TopicPartition(topic, 0))
    check(committed == 7, "the group's offset is", committed)
    c.close()


def fencing():
    topic, txn = new_topic("fence"), name("fence")
    first = KafkaProducer(bootstrap_servers=ADDRESS, transactional_id=txn)
    first.init_transactions()
    first.begin_transaction()
    first.send(topic, value=b"lost")
    first.flush()
    second = KafkaProducer(bootstrap_servers=ADDRESS, transactional_id=txn)
    second.init_transactions()
    try:
        first.commit_transaction()
    except kafka.errors.KafkaError as e:
        check("Fenced" in type(e).__name__ or "Epoch" in type(e).__name__, "the first producer's commit fails with", repr(e))
    else:
        check(False, "the first producer's commit succeeds")
    second.begin_transaction()
    second.send(topic, value=b"kept")
    second.commit_transaction()
    second.close()
    check([r.value for r in read(topic, 1, isolation_level="read_committed")] == [b"kept"], "the second producer's record is not alone")


def topic_configs(adm, topic):
    described = adm.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    if OLD:
        return {e[0]: e[1] for response in described for r in response.resources for e in r[4]}
    return {k: v["value"] for topics in described.values() for k, v in topics[topic].items()}


def admin():
    topic = new_topic("admin")
    adm = KafkaAdminClient(bootstrap_servers=ADDRESS)
    until(adm.list_topics, lambda: topic in adm.list_topics())
    adm.create_partitions({topic: NewPartitions(4) if OLD else 4})
    until(lambda: adm.describe_topics([topic]), lambda: len(adm.describe_topics([topic])[0]["partitions"]) == 4)
    adm.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "3600000"})])
    until(lambda: topic_configs(adm, topic), lambda: topic_configs(adm, topic).get("retention.ms") == "3600000")
    c = KafkaConsumer(bootstrap_servers=ADDRESS, group_id="g-" + topic)
    c.commit({TopicPartition(topic, 1): commit_at(0)})
    c.close()
    check("g-" + topic in str(adm.list_consumer_groups() if OLD else adm.list_groups()), "the group is not listed")
    offsets = adm.list_consumer_group_offsets("g-" + topic) if OLD else adm.list_group_offsets(["g-" + topic])
    check(topic in str(offsets), "the group's offsets:", offsets)
    (adm.delete_consumer_groups if OLD else adm.delete_groups)(["g-" + topic])
    adm.delete_topics([topic])
    until(adm.list_topics, lambda: topic not in adm.list_topics())
    adm.close()


if __name__ == "__main__":
    main({
        "codec": lambda codec: round_trip(compression_type=None if codec == "none" else codec),
        "acks": acks,
        "idempotent": lambda: round_trip(acks="all", enable_idempotence=True),
        "group": group,
        "offsets-by-time": offsets_by_time,
        "transaction": transaction,
        "fencing": fencing,
        "admin": admin,
    })
