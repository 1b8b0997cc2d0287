// The agents of kafkajs, kafka-ts and @platformatic/kafka; see ../README.md for what an agent answers.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import readline from 'node:readline'

const require = createRequire(import.meta.url)
const sleep = ms => new Promise(done => setTimeout(done, ms))
const version = name => JSON.parse(readFileSync(new URL(`./node_modules/${name}/package.json`, import.meta.url))).version
const hostPort = address => ({ host: address.split(':')[0], port: Number(address.split(':')[1]) })

// Sends numbered records in batches, one batch after another, until the time is over.
async function load(ask, send) {
  const failed = []
  let sent = 0
  for (const limit = Date.now() + ask.seconds * 1000; Date.now() < limit; sent += 50) {
    const values = Array.from({ length: 50 }, (_, i) => `load-${String(sent + i).padStart(7, '0')}`)
    try {
      await send(values)
    } catch (reason) {
      console.error(reason)
      values.forEach((_, i) => failed.push(sent + i))
    }
    await sleep(5)
  }
  return { sent, failed }
}

function kafkajs() {
  const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require('kafkajs')
  CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
  const types = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy }
  const client = ask => new Kafka({ brokers: [ask.address], logLevel: logLevel.NOTHING, retry: { initialRetryTime: 50, retries: 20 } })
  async function produce(ask, work) {
    const producer = client(ask).producer({ idempotent: ask.idempotent, maxInFlightRequests: 1, allowAutoTopicCreation: true })
    await producer.connect()
    try {
      return await work(messages => producer.send({ topic: ask.topic, acks: -1, compression: types[ask.codec ?? 'none'], messages }))
    } finally {
      await producer.disconnect()
    }
  }
  return {
    hello: () => ({ version: version('kafkajs') }),
    write: ask => produce(ask, async send => {
      await send(ask.records.map(r => ({
        partition: r.p, key: r.k, value: r.v, headers: Object.fromEntries(r.h), ...(r.t === null ? {} : { timestamp: String(r.t) })
      })))
      return {}
    }),
    async time(ask) {
      const admin = client(ask).admin()
      await admin.connect()
      const offsets = await admin.fetchTopicOffsetsByTimestamp(ask.topic, ask.timestamp)
      await admin.disconnect()
      return { offset: Number(offsets.find(o => o.partition === 0).offset) }
    },
    load: ask => produce(ask, send => load(ask, values => send(values.map(value => ({ partition: 0, value })))))
  }
}

function kafkaTs() {
  const { createKafkaClient, API, setLogger } = require('kafka-ts')
  const quiet = () => {}
  setLogger({ debug: quiet, info: quiet, warn: console.error, error: console.error })
  const client = ask => createKafkaClient({ clientId: 'agent', bootstrapServers: [hostPort(ask.address)] })
  async function produce(ask, work) {
    const producer = client(ask).createProducer({ allowTopicAutoCreation: true, maxRetries: 20, maxRetryDelayMs: 500 })
    try {
      return await work(messages => producer.send(messages))
    } finally {
      await producer.close()
    }
  }
  return {
    hello: () => ({ version: version('kafka-ts') }),
    write: ask => produce(ask, async send => {
      await send(ask.records.map(r => ({
        topic: ask.topic, partition: r.p, key: r.k, value: r.v, headers: Object.fromEntries(r.h),
        ...(r.t === null ? {} : { timestamp: BigInt(r.t) })
      })))
      return {}
    }),
    async read(ask) {
      const records = []
      const consumer = await client(ask).startConsumer({
        topics: [ask.topic], fromBeginning: true, maxWaitMs: 200,
        onBatch: messages => {
          for (const m of messages)
            records.push({ p: m.partition, o: Number(m.offset), k: m.key, v: m.value, h: Object.entries(m.headers), t: Number(m.timestamp) })
        }
      })
      for (const limit = Date.now() + 20000; records.length < ask.count && Date.now() < limit;) await sleep(10)
      await consumer.close()
      return { records }
    },
    async time(ask) {
      const cluster = client(ask).createCluster()
      await cluster.connect()
      const got = await cluster.sendRequest(API.LIST_OFFSETS, {
        replicaId: -1, isolationLevel: 0, timeoutMs: 5000,
        topics: [{ name: ask.topic, partitions: [{ partitionIndex: 0, currentLeaderEpoch: -1, timestamp: BigInt(ask.timestamp) }] }]
      })
      await cluster.disconnect()
      return { offset: Number(got.topics[0].partitions[0].offset) }
    },
    load: ask => produce(ask, send => load(ask, values => send(values.map(value => ({ topic: ask.topic, partition: 0, value })))))
  }
}

async function platformatic() {
  const { Producer, Admin, stringSerializers } = await import('@platformatic/kafka')
  async function produce(ask, work) {
    const producer = new Producer({
      clientId: 'agent', bootstrapBrokers: [ask.address], serializers: stringSerializers, idempotent: ask.idempotent ?? false,
      acks: -1, autocreateTopics: true, retries: 20, retryDelay: 200
    })
    try {
      return await work(messages => producer.send({ messages, compression: ask.codec ?? 'none' }))
    } finally {
      await producer.close()
    }
  }
  return {
    hello: () => ({ version: version('@platformatic/kafka') }),
    write: ask => produce(ask, async send => {
      await send(ask.records.map(r => ({
        topic: ask.topic, partition: r.p, key: r.k ?? undefined, value: r.v ?? undefined, headers: Object.fromEntries(r.h),
        ...(r.t === null ? {} : { timestamp: BigInt(r.t) })
      })))
      return {}
    }),
    async time(ask) {
      const admin = new Admin({ clientId: 'agent', bootstrapBrokers: [ask.address] })
      const got = await admin.listOffsets({ topics: [{ name: ask.topic, partitions: [{ partitionIndex: 0, timestamp: BigInt(ask.timestamp) }] }] })
      await admin.close()
      return { offset: Number(got[0].partitions[0].offset) }
    },
    load: ask => produce(ask, send => load(ask, values => send(values.map(value => ({ topic: ask.topic, partition: 0, value })))))
  }
}

const agent = await { 'kafkajs': kafkajs, 'kafka-ts': kafkaTs, 'platformatic': platformatic }[process.argv[2]]()
for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  let said
  try {
    const ask = JSON.parse(line)
    said = await agent[ask.do](ask)
  } catch (reason) {
    console.error(reason)
    said = { error: String(reason?.stack ?? reason) }
  }
  console.log(JSON.stringify(said))
}
process.exit(0)
