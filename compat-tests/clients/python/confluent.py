"""confluent-kafka, which binds librdkafka, from 2.0.2 on."""
import sys
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType
from confluent_kafka import ConsumerGroupTopicPartitions

from common import PARTITIONS, RECORDS, check, check_records, group_case, key, main, name, until, value

ADDRESS = sys.argv[1]


def done(futures):
    return [f.result(30) for f in futures.values()]


def new_topic(what, partitions=PARTITIONS):
    topic = name(what)
    adm = AdminClient({"bootstrap.servers": ADDRESS})
    done(adm.create_topics([NewTopic(topic, partitions, 1)]))
    return topic


def producer(**config):
    return Producer({"bootstrap.servers": ADDRESS, **{k.replace("_", "."): v for k, v in config.items()}})


def consumer(topic=None, **config):
    c = Consumer({
        "bootstrap.servers": ADDRESS, "auto.offset.reset": "earliest", "enable.auto.commit": False, "check.crcs": True,
        "group.id": "none", **{k.replace("_", "."): v for k, v in config.items()},
    })
    if topic:
        c.subscribe([topic])
    return c


def send(p, topic, **message):
    def reported(error, _):
        if error:
            failures.append(error)

    failures = send.failures = getattr(send, "failures", [])
    p.produce(topic, on_delivery=reported, **message)


def flush(p):
    check(p.flush(30) == 0, "messages are still unsent")
    failures, send.failures = send.failures, []
    check(not failures, failures)


def read(topic, count, partitions=PARTITIONS, **config):
    """Reads count records without a group, and waits a moment for one too many."""
    c = consumer(**config)
    c.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
    got, idle = [], 0
    while idle < 3 if len(got) >= count else idle < 100:
        batch = c.consume(1000, timeout=0.1)
        for m in batch:
            check(m.error() is None, m.error())
        idle = 0 if batch else idle + 1
        got += batch
    c.close()
    return got


def round_trip(**config):
    topic = new_topic("codec")
    p = producer(linger_ms=20, batch_num_messages=50, **config)
    for i in range(RECORDS):
        send(p, topic, key=key(i), value=value(i), partition=i % PARTITIONS, headers=[("n", b"%d" % i), ("null", None)])
    flush(p)
    check_records([(m.partition(), m.offset(), m.key(), m.value(), m.headers()) for m in read(topic, RECORDS)])


class Driver:
    @staticmethod
    def poll(c):
        messages = c.consume(100, timeout=0.1)
        for m in messages:
            check(m.error() is None, m.error())
        return [m.value() for m in messages]

    @staticmethod
    def assignment(c):
        return {p.partition for p in c.assignment()}

    @staticmethod
    def commit(c):
        c.commit(asynchronous=False)

    @staticmethod
    def close(c):
        c.close()


def group(assignor):
    topic = new_topic("group", 4)
    p = producer()

    def produce(values):
        for n, v in enumerate(values):
            send(p, topic, value=v, partition=n % 4)
        flush(p)

    if assignor == "consumer":  # KIP-848
        config = {"group_protocol": "consumer"}
    else:
        config = {"partition_assignment_strategy": assignor, "heartbeat_interval_ms": 200}
    group_case(Driver, lambda: consumer(topic, group_id="g-" + topic, **config), produce)


def offsets_by_time():
    topic = new_topic("time", 1)
    base = int(time.time() * 1000) - 3_600_000
    p = producer()
    for i in range(10):
        send(p, topic, value=b"v", partition=0, timestamp=base + i * 1000)
    flush(p)
    c = consumer()
    for stamp, want in (base, 0), (base + 4500, 5), (base + 60_000, -1):
        at = c.offsets_for_times([TopicPartition(topic, 0, stamp)], timeout=30)[0]
        check(at.error is None and at.offset == want, "the offset at", stamp - base, "ms is", at)
    check(c.get_watermark_offsets(TopicPartition(topic, 0), timeout=30) == (0, 10), "the watermarks")
    c.close()


def transaction():
    topic, group_id = new_topic("txn"), name("txn-group")
    p = producer(transactional_id=name("txn"))
    p.init_transactions(30)
    for n, end in enumerate(("commit", "abort", "commit")):
        p.begin_transaction()
        for i in range(10):
            send(p, topic, value=b"%d" % n, partition=i % PARTITIONS)
        flush(p)  # an abort would drop what has not been sent
        if n == 2:
            c = consumer(group_id=group_id)
            p.send_offsets_to_transaction([TopicPartition(topic, 0, 7)], c.consumer_group_metadata(), 30)
            c.close()
        getattr(p, end + "_transaction")(30)
    for level, want in ("read_committed", {b"0": 10, b"2": 10}), ("read_uncommitted", {b"0": 10, b"1": 10, b"2": 10}):
        values = [m.value() for m in read(topic, sum(want.values()), isolation_level=level)]
        check({v: values.count(v) for v in values} == want, level, "reads", values)
    c = consumer(group_id=group_id)
    committed = c.committed([TopicPartition(topic, 0)], timeout=30)[0]
    check(committed.offset == 7, "the group's offset is", committed)
    c.close()


def fencing():
    topic, txn = new_topic("fence"), name("fence")
    first = producer(transactional_id=txn)
    first.init_transactions(30)
    first.begin_transaction()
    send(first, topic, value=b"lost", partition=0)
    flush(first)
    second = producer(transactional_id=txn)
    second.init_transactions(30)
    try:
        first.commit_transaction(30)
    except KafkaException as e:
        check(e.args[0].fatal() and e.args[0].name() in ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"), "the first producer's commit fails with", repr(e))
    else:
        check(False, "the first producer's commit succeeds")
    second.begin_transaction()
    send(second, topic, value=b"kept", partition=0)
    second.commit_transaction(30)
    check([m.value() for m in read(topic, 1, isolation_level="read_committed")] == [b"kept"], "the second producer's record is not alone")


def admin():
    topic = new_topic("admin")
    adm = AdminClient({"bootstrap.servers": ADDRESS})

    def listed():
        return adm.list_topics(timeout=30).topics

    def retention():
        return done(adm.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))[0]["retention.ms"].value

    until(listed, lambda: topic in listed())
    done(adm.create_partitions([NewPartitions(topic, 4)]))
    until(listed, lambda: len(listed()[topic].partitions) == 4)
    done(adm.alter_configs([ConfigResource(ResourceType.TOPIC, topic, set_config={"retention.ms": "3600000"})]))
    until(retention, lambda: retention() == "3600000")
    group_id = "g-" + topic
    c = consumer(group_id=group_id)
    c.commit(offsets=[TopicPartition(topic, 1, 0)], asynchronous=False)
    c.close()
    groups = adm.list_consumer_groups().result(30)
    check(not groups.errors and group_id in [g.group_id for g in groups.valid], "groups:", groups.valid, groups.errors)
    described = adm.describe_consumer_groups([group_id])[group_id].result(30)
    check(described.state.name == "EMPTY", "the group's state is", described.state)
    offsets = adm.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group_id)])[group_id].result(30)
    check([(p.partition, p.offset) for p in offsets.topic_partitions] == [(1, 0)], "the group's offsets are", offsets.topic_partitions)
    done(adm.delete_consumer_groups([group_id]))
    done(adm.delete_topics([topic]))
    until(listed, lambda: topic not in listed())


if __name__ == "__main__":
    main({
        "codec": lambda codec: round_trip(compression_codec=codec),
        "acks": lambda level: round_trip(acks=level),
        "idempotent": lambda: round_trip(enable_idempotence=True),
        "group": group,
        "offsets-by-time": offsets_by_time,
        "transaction": transaction,
        "fencing": fencing,
        "admin": admin,
    })
