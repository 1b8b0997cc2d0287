"""Producing: what is taken, what is refused, and how; then what a reader finds."""
import gzip
import time

from batches import batch, message, record
from scripts.topics import config, gone, made, topic

PRODUCE_VERSIONS = range(3, 14)
NOW = int(time.time() * 1000)  # The same for both.


def produce(side, name, data, version=9, acks=-1, partition=0, timeout=10000, tid=None, quiet=False, tell=None):
    where = {"TopicId": side.topic_id(name)} if version >= 13 else {"Name": name}
    values = {"Acks": acks, "TimeoutMs": timeout, "TopicData": [{**where, "PartitionData": [{"Index": partition, "Records": data}]}]}
    if tid is not None:
        values["TransactionalId"] = tid
    answer = side.ask("Produce", version, values, quiet=True)
    if not quiet:
        side.note(f"Produce v{version} {name}-{partition} acks={acks} timeout={timeout} {tell or data[:99] if data is not None else None}", answer)
    return answer


def end_of(side, name, partition=0):
    """Where the log ends and what is there, so that a refused write is seen to have left nothing."""
    answer = side.ask("ListOffsets", 5, {"ReplicaId": -1, "Topics": [{"Name": name, "Partitions": [{"PartitionIndex": partition, "CurrentLeaderEpoch": -1, "Timestamp": -1}]}]})
    return answer["Topics"][0]["Partitions"][0]["Offset"]


def read(side, name, offset=0, partition=0, version=12, **more):
    where = {"TopicId": side.topic_id(name)} if version >= 13 else {"Topic": name}
    return side.ask("Fetch", version, {**({"ReplicaId": -1} if version < 15 else {}), "MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 1 << 20, "SessionId": 0, "SessionEpoch": -1,
                                       "Topics": [{**where, "Partitions": [{"Partition": partition, "CurrentLeaderEpoch": -1, "FetchOffset": offset,
                                                                            "LastFetchedEpoch": -1, "LogStartOffset": -1, "PartitionMaxBytes": 1 << 20}]}], **more})


def script_produce_versions(side):
    made(side, topic("produce", 2))
    for version in PRODUCE_VERSIONS:
        produce(side, "produce", batch(), version, acks=1)
        produce(side, "produce", batch(values=(b"a", b"b")), version)
        produce(side, "produce", batch(), version, partition=7)
        if version < 13:
            produce(side, "a b", batch(), version)
            produce(side, "", batch(), version)
    side.ask("Produce", 13, {"Acks": -1, "TimeoutMs": 1000, "TopicData": [{"TopicId": b"0123456789abcdef", "PartitionData": [{"Index": 0, "Records": batch()}]}]})
    side.ask("Produce", 13, {"Acks": -1, "TimeoutMs": 1000, "TopicData": [{"PartitionData": [{"Index": 0, "Records": batch()}]}]})
    for other in (b"0123456789abcdef", bytes(16)):
        side.ask("Produce", 13, {"Acks": -1, "TimeoutMs": 1000, "TopicData": [{"TopicId": other, "PartitionData": [{"Index": 0, "Records": batch()}]},
                                                                             {"TopicId": side.topic_id("produce"), "PartitionData": [{"Index": 0, "Records": batch(values=(b"beside",))}]}]})
    read(side, "produce")
    made(side, topic("produce-again"))
    before = side.topic_id("produce-again")
    side.ask("DeleteTopics", 6, {"Topics": [{"Name": "produce-again"}], "TimeoutMs": 10000}, quiet=True)
    gone(side, "produce-again")
    made(side, topic("produce-again"))
    side.ask("Produce", 13, {"Acks": -1, "TimeoutMs": 1000, "TopicData": [{"TopicId": before, "PartitionData": [{"Index": 0, "Records": batch()}]}]})
    end_of(side, "produce-again")
    for version in range(3):
        side.ask("Produce", version, {"Acks": -1, "TimeoutMs": 1000, "TopicData": [{"Name": "produce", "PartitionData": [{"Index": 0, "Records": message(magic=0)}]}]})


def script_produce_acks(side):
    made(side, topic("acks", 2))
    for acks in (1, -1, 2, -2, 32767):
        produce(side, "acks", batch(), acks=acks)
        produce(side, "acks", batch(), acks=acks, version=3)
    for timeout in (0, -1, 1):
        produce(side, "acks", batch(), timeout=timeout)
    side.ask("Produce", 9, {"Acks": -1, "TimeoutMs": 1000, "TopicData": []})
    side.ask("Produce", 9, {"Acks": -1, "TimeoutMs": 1000, "TopicData": [{"Name": "acks", "PartitionData": []}]})
    side.ask("Produce", 9, {"Acks": -1, "TimeoutMs": 1000, "TopicData": [{"Name": "acks", "PartitionData": [{"Index": 0, "Records": batch()}, {"Index": 1, "Records": batch()}]},
                                                                        {"Name": "acks-none", "PartitionData": [{"Index": 0, "Records": batch()}]}]})
    side.ask("Produce", 9, {"Acks": -1, "TimeoutMs": 1000, "TopicData": [{"Name": "acks", "PartitionData": [{"Index": 0, "Records": batch()}, {"Index": 0, "Records": batch(values=(b"x", b"y"))}]}]})
    side.ask("Produce", 9, {"Acks": -1, "TimeoutMs": 1000, "TopicData": [{"Name": "acks", "PartitionData": [{"Index": 0, "Records": batch()}]},
                                                                        {"Name": "acks", "PartitionData": [{"Index": 1, "Records": batch()}]}]})
    for version in (3, 9):  # Null records are not asked: Kafka never answers them.
        produce(side, "acks", b"", version=version)
    for partition in (0, 1):
        end_of(side, "acks", partition)
    # Not answered, or the connection is closed: the next answer on the connection tells which.
    for name, data in (("acks", batch()), ("acks-none-either", batch()), ("acks", batch(crc=7))):
        side.drop("zero")
        side.send("Produce", 9, {"Acks": 0, "TimeoutMs": 1000, "TopicData": [{"Name": name, "PartitionData": [{"Index": 0, "Records": data}]}]}, on="zero")
        side.connection("zero").waiting.pop()
        side.ask("Metadata", 12, {"Topics": []}, on="zero")


def script_produce_refused(side):
    made(side, topic("refused"))
    wrong = {
        "crc": batch(crc=1), "magic 3": batch(magic=3), "magic 1 in the head": batch(magic=1), "magic -1": batch(magic=-1), "codec 5": batch(attributes=5), "codec 6": batch(attributes=6),
        "codec 7": batch(attributes=7), "size 0": batch(size=0), "size small": batch(size=20), "size negative": batch(size=-1), "size large": batch(size=5000), "size one less": batch(size=58),
        "cut": batch()[:-3], "head only": batch()[:61], "cut head": batch()[:30], "few bytes": b"abc", "17 bytes": batch()[:17], "count 0": batch(records=[], count=0, last=0),
        "count -1": batch(count=4294967295 - (1 << 32)), "count too large": batch(count=3, last=2), "count too small": batch(values=(b"a", b"b"), count=1, last=0),
        "count huge": batch(count=2147483647, last=2147483646), "last wrong": batch(values=(b"a", b"b"), last=5), "last small": batch(values=(b"a", b"b"), last=0), "last negative": batch(last=-1),
        "offset gap": batch(records=[record(offset=0), record(offset=2)], last=2), "offset gap, last matches count": batch(records=[record(offset=0), record(offset=2)], last=1),
        "offset twice": batch(records=[record(offset=0), record(offset=0)]), "offset from 1": batch(records=[record(offset=1)], last=0), "base 5": batch(base=5), "base -1": batch(base=-1),
        "tail": batch(tail=b"xx"), "tail 0": batch(tail=b"\0"), "record too long": batch(records=[record(length=90)]), "record too short": batch(records=[record(length=3)]),
        "record length 0": batch(records=[b"\0"]), "record length negative": batch(records=[b"\1"]), "record extra": batch(records=[record(extra=b"zz")]), "record attributes": batch(records=[record(attributes=7)]),
        "header key null": batch(records=[record(headers=[(None, b"x")])]), "header value null": batch(records=[record(headers=[(b"k", None)])]),
        "control": batch(attributes=32), "transactional without producer": batch(attributes=16), "transactional": batch(attributes=16, pid=5, producer_epoch=0, sequence=0),
        "log append time asked": batch(attributes=8), "attribute bits": batch(attributes=0x380), "delete horizon": batch(attributes=64), "two batches": batch() + batch(),
        "three, the last wrong": batch() + batch() + batch(crc=3), "good and rest": batch() + b"abcdef", "first negative time": batch(first_ms=-1), "first time -2": batch(first_ms=-2), "first time 0": batch(first_ms=0),
        "max time too small": batch(first_ms=1700000000000, max_ms=5), "max time negative": batch(max_ms=-1), "max time too large": batch(max_ms=1800000000000),
        "tomorrow": batch(first_ms=NOW + 7200000 * 10), "in a minute": batch(first_ms=NOW + 60000), "time delta negative": batch(records=[record(ms=-5)]),
        "gzip": batch(compress="gzip", values=(b"a", b"b")), "gzip not": batch(attributes=1), "gzip count": batch(compress="gzip", count=3, last=2), "gzip offsets": batch(records=[record(offset=0), record(offset=2)], last=1, compress="gzip"),
        "snappy not": batch(attributes=2), "lz4 not": batch(attributes=3), "zstd not": batch(attributes=4), "gzip empty": batch(attributes=1, compress=b""), "gzip tail": batch(compress="gzip", tail=b"x"),
        "message 1": message(), "message 0": message(magic=0), "message and batch": message() + batch(), "batch and message": batch() + message(), "leader epoch": batch(epoch=7),
        "producer without sequence": batch(pid=9, producer_epoch=0), "producer 0 2 batches": batch(pid=9, producer_epoch=0, sequence=0) + batch(pid=9, producer_epoch=0, sequence=1),
        "pid -2": batch(pid=-2), "sequence -2": batch(pid=9, producer_epoch=0, sequence=-2), "sequence without a producer": batch(sequence=4),
    }
    for version in (3, 7, 8, 9, 12):
        for tell, data in wrong.items():
            if version in (9,) or tell in ("crc", "count too large", "control", "zstd not", "tomorrow", "offset gap", "message 1", "two batches", "cut"):
                produce(side, "refused", data, version, tell=tell)
        end_of(side, "refused")
    read(side, "refused")
    made(side, topic("beside"))
    side.ask("Produce", 9, {"Acks": -1, "TimeoutMs": 1000, "TopicData": [{"Name": name, "PartitionData": [{"Index": 0, "Records": data}]}
                                                                        for name, data in (("refused", batch(attributes=5)), ("beside", batch()))]})
    read(side, "beside")
    side.until(lambda a: a["ErrorCode"] == 0, "FindCoordinator", 3, {"Key": "g", "KeyType": 0}, quiet=True)
    produce(side, "__consumer_offsets", batch(records=[record(key=b"k")]))


def script_produce_packed(side):
    """Packed records that stay as they came, and those that another codec of the topic packs anew."""
    made(side, topic("packed"), topic("packed-zstd", Configs=[config("compression.type", "zstd")]), topic("packed-plain", Configs=[config("compression.type", "uncompressed")]),
         topic("packed-lz4", Configs=[config("compression.type", "lz4")]), topic("packed-snappy", Configs=[config("compression.type", "snappy")]))
    for name in ("packed", "packed-snappy", "packed-plain"):
        produce(side, name, batch(values=(b"bare", b"block"), compress="snappy"), tell="a bare block of snappy")
        read(side, name)
    for version in (3, 6, 7, 9, 12):
        for name in ("packed", "packed-zstd", "packed-plain"):
            produce(side, name, batch(values=(b"z%d" % version,), compress="zstd"), version, tell="zstd")
    for version in range(4, 19):
        for name in ("packed", "packed-zstd", "packed-plain"):
            read(side, name, version=version)
    same = [record(b"%d" % i, offset=0) for i in range(3)]
    for name in ("packed", "packed-plain", "packed-lz4"):
        produce(side, name, batch(records=same, last=2), tell="plain, each at offset 0")
        produce(side, name, batch(records=same, last=2, compress="gzip"), tell="packed, each at offset 0")
        end_of(side, name)
        read(side, name)


def script_produce_configured(side):
    made(side, topic("compacted", Configs=[config("cleanup.policy", "compact")]), topic("stamped", Configs=[config("message.timestamp.type", "LogAppendTime")]),
         topic("small", Configs=[config("max.message.bytes", "200")]), topic("old", Configs=[config("message.timestamp.before.max.ms", "1000"), config("message.timestamp.after.max.ms", "1000")]),
         topic("gzipped", Configs=[config("compression.type", "gzip")]), topic("two", Configs=[config("min.insync.replicas", "2")]), topic("tiny", Configs=[config("segment.bytes", "1048576"), config("max.message.bytes", "3000000")]),
         topic("plain", Configs=[config("compression.type", "uncompressed")]),
         topic("keyed-old", Configs=[config("cleanup.policy", "compact"), config("message.timestamp.before.max.ms", "1000")]),
         topic("gzipped-9", Configs=[config("compression.type", "gzip"), config("compression.gzip.level", "9")]))
    produce(side, "compacted", batch(), tell="no key")
    produce(side, "compacted", batch(records=[record(key=b"k", offset=0), record(offset=1), record(offset=2)]), tell="some keys")
    produce(side, "compacted", batch(records=[record(offset=0), record(key=b"k", offset=1), record(offset=2)]), version=7, tell="some keys")
    produce(side, "compacted", batch(records=[record(key=b"", value=None)]), tell="empty key")
    produce(side, "compacted", batch(records=[record(offset=i) for i in range(12)]), tell="twelve without keys")
    for data, tell in ((batch(), "old"), (batch(first_ms=NOW), "new"), (batch(attributes=8), "asked"), (batch(first_ms=-1), "none"), (batch(values=(b"x", b"y"), first_ms=NOW + 9 * 86400000), "future")):
        produce(side, "stamped", data, tell=tell)
        produce(side, "stamped", data, tell=tell, version=3)
    read(side, "stamped")
    for size in (1, 100, 131, 132, 133, 134, 150, 300):
        produce(side, "small", batch(values=(b"x" * size,)), tell=f"{size} bytes")
    produce(side, "small", batch() + batch(values=(b"x" * 300,)), tell="one of two too large")
    produce(side, "small", batch() + batch() + batch() + batch(), tell="four that are too large together")
    for ms, tell in ((NOW - 60000, "old"), (NOW + 60000, "early"), (NOW, "now"), (-1, "none")):
        produce(side, "old", batch(first_ms=ms), tell=tell)
    produce(side, "old", batch(records=[record(offset=0), record(offset=1, ms=-90000), record(offset=2), record(offset=3, ms=90000)], first_ms=NOW, max_ms=NOW + 90000), tell="some of them")
    produce(side, "keyed-old", batch(records=[record(offset=0), record(key=b"k", offset=1, ms=-90000)], first_ms=NOW), tell="no key, then old")
    records = [record(b"x" * 500, offset=i) for i in range(3)]
    produce(side, "gzipped-9", batch(records=records, compress=gzip.compress(b"".join(records), 1, mtime=0), attributes=1), tell="gzip of another level")
    read(side, "gzipped-9")
    for data, tell in ((batch(), "plain"), (batch(compress="gzip"), "gzip")):
        produce(side, "gzipped", data, tell=tell)
        produce(side, "plain", data, tell=tell)
    read(side, "plain")
    for acks in (1, -1):
        produce(side, "two", batch(), acks=acks)
    produce(side, "tiny", batch(values=(b"x" * 2000000,)), tell="larger than a segment")
    for name in ("compacted", "stamped", "small", "old", "gzipped", "two", "tiny", "plain"):
        end_of(side, name)


def script_idempotent(side):
    made(side, topic("idem", 2))
    side.until(lambda a: a["ErrorCode"] == 0, "InitProducerId", 4, {"TransactionalId": None, "TransactionTimeoutMs": 60000})
    for version in range(7):
        for values in ({"TransactionalId": None, "TransactionTimeoutMs": 60000}, {"TransactionalId": None, "TransactionTimeoutMs": 0}, {"TransactionalId": None, "TransactionTimeoutMs": -1}):
            answer = side.ask("InitProducerId", version, values)
    pid = answer.get("ProducerId", -1)
    if pid < 0:
        pid = side.ask("InitProducerId", 4, {"TransactionalId": None, "TransactionTimeoutMs": 60000})["ProducerId"]
    for known, epoch in ((pid, 0), (pid, -1), (-1, 0), (pid, 7), (pid + 999999, 0), (pid, 32767)):
        side.ask("InitProducerId", 4, {"TransactionalId": None, "TransactionTimeoutMs": 60000, "ProducerId": known, "ProducerEpoch": epoch})
    for version in (0, 4):
        side.ask("InitProducerId", version, {"TransactionalId": "", "TransactionTimeoutMs": 60000})

    def put(sequence, epoch=0, values=(b"a",), who=pid, partition=0, version=9, tell=""):
        return produce(side, "idem", batch(values=values, pid=who, producer_epoch=epoch, sequence=sequence), version, partition=partition,
                       tell=f"sequence {sequence} epoch {epoch} {len(values)} {tell}")
    put(0), put(0), put(1), put(0), put(1), put(3), put(2, values=(b"a", b"b", b"c")), put(2, values=(b"a", b"b")), put(4), put(5), put(5, version=3), put(9, version=3)
    for i in range(6, 13):
        put(i)
    put(5), put(8), put(12), put(13, epoch=1), put(0, epoch=1), put(13), put(1, epoch=1), put(0, epoch=3), put(2, epoch=2), put(0, epoch=2, version=7)
    put(5, partition=1), put(6, partition=1), put(0, who=pid + 1000, partition=1), put(7, who=pid + 2000, partition=1), put(2147483647, who=pid + 3000, partition=1), put(0, who=pid + 3000, partition=1)
    put(2147483646, who=pid + 4000, values=(b"a", b"b", b"c"), partition=1), put(1, who=pid + 4000, partition=1), put(-1, who=pid + 5000, partition=1)
    for partition in (0, 1):
        end_of(side, "idem", partition)
    made(side, topic("idem-fenceless"))
    produce(side, "idem-fenceless", batch(pid=pid, producer_epoch=-1, sequence=0), tell="sequence 0 epoch -1")
    for partitions in ([0], [0, 1, 2], [], [-1]):
        side.ask("DescribeProducers", 0, {"Topics": [{"Name": "idem", "PartitionIndexes": partitions}]})
    side.ask("DescribeProducers", 0, {"Topics": [{"Name": "no-such", "PartitionIndexes": [0]}, {"Name": "idem", "PartitionIndexes": [1, 1]}, {"Name": "a b", "PartitionIndexes": [0]}]})
    side.ask("DescribeProducers", 0, {"Topics": []})
