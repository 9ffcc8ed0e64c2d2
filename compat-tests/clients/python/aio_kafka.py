"""aiokafka, from 0.8.1 on."""
import asyncio
import sys
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

try:  # until 0.9 these were kafka-python's
    from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
    from aiokafka.admin import NewPartitions, NewTopic
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from aiokafka.errors import KafkaError
except ImportError:
    from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.errors import KafkaError

from common import PARTITIONS, RECORDS, check, check_records, group_case, key, main, name, value

ADDRESS = sys.argv[1]


async def admin_client():
    adm = AIOKafkaAdminClient(bootstrap_servers=ADDRESS)
    await adm.start()
    return adm


async def new_topic(what, partitions=PARTITIONS):
    topic = name(what)
    adm = await admin_client()
    response = await adm.create_topics([NewTopic(topic, partitions, 1)])
    check(all(e[1] == 0 for e in response.topic_errors), response)
    await adm.close()
    return topic


async def new_producer(**config):
    p = AIOKafkaProducer(bootstrap_servers=ADDRESS, **config)
    await p.start()
    return p


async def new_consumer(*topics, **config):
    c = AIOKafkaConsumer(*topics, bootstrap_servers=ADDRESS, auto_offset_reset="earliest", enable_auto_commit=False, **config)
    await c.start()
    return c


async def send(producer, topic, records):
    """records are send's keyword arguments; returns when all are acknowledged."""
    await asyncio.gather(*[await producer.send(topic, **r) for r in records])


async def read(topic, count, partitions=PARTITIONS, **config):
    """Reads count records without a group, and waits a moment for one too many."""
    c = await new_consumer(**config)
    tps = [TopicPartition(topic, p) for p in range(partitions)]
    c.assign(tps)
    await c.seek_to_beginning(*tps)
    got, idle = [], 0
    while idle < 3 if len(got) >= count else idle < 100:
        batch = [r for records in (await c.getmany(timeout_ms=100)).values() for r in records]
        idle = 0 if batch else idle + 1
        got += batch
    await c.stop()
    return got


async def round_trip(**config):
    topic = await new_topic("codec")
    p = await new_producer(linger_ms=20, max_batch_size=4000, **config)
    await send(p, topic, [
        {"key": key(i), "value": value(i), "partition": i % PARTITIONS, "headers": [("n", b"%d" % i), ("null", None)]}
        for i in range(RECORDS)
    ])
    await p.stop()
    check_records([(r.partition, r.offset, r.key, r.value, r.headers) for r in await read(topic, RECORDS, check_crcs=True)])


class LoopConsumer:
    """A consumer with an event loop of its own, so that a thread can have it."""

    def __init__(self, *topics, **config):
        self.loop = asyncio.new_event_loop()
        self.made = lambda: new_consumer(*topics, **config)
        self.consumer = None

    def run(self, coroutine):
        return self.loop.run_until_complete(coroutine)


class Driver:
    @staticmethod
    def poll(c):
        c.consumer = c.consumer or c.run(c.made())
        return [r.value for records in c.run(c.consumer.getmany(timeout_ms=100)).values() for r in records]

    @staticmethod
    def assignment(c):
        return c.consumer.assignment()

    @staticmethod
    def commit(c):
        c.run(c.consumer.commit())

    @staticmethod
    def close(c):
        c.run(c.consumer.stop())


def group(assignor):
    strategy = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor, "sticky": StickyPartitionAssignor}[assignor]
    loop = asyncio.new_event_loop()
    topic = loop.run_until_complete(new_topic("group", 4))
    producer = loop.run_until_complete(new_producer())

    def produce(values):
        loop.run_until_complete(send(producer, topic, [{"value": v, "partition": n % 4} for n, v in enumerate(values)]))

    config = {"group_id": "g-" + topic, "heartbeat_interval_ms": 200, "partition_assignment_strategy": [strategy]}
    group_case(Driver, lambda: LoopConsumer(topic, **config), produce)
    loop.run_until_complete(producer.stop())


async def offsets_by_time():
    topic = await new_topic("time", 1)
    base = int(time.time() * 1000) - 3_600_000
    p = await new_producer()
    await send(p, topic, [{"value": b"v", "timestamp_ms": base + i * 1000} for i in range(10)])
    await p.stop()
    c, tp = await new_consumer(), TopicPartition(topic, 0)
    for stamp, want in (base, 0), (base + 4500, 5), (base + 60_000, None):
        at = (await c.offsets_for_times({tp: stamp}))[tp]
        check((at and at.offset) == want, "the offset at", stamp - base, "ms is", at)
    check((await c.beginning_offsets([tp]))[tp] == 0, "the earliest offset")
    check((await c.end_offsets([tp]))[tp] == 10, "the latest offset")
    await c.stop()


async def transaction():
    topic, group_id = await new_topic("txn"), name("txn-group")
    p = await new_producer(transactional_id=name("txn"))
    for n, end in enumerate(("commit", "abort", "commit")):
        await p.begin_transaction()
        await send(p, topic, [{"value": b"%d" % n, "partition": i % PARTITIONS} for i in range(10)])
        if n == 2:
            await p.send_offsets_to_transaction({TopicPartition(topic, 0): 7}, group_id)
        await getattr(p, end + "_transaction")()
    await p.stop()
    for level, want in ("read_committed", {b"0": 10, b"2": 10}), ("read_uncommitted", {b"0": 10, b"1": 10, b"2": 10}):
        values = [r.value for r in await read(topic, sum(want.values()), isolation_level=level)]
        check({v: values.count(v) for v in values} == want, level, "reads", values)
    c = await new_consumer(group_id=group_id)
    committed = await c.committed(TopicPartition(topic, 0))
    check(committed == 7, "the group's offset is", committed)
    await c.stop()


async def fencing():
    topic, txn = await new_topic("fence"), name("fence")
    first = await new_producer(transactional_id=txn)
    await first.begin_transaction()
    await send(first, topic, [{"value": b"lost"}])
    second = await new_producer(transactional_id=txn)
    try:
        await first.commit_transaction()
    except KafkaError as e:
        check("Fenced" in type(e).__name__ or "Epoch" in type(e).__name__, "the first producer's commit fails with", repr(e))
    else:
        check(False, "the first producer's commit succeeds")
    await second.begin_transaction()
    await send(second, topic, [{"value": b"kept"}])
    await second.commit_transaction()
    await second.stop()
    try:
        await first.stop()
    except KafkaError:
        pass  # it says once more that it was fenced
    values = [r.value for r in await read(topic, 1, isolation_level="read_committed")]
    check(values == [b"kept"], "what is read is", values)


async def until(what, ready, limit=40):
    end = time.monotonic() + limit
    while not await ready():
        check(time.monotonic() < end, "after", limit, "s:", what)
        await asyncio.sleep(0.02)


async def admin():
    topic = await new_topic("admin")
    adm = await admin_client()

    async def listed():
        return topic in await adm.list_topics()

    async def absent():
        return not await listed()

    async def four():
        return len((await adm.describe_topics([topic]))[0]["partitions"]) == 4

    async def retention():
        described = await adm.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        return {e[0]: e[1] for response in described for r in response.resources for e in r[4]}.get("retention.ms") == "3600000"

    await until("it is listed", listed)
    await adm.create_partitions({topic: NewPartitions(4)})
    await until("it has four partitions", four)
    await adm.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "3600000"})])
    await until("its retention.ms is changed", retention)
    c = await new_consumer(group_id="g-" + topic)
    c.assign([TopicPartition(topic, 1)])
    await c.commit({TopicPartition(topic, 1): 0})
    await c.stop()
    check("g-" + topic in [g[0] for g in await adm.list_consumer_groups()], "the group is not listed")
    offsets = await adm.list_consumer_group_offsets("g-" + topic)
    check({tp.partition: o.offset for tp, o in offsets.items()} == {1: 0}, "the group's offsets are", offsets)
    await adm.delete_topics([topic])
    await until("it is gone", absent)
    await adm.close()


if __name__ == "__main__":
    main({
        "codec": lambda codec: asyncio.run(round_trip(compression_type=None if codec == "none" else codec)),
        "acks": lambda level: asyncio.run(round_trip(acks={"0": 0, "1": 1, "all": "all"}[level])),
        "idempotent": lambda: asyncio.run(round_trip(enable_idempotence=True)),
        "group": group,
        "offsets-by-time": lambda: asyncio.run(offsets_by_time()),
        "transaction": lambda: asyncio.run(transaction()),
        "fencing": lambda: asyncio.run(fencing()),
        "admin": lambda: asyncio.run(admin()),
    })
