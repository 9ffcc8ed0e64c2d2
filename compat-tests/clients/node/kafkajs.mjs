// kafkajs, from 1.15 on. It has gzip; the other codecs are what its users add to it.
import { createRequire } from 'node:module'
import zlib from 'node:zlib'

import { address, check, checkRecords, checkTransaction, groupCase, key, main, newName, partitions, records, sleep, text, until, value } from './common.mjs'

const require = createRequire(import.meta.url)
const { Kafka, logLevel, CompressionTypes, CompressionCodecs } = require('kafkajs')
const lz4 = require('lz4-napi')
const old = require('kafkajs/package.json').version.startsWith('1.')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: encoder => lz4.compressFrame(encoder.buffer),
  decompress: buffer => lz4.decompressFrame(buffer),
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => zlib.zstdCompressSync(encoder.buffer),
  decompress: async buffer => zlib.zstdDecompressSync(buffer),
})

const kafka = new Kafka({ clientId: 'compat', brokers: [address], logLevel: logLevel.NOTHING, retry: { initialRetryTime: 50 } })

async function withClient (client, use) {
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.disconnect()
  }
}

async function newTopic (what, numPartitions = partitions) {
  const topic = newName(what)
  await withClient(kafka.admin(), admin => admin.createTopics({ topics: [{ topic, numPartitions, replicationFactor: 1 }], waitForLeaders: true }))
  return topic
}

const consumerOf = (groupId, more) => kafka.consumer({ groupId, maxWaitTimeInMs: 100, heartbeatInterval: 200, ...more })

/** Reads count records in a new group, and waits a moment for one too many. */
async function read (topic, count, more) {
  const consumer = consumerOf(newName('reader'), more)
  return withClient(consumer, async () => {
    const got = []
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({
      eachMessage: async ({ partition, message }) => {
        got.push({
          partition, offset: message.offset, key: text(message.key), value: text(message.value),
          headers: Object.entries(message.headers ?? {}).map(([k, v]) => [k, text(v)]),
        })
      },
    })
    await until(() => `${got.length} of ${count} records came`, () => got.length >= count)
    await sleep(300)
    return got
  })
}

async function roundTrip (compression, acks = -1, idempotent = false) {
  const topic = await newTopic('codec')
  await withClient(kafka.producer({ idempotent }), async producer => {
    for (let from = 0; from < records; from += 50) {
      const messages = Array.from({ length: 50 }, (_, n) => from + n).map(i => (
        { key: key(i), value: value(i), partition: i % partitions, headers: { n: `${i}`, null: '' } }))
      await producer.send({ topic, acks, compression, messages })
    }
    if (acks === 0) await sleep(100) // nothing says when they have been read from the socket
  })
  checkRecords(await read(topic, records), '')
}

async function group () {
  const topic = await newTopic('group', 4)
  const producer = kafka.producer()
  await producer.connect()
  const join = async () => {
    const consumer = consumerOf('g-' + topic)
    const member = { values: [], count: 0, held: () => member.count, leave: () => consumer.disconnect() }
    consumer.on(consumer.events.GROUP_JOIN, e => { member.count = e.payload.memberAssignment[topic]?.length ?? 0 })
    consumer.on(consumer.events.CRASH, e => { member.error = e.payload.error })
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({ eachMessage: async ({ message }) => { member.values.push(text(message.value)) } })
    return member
  }
  await groupCase(join, values => producer.send({ topic, messages: values.map((v, n) => ({ value: v, partition: n % 4 })) }))
  await producer.disconnect()
}

async function offsetsByTime () {
  const topic = await newTopic('time', 1)
  const base = Date.now() - 3_600_000
  await withClient(kafka.producer(), producer => producer.send({
    topic, messages: Array.from({ length: 10 }, (_, i) => ({ value: 'v', timestamp: `${base + i * 1000}` })),
  }))
  await withClient(kafka.admin(), async admin => {
    for (const [stamp, want] of [[base, '0'], [base + 4500, '5'], [base + 60_000, '10']]) { // the client makes none the end
      const [at] = await admin.fetchTopicOffsetsByTimestamp(topic, stamp)
      check(at.offset === want, 'the offset at', stamp - base, 'ms is', at)
    }
    const [ends] = await admin.fetchTopicOffsets(topic)
    check(ends.low === '0' && ends.high === '10', 'the ends are', ends)
  })
}

const transactional = transactionalId => kafka.producer({ transactionalId, idempotent: true, maxInFlightRequests: 1 })

async function committed (admin, groupId, topic) {
  if (old) return admin.fetchOffsets({ groupId, topic })
  return (await admin.fetchOffsets({ groupId, topics: [topic] }))[0].partitions
}

async function transaction () {
  const topic = await newTopic('txn')
  const groupId = newName('txn-group')
  await withClient(transactional(newName('txn')), async producer => {
    for (const [n, end] of ['commit', 'abort', 'commit'].entries()) {
      const t = await producer.transaction()
      await t.send({ topic, messages: Array.from({ length: 10 }, (_, i) => ({ value: `${n}`, partition: i % partitions })) })
      if (n === 2) await t.sendOffsets({ consumerGroupId: groupId, topics: [{ topic, partitions: [{ partition: 0, offset: '7' }] }] })
      await t[end]()
    }
  })
  await checkTransaction(async (committed, count) => (await read(topic, count, { readUncommitted: !committed })).map(r => r.value))
  await withClient(kafka.admin(), async admin => {
    const offsets = await committed(admin, groupId, topic)
    check(offsets.find(p => p.partition === 0)?.offset === '7', "the group's offsets are", offsets)
  })
}

async function fencing () {
  const topic = await newTopic('fence')
  const id = newName('fence')
  await withClient(transactional(id), async first => {
    const t = await first.transaction()
    await t.send({ topic, messages: [{ value: 'lost' }] })
    await withClient(transactional(id), async second => {
      const u = await second.transaction()
      const error = await t.commit().then(() => null, e => e)
      check(/PRODUCER_EPOCH|FENCED/.test(error?.type ?? ''), "the first producer's commit ends with", error)
      await u.send({ topic, messages: [{ value: 'kept' }] })
      await u.commit()
    })
  })
  const values = (await read(topic, 1)).map(r => r.value)
  check(values.join() === 'kept', 'what is read is', values)
}

async function admin () {
  const topic = await newTopic('admin')
  const groupId = 'g-' + topic
  await withClient(kafka.admin(), async admin => {
    const listed = async () => (await admin.listTopics()).includes(topic)
    await until(() => 'it is not listed', listed)
    await admin.createPartitions({ topicPartitions: [{ topic, count: 4 }] })
    const metadata = async () => (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions
    await until(metadata, async () => (await metadata()).length === 4)
    const resource = { type: 2, name: topic }
    await admin.alterConfigs({ resources: [{ ...resource, configEntries: [{ name: 'retention.ms', value: '3600000' }] }] })
    const retention = async () => (
      (await admin.describeConfigs({ resources: [resource] })).resources[0].configEntries.find(e => e.configName === 'retention.ms').configValue)
    await until(retention, async () => (await retention()) === '3600000')
    await admin.setOffsets({ groupId, topic, partitions: [{ partition: 1, offset: '0' }] })
    check((await admin.listGroups()).groups.some(g => g.groupId === groupId), 'the group is not listed')
    const { groups } = await admin.describeGroups([groupId])
    check(groups[0].state === 'Empty', 'the group is', groups)
    const offsets = await committed(admin, groupId, topic)
    check(offsets.find(p => p.partition === 1)?.offset === '0', "the group's offsets are", offsets)
    await admin.deleteGroups([groupId])
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '-1' }] })
    await admin.deleteTopics({ topics: [topic] })
    await until(() => 'it is still listed', async () => !(await listed()))
  })
}

const codecs = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy, lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD }

main({
  codec: codec => roundTrip(codecs[codec]),
  acks: level => roundTrip(CompressionTypes.None, { 0: 0, 1: 1, all: -1 }[level]),
  idempotent: () => roundTrip(CompressionTypes.None, -1, true),
  group,
  'offsets-by-time': offsetsByTime,
  transaction,
  fencing,
  admin,
})
