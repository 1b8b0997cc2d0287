// Members of a classic group: kafkajs and @platformatic/kafka. `node readers.mjs LIBRARY ADDRESS TOPIC GROUP COUNT` reads COUNT
// records from the beginning, commits, leaves, and prints how many it has read.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(pathToFileURL(process.env.CLIENTS_NODE + '/agent.mjs'))
const [library, address, topic, group, count] = process.argv.slice(2)
let read = 0

async function kafkajs() {
  const { Kafka, logLevel } = require('kafkajs')
  const consumer = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING }).consumer({ groupId: group, sessionTimeout: 10000 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await new Promise((done, fail) => {
    consumer.on(consumer.events.CRASH, e => fail(e.payload.error))
    consumer.run({ eachMessage: async () => { if (++read === Number(count)) done() } })
  })
  await consumer.stop()
  await consumer.disconnect()
}

async function platformatic() {
  const { Consumer, MessagesStreamModes } = require('@platformatic/kafka')
  const consumer = new Consumer({ groupId: group, clientId: 'readers', bootstrapBrokers: [address], sessionTimeout: 10000 })
  const stream = await consumer.consume({ topics: [topic], mode: MessagesStreamModes.EARLIEST, autocommit: false })
  for await (const message of stream) {
    await message.commit()
    if (++read === Number(count)) break
  }
  await consumer.close(true)
}

const limit = setTimeout(() => { console.log(read, 'when the time was over'); process.exit(1) }, 40000)
await (library === 'kafkajs' ? kafkajs() : platformatic())
clearTimeout(limit)
console.log(read)
process.exit(0)
