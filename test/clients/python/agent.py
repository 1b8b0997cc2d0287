"""The agents of aiokafka, kafka-python and confluent-kafka; see ../README.md for what an agent answers."""
import asyncio
import json
import sys
import time
from importlib.metadata import version


def encode(text):
    return None if text is None else text.encode()


def decode(data):
    return None if data is None else data.decode()


def headers_of(record):
    return [(name, value.encode()) for name, value in record["h"]]


def said_record(partition, offset, key, value, headers, timestamp):
    return {"p": partition, "o": offset, "k": decode(key), "v": decode(value), "t": timestamp,
            "h": [[name, decode(data)] for name, data in headers or []]}


class AioKafka:
    package = "aiokafka"

    def __init__(self):
        import aiokafka
        self.kafka = aiokafka
        self.loop = asyncio.new_event_loop()

    def __getattr__(self, name):
        return lambda ask: self.loop.run_until_complete(getattr(self, "do_" + name)(ask))

    def producer(self, ask):
        codec = ask.get("codec", "none")
        return self.kafka.AIOKafkaProducer(bootstrap_servers=ask["address"], acks="all", linger_ms=5, max_request_size=1_040_000,
                                           compression_type=None if codec == "none" else codec,
                                           enable_idempotence=ask.get("idempotent", False))

    async def consumer(self, ask):
        consumer = self.kafka.AIOKafkaConsumer(bootstrap_servers=ask["address"], enable_auto_commit=False,
                                               auto_offset_reset="earliest")
        await consumer.start()
        return consumer

    async def do_write(self, ask):
        async with self.producer(ask) as producer:
            sent = [await producer.send(ask["topic"], encode(r["v"]), key=encode(r["k"]), partition=r["p"],
                                        timestamp_ms=r["t"], headers=headers_of(r)) for r in ask["records"]]
            await asyncio.gather(*sent)
        return {}

    async def do_read(self, ask):
        consumer = await self.consumer(ask)
        partitions = [self.kafka.TopicPartition(ask["topic"], p) for p in range(ask["partitions"])]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        records, limit = [], time.monotonic() + 20
        while len(records) < ask["count"] and time.monotonic() < limit:
            for batch in (await consumer.getmany(timeout_ms=200)).values():
                records += [said_record(r.partition, r.offset, r.key, r.value, r.headers, r.timestamp) for r in batch]
        await consumer.stop()
        return {"records": records}

    async def do_time(self, ask):
        consumer = await self.consumer(ask)
        partition = self.kafka.TopicPartition(ask["topic"], 0)
        consumer.assign([partition])
        found = await consumer.offsets_for_times({partition: ask["timestamp"]})
        await consumer.stop()
        return {"offset": found[partition].offset}

    async def do_load(self, ask):
        sent, limit = [], time.monotonic() + ask["seconds"]
        async with self.producer(ask) as producer:
            while time.monotonic() < limit:
                sent.append(await producer.send(ask["topic"], b"load-%07d" % len(sent), partition=0))
                if len(sent) % 50 == 0:
                    await asyncio.sleep(0.005)
            results = await asyncio.gather(*sent, return_exceptions=True)
        return {"sent": len(sent), "failed": [i for i, r in enumerate(results) if isinstance(r, Exception)]}


class KafkaPython:
    package = "kafka-python"

    def __init__(self):
        import kafka
        self.kafka = kafka

    def producer(self, ask):
        codec = ask.get("codec", "none")
        return self.kafka.KafkaProducer(bootstrap_servers=ask["address"], acks="all", linger_ms=5,
                                        compression_type=None if codec == "none" else codec,
                                        enable_idempotence=ask.get("idempotent", False))

    def consumer(self, ask):
        return self.kafka.KafkaConsumer(bootstrap_servers=ask["address"], enable_auto_commit=False, group_id=None,
                                        auto_offset_reset="earliest")

    def write(self, ask):
        producer = self.producer(ask)
        sent = [producer.send(ask["topic"], encode(r["v"]), key=encode(r["k"]), partition=r["p"], timestamp_ms=r["t"],
                              headers=headers_of(r)) for r in ask["records"]]
        for one in sent:
            one.get(timeout=20)
        producer.close()
        return {}

    def read(self, ask):
        consumer = self.consumer(ask)
        partitions = [self.kafka.TopicPartition(ask["topic"], p) for p in range(ask["partitions"])]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        records, limit = [], time.monotonic() + 20
        while len(records) < ask["count"] and time.monotonic() < limit:
            for batch in consumer.poll(timeout_ms=200).values():
                records += [said_record(r.partition, r.offset, r.key, r.value, r.headers, r.timestamp) for r in batch]
        consumer.close()
        return {"records": records}

    def time(self, ask):
        consumer = self.consumer(ask)
        partition = self.kafka.TopicPartition(ask["topic"], 0)
        consumer.assign([partition])
        found = consumer.offsets_for_times({partition: ask["timestamp"]})
        consumer.close()
        return {"offset": found[partition].offset}

    def load(self, ask):
        producer = self.producer(ask)
        sent, limit = [], time.monotonic() + ask["seconds"]
        while time.monotonic() < limit:
            sent.append(producer.send(ask["topic"], b"load-%07d" % len(sent), partition=0))
            if len(sent) % 50 == 0:
                time.sleep(0.005)
        failed = []
        for i, one in enumerate(sent):
            try:
                one.get(timeout=60)
            except Exception as reason:
                print(reason, file=sys.stderr)
                failed.append(i)
        producer.close()
        return {"sent": len(sent), "failed": failed}


class Confluent:
    package = "confluent-kafka"

    def __init__(self):
        import confluent_kafka
        self.kafka = confluent_kafka

    def producer(self, ask):
        return self.kafka.Producer({"bootstrap.servers": ask["address"], "compression.type": ask.get("codec", "none"),
                                    "enable.idempotence": ask.get("idempotent", False), "acks": "all", "linger.ms": 5,
                                    "message.max.bytes": 1_040_000, "reconnect.backoff.max.ms": 500})

    def consumer(self, ask):
        return self.kafka.Consumer({"bootstrap.servers": ask["address"], "group.id": "by-assignment",
                                    "enable.auto.commit": False})

    def write(self, ask):
        producer, failed = self.producer(ask), []
        for r in ask["records"]:
            more = {} if r["t"] is None else {"timestamp": r["t"]}
            producer.produce(ask["topic"], encode(r["v"]), key=encode(r["k"]), partition=r["p"], headers=headers_of(r),
                             on_delivery=lambda error, message: error and failed.append(str(error)), **more)
        left = producer.flush(20)
        if failed or left:
            raise RuntimeError(f"{failed[:3]}, {left} not acknowledged")
        return {}

    def read(self, ask):
        consumer = self.consumer(ask)
        consumer.assign([self.kafka.TopicPartition(ask["topic"], p, 0) for p in range(ask["partitions"])])
        records, limit = [], time.monotonic() + 20
        while len(records) < ask["count"] and time.monotonic() < limit:
            for m in consumer.consume(500, timeout=0.2):
                if m.error():
                    raise RuntimeError(str(m.error()))
                records.append(said_record(m.partition(), m.offset(), m.key(), m.value(), m.headers(), m.timestamp()[1]))
        consumer.close()
        return {"records": records}

    def time(self, ask):
        consumer = self.consumer(ask)
        found = consumer.offsets_for_times([self.kafka.TopicPartition(ask["topic"], 0, ask["timestamp"])], timeout=10)
        consumer.close()
        return {"offset": found[0].offset}

    def load(self, ask):
        producer, failed = self.producer(ask), []
        sent, limit = 0, time.monotonic() + ask["seconds"]

        def delivered(i):
            return lambda error, message: error and failed.append(i)

        while time.monotonic() < limit:
            producer.produce(ask["topic"], b"load-%07d" % sent, partition=0, on_delivery=delivered(sent))
            sent += 1
            if sent % 50 == 0:
                producer.poll(0.005)
        left = producer.flush(60)
        if left:
            raise RuntimeError(f"{left} records neither acknowledged nor failed")
        return {"sent": sent, "failed": sorted(failed)}


def main():
    agent = {"aiokafka": AioKafka, "kafka-python": KafkaPython, "confluent-kafka": Confluent}[sys.argv[1]]()
    for line in sys.stdin:
        try:
            ask = json.loads(line)
            said = {"version": version(agent.package)} if ask["do"] == "hello" else getattr(agent, ask["do"])(ask)
        except Exception as reason:  # Whatever a client raises is its answer.
            said = {"error": f"{type(reason).__name__}: {reason}"}
        print(json.dumps(said), flush=True)


main()
