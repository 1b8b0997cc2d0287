import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import kafkaTs from 'kafka-ts'
import { startDohle } from './dohle.mjs'

let dohle, client

before(async () => {
  dohle = await startDohle('words:3')
  const [host, port] = dohle.bootstrap.split(':')
  client = kafkaTs.createKafkaClient({ clientId: 'words', bootstrapServers: [{ host, port: Number(port) }] })
})

after(() => dohle.stop())

test('words come back in order', async () => {
  const words = ['jackdaw', 'jackfruit', 'jackpot']
  const producer = client.createProducer({})
  await producer.send(words.map(value => ({ topic: 'words', partition: 2, value })))
  await producer.close()
  const got = []
  const consumer = await client.startConsumer({
    topics: ['words'], fromBeginning: true, maxWaitMs: 200, onBatch: batch => got.push(...batch.map(message => message.value))
  })
  for (let i = 0; i < 500 && got.length < words.length; i++) await new Promise(done => setTimeout(done, 10))
  await consumer.close()
  assert.deepEqual(got, words)
})
