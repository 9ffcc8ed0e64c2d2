// node-rdkafka, which binds librdkafka, from 2.18 on.
import { createRequire } from 'node:module'

import { address, check, checkRecords, checkTransaction, groupCase, key, main, newName, partitions, records, text, until, value } from './common.mjs'

const Kafka = createRequire(import.meta.url)('node-rdkafka')
const base = { 'metadata.broker.list': address }

/** call(object, 'method', ...) is the method's last argument, a callback, as a promise. */
const call = (object, method, ...args) => new Promise((resolve, reject) => {
  object[method](...args, (err, result) => (err ? reject(err) : resolve(result)))
})

async function using (client, use) {
  await call(client, 'connect', { timeout: 10_000 })
  try {
    return await use(client)
  } finally {
    await call(client, 'disconnect')
  }
}

async function withAdmin (use) {
  const admin = Kafka.AdminClient.create(base)
  try {
    return await use(admin)
  } finally {
    admin.disconnect()
  }
}

async function newTopic (what, count = partitions) {
  const topic = newName(what)
  await withAdmin(admin => call(admin, 'createTopic', { topic, num_partitions: count, replication_factor: 1 }, 10_000))
  return topic
}

const newProducer = more => new Kafka.Producer({ ...base, dr_cb: true, ...more })
const newConsumer = (group, more) => new Kafka.KafkaConsumer(
  { ...base, 'group.id': group, 'enable.auto.commit': false, 'check.crcs': true, 'fetch.wait.max.ms': 100, rebalance_cb: true, ...more },
  { 'auto.offset.reset': 'earliest' })

/** Sends messages [topic, partition, value, key, timestamp, headers] and returns when all are acknowledged. */
async function send (producer, messages) {
  let reported = 0
  const failed = []
  const onReport = err => {
    reported++
    if (err) failed.push(err)
  }
  producer.on('delivery-report', onReport)
  for (const [topic, partition, v, k, time, headers] of messages) {
    producer.produce(topic, partition, v === null ? null : Buffer.from(v), k, time, undefined, headers)
  }
  await until(() => `${reported} of ${messages.length} are reported`, () => {
    producer.poll()
    return reported === messages.length
  })
  producer.removeListener('delivery-report', onReport)
  check(failed.length === 0, failed)
}

const batch = consumer => call(consumer, 'consume', 1000)

/** Reads count records without a group, and waits a moment for one too many. */
async function read (topic, count, more) {
  return using(newConsumer(newName('reader'), more), async consumer => {
    consumer.setDefaultConsumeTimeout(100)
    consumer.assign(Array.from({ length: partitions }, (_, partition) => ({ topic, partition, offset: 0 })))
    const got = []
    for (let idle = 0; idle < (got.length >= count ? 3 : 100);) {
      const messages = await batch(consumer)
      idle = messages.length ? 0 : idle + 1
      got.push(...messages)
    }
    return got.map(m => ({
      partition: m.partition, offset: m.offset, key: text(m.key), value: text(m.value),
      headers: (m.headers ?? []).flatMap(h => Object.entries(h).map(([k, v]) => [k, text(v)])),
    }))
  })
}

async function roundTrip (more) {
  const topic = await newTopic('codec')
  await using(newProducer({ 'linger.ms': 20, 'batch.num.messages': 50, ...more }), producer => send(producer,
    Array.from({ length: records }, (_, i) => [topic, i % partitions, value(i), key(i), null, [{ n: `${i}` }, { null: '' }]])))
  checkRecords(await read(topic, records), '')
}

async function group (assignor) {
  const topic = await newTopic('group', 4)
  const join = async () => {
    const consumer = newConsumer('g-' + topic, assignor === 'consumer'
      ? { 'group.protocol': 'consumer' }
      : { 'partition.assignment.strategy': assignor, 'heartbeat.interval.ms': 200 })
    const member = { values: [], count: 0, held: () => member.count }
    await call(consumer, 'connect', { timeout: 10_000 })
    consumer.setDefaultConsumeTimeout(100)
    consumer.subscribe([topic])
    let leaving = false
    const run = (async () => {
      while (!leaving) {
        const messages = await batch(consumer)
        member.count = consumer.assignments().length
        if (messages.length) {
          member.values.push(...messages.map(m => text(m.value)))
          consumer.commitSync()
        }
      }
    })()
    run.catch(e => { member.error = e })
    member.leave = async () => {
      leaving = true
      await run
      await call(consumer, 'disconnect')
    }
    return member
  }
  await using(newProducer(), producer => groupCase(join, values => send(producer, values.map((v, n) => [topic, n % 4, v]))))
}

async function offsetsByTime () {
  const topic = await newTopic('time', 1)
  const start = Date.now() - 3_600_000
  await using(newProducer(), producer => send(producer, Array.from({ length: 10 }, (_, i) => [topic, 0, 'v', null, start + i * 1000])))
  await using(newConsumer(newName('times')), async consumer => {
    for (const [offset, want] of [[start, 0], [start + 4500, 5], [start + 60_000, -1]]) {
      const [at] = await call(consumer, 'offsetsForTimes', [{ topic, partition: 0, offset }], 10_000)
      check(at.offset === want, 'the offset at', offset - start, 'ms is', at)
    }
    const ends = await call(consumer, 'queryWatermarkOffsets', topic, 0, 10_000)
    check(ends.lowOffset === 0 && ends.highOffset === 10, 'the ends are', ends)
  })
}

async function transaction () {
  const topic = await newTopic('txn')
  const groupId = newName('txn-group')
  await using(newProducer({ 'transactional.id': newName('txn') }), async producer => {
    await call(producer, 'initTransactions', 30_000)
    for (const [n, end] of ['commit', 'abort', 'commit'].entries()) {
      await call(producer, 'beginTransaction')
      await send(producer, Array.from({ length: 10 }, (_, i) => [topic, i % partitions, `${n}`]))
      if (n === 2) {
        await using(newConsumer(groupId), consumer => call(producer, 'sendOffsetsToTransaction', [{ topic, partition: 0, offset: 7 }], consumer, 30_000))
      }
      await call(producer, end + 'Transaction', 30_000)
    }
  })
  await checkTransaction(async (committed, count) => (
    (await read(topic, count, { 'isolation.level': committed ? 'read_committed' : 'read_uncommitted' })).map(r => r.value)))
  await using(newConsumer(groupId), async consumer => {
    const [at] = await call(consumer, 'committed', [{ topic, partition: 0 }], 10_000)
    check(at.offset === 7, "the group's offset is", at)
  })
}

async function fencing () {
  const topic = await newTopic('fence')
  const id = { 'transactional.id': newName('fence') }
  await using(newProducer(id), async first => {
    await call(first, 'initTransactions', 30_000)
    await call(first, 'beginTransaction')
    await send(first, [[topic, 0, 'lost']])
    await using(newProducer(id), async second => {
      await call(second, 'initTransactions', 30_000)
      const error = await call(first, 'commitTransaction', 30_000).then(() => null, e => e)
      check(/fenced/i.test(error?.message ?? ''), "the first producer's commit ends with", error)
      await call(second, 'beginTransaction')
      await send(second, [[topic, 0, 'kept']])
      await call(second, 'commitTransaction', 30_000)
    })
  })
  const values = (await read(topic, 1, { 'isolation.level': 'read_committed' })).map(r => r.value)
  check(values.join() === 'kept', 'what is read is', values)
}

async function admin () {
  const topic = await newTopic('admin')
  await using(newProducer(), producer => withAdmin(async admin => {
    const listed = async () => (await call(producer, 'getMetadata', { timeout: 10_000 })).topics.find(t => t.name === topic)
    await until(listed, listed)
    await call(admin, 'createPartitions', topic, 4, 10_000)
    await until(listed, async () => (await listed())?.partitions.length === 4)
    await call(admin, 'deleteTopic', topic, 10_000)
    await until(listed, async () => !(await listed()))
  }))
}

main({
  codec: codec => roundTrip({ 'compression.codec': codec }),
  acks: level => roundTrip({ acks: { 0: 0, 1: 1, all: -1 }[level] }),
  idempotent: () => roundTrip({ 'enable.idempotence': true }),
  group,
  'offsets-by-time': offsetsByTime,
  transaction,
  fencing,
  admin,
})
