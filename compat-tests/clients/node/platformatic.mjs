// @platformatic/kafka, from 1.20 on.
import { inspect } from 'node:util'

import { Admin, Consumer, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'

import { address, check, checkRecords, checkTransaction, groupCase, key, main, newName, partitions, records, sleep, until, value } from './common.mjs'

const base = { clientId: 'compat', bootstrapBrokers: [address] }
const old = !Admin.prototype.createPartitions

// The old version reads a null as an empty string.
const given = v => (v === undefined || (old && v === '') ? null : v)

async function using (client, use) {
  try {
    return await use(client)
  } finally {
    await (client instanceof Consumer ? client.close(true) : client.close())
  }
}

const newProducer = more => new Producer({ ...base, serializers: stringSerializers, ...more })
const newConsumer = (groupId, more) => new Consumer({ ...base, groupId, deserializers: stringDeserializers, maxWaitTime: 100, heartbeatInterval: 200, ...more })

async function newTopic (what, count = partitions) {
  const topic = newName(what)
  await using(new Admin(base), async admin => {
    await admin.createTopics({ topics: [topic], partitions: count, replicas: 1 })
    await until(() => 'the topic has no leaders', () => admin.metadata({ topics: [topic] }).then(m => m.topics.get(topic).partitions.every(p => p.leader >= 0), () => false))
  })
  return topic
}

/** Reads count records in a new group, and waits a moment for one too many. */
async function read (topic, count, isolationLevel = 1) {
  return using(newConsumer(newName('reader')), async consumer => {
    const got = []
    let error
    const stream = await consumer.consume({ topics: [topic], mode: 'earliest', isolationLevel, autocommit: false, sessionTimeout: 10_000, heartbeatInterval: 500 })
    stream.on('error', e => { error = e })
    stream.on('data', m => got.push({
      partition: m.partition, offset: m.offset, key: given(m.key), value: given(m.value), headers: [...m.headers].map(([k, v]) => [k, v ?? null]).sort(),
    }))
    await until(() => `${got.length} of ${count} records came`, () => error || got.length >= count)
    if (error) throw error
    await sleep(300)
    await stream.close()
    return got
  })
}

async function roundTrip (more) {
  const topic = await newTopic('codec')
  await using(newProducer(), async producer => {
    for (let from = 0; from < records; from += 50) {
      // The empty header is not the last: 1.20.0 throws at an empty value that ends the records of an answer which came in
      // several pieces (an empty slice at the end of its DynamicBuffer), from any broker.
      const messages = Array.from({ length: 50 }, (_, n) => from + n).map(i => ({
        topic, key: key(i) ?? undefined, value: value(i) ?? undefined, partition: i % partitions, headers: { null: '', n: `${i}` },
      }))
      await producer.send({ messages, ...more })
    }
    if (more.acks === 0) await sleep(100) // nothing says when they have been read from the socket
  })
  checkRecords(await read(topic, records), '')
}

async function group (protocol) {
  const topic = await newTopic('group', 4)
  const more = protocol === 'consumer' ? { groupProtocol: 'consumer' } : {}
  const join = async () => {
    const consumer = newConsumer('g-' + topic, more)
    const member = { values: [], held: () => consumer.assignments?.find(a => a.topic === topic)?.partitions.length ?? 0 }
    const stream = await consumer.consume({
      topics: [topic], mode: 'committed', fallbackMode: 'earliest', autocommit: true, sessionTimeout: 10_000, heartbeatInterval: 200, ...more,
    })
    stream.on('error', e => { member.error = e })
    stream.on('data', m => { member.values.push(m.value) })
    member.leave = async () => {
      await stream.close()
      await consumer.close()
    }
    return member
  }
  await using(newProducer(), producer => groupCase(join, values => producer.send({
    messages: values.map((v, n) => ({ topic, value: v, partition: n % 4 })),
  })))
}

async function offsetsByTime () {
  const topic = await newTopic('time', 1)
  const start = Date.now() - 3_600_000
  await using(newProducer(), producer => producer.send({
    messages: Array.from({ length: 10 }, (_, i) => ({ topic, value: 'v', partition: 0, timestamp: BigInt(start + i * 1000) })),
  }))
  await using(newConsumer(newName('times')), async consumer => {
    for (const [timestamp, want] of [[BigInt(start), 0n], [BigInt(start + 4500), 5n], [BigInt(start + 60_000), -1n], [-2n, 0n], [-1n, 10n]]) {
      const offsets = (await consumer.listOffsets({ topics: [topic], timestamp })).get(topic)
      check(offsets[0] === want, 'the offset at', timestamp, 'is', offsets)
    }
  })
}

const part = (topic, n) => Array.from({ length: 10 }, (_, i) => ({ topic, value: `${n}`, partition: i % partitions }))

async function transaction () {
  const topic = await newTopic('txn')
  const source = await newTopic('txn-source', 1)
  const groupId = newName('txn-group')
  const group = newConsumer(groupId)
  await using(newProducer(), producer => producer.send({ messages: Array.from({ length: 8 }, () => ({ topic: source, value: 'v', partition: 0 })) }))
  await using(group, () => using(newProducer({ transactionalId: newName('txn'), idempotent: true }), async producer => {
    const got = []
    const stream = await group.consume({ topics: [source], mode: 'committed', fallbackMode: 'earliest', autocommit: false, sessionTimeout: 10_000, heartbeatInterval: 500 })
    stream.on('data', m => got.push(m))
    await until(() => `${got.length} of 8 came`, () => got.length >= 8)
    for (const [n, end] of ['commit', 'abort', 'commit'].entries()) {
      const t = await producer.beginTransaction()
      await t.send({ messages: part(topic, n) })
      if (n === 2) {
        await t.addConsumer(group)
        await t.addOffset(got.find(m => m.offset === 6n))
      }
      await t[end]()
    }
    await stream.close()
  }))
  await checkTransaction(async (committed, count) => (await read(topic, count, committed ? 1 : 0)).map(r => r.value))
  await using(newConsumer(groupId), async consumer => {
    const offsets = (await consumer.listCommittedOffsets({ topics: [{ topic: source, partitions: [0] }] })).get(source)
    check(offsets[0] === 7n, "the group's offset is", offsets)
  })
}

/** This client asks for producer id 0 with epoch 0 when it begins, so it is the second one that Apache Kafka refuses. */
async function fencing () {
  const topic = await newTopic('fence')
  const more = { transactionalId: newName('fence'), idempotent: true }
  await using(newProducer(more), async first => {
    const t = await first.beginTransaction()
    await t.send({ messages: [{ topic, value: 'kept' }] })
    await using(newProducer(more), async second => {
      const error = await second.beginTransaction().then(() => null, e => e)
      check(/PRODUCER_FENCED/.test(inspect(error, { depth: 8 })), "the second producer's transaction begins with", error)
    })
    await t.commit()
  })
  const values = (await read(topic, 1)).map(r => r.value)
  check(values.join() === 'kept', 'what is read is', values)
}

async function admin () {
  const topic = await newTopic('admin')
  const groupId = 'g-' + topic
  await using(newConsumer(groupId), async consumer => {
    consumer.topics.track(topic)
    await consumer.joinGroup({ sessionTimeout: 10_000, heartbeatInterval: 500, rebalanceTimeout: 10_000 })
    await consumer.commit({ offsets: [{ topic, partition: 1, offset: 0n, leaderEpoch: -1 }] })
  })
  await using(new Admin(base), async admin => {
    const listed = async () => (await admin.listTopics()).includes(topic)
    await until(() => 'it is not listed', listed)
    check((await admin.listGroups()).has(groupId), 'the group is not listed')
    const described = (await admin.describeGroups({ groups: [groupId] })).get(groupId)
    check(/empty/i.test(described.state), 'the group is', described)
    if (!old) {
      await admin.createPartitions({ topics: [{ name: topic, count: 4, assignments: null }] })
      const resource = { resourceType: 2, resourceName: topic }
      await admin.incrementalAlterConfigs({ resources: [{ ...resource, configs: [{ name: 'retention.ms', configOperation: 0, value: '3600000' }] }] })
      const retention = async () => (
        (await admin.describeConfigs({ resources: [{ ...resource, configurationKeys: null }] }))[0].configs.find(c => c.name === 'retention.ms').value)
      await until(retention, async () => (await retention()) === '3600000')
      const [offsets] = await admin.listConsumerGroupOffsets({ groups: [groupId] })
      check(offsets.topics[0].partitions[0].committedOffset === 0n, "the group's offsets are", offsets)
      await admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition: 0, offset: -1n }] }] })
    }
    await admin.deleteGroups({ groups: [groupId] })
    await admin.deleteTopics({ topics: [topic] })
    await until(() => 'it is still listed', async () => !(await listed()))
  })
}

main({
  codec: compression => roundTrip({ compression, acks: -1 }),
  acks: level => roundTrip({ acks: { 0: 0, 1: 1, all: -1 }[level] }),
  idempotent: () => roundTrip({ idempotent: true, acks: -1 }),
  group,
  'offsets-by-time': offsetsByTime,
  transaction,
  fencing,
  admin,
})
