"""The same ConsumerGroupHeartbeats to Dohle and to Apache Kafka: the same answers to the letter, and the same records in
`__consumer_offsets`, but for what is random or a time."""
import base64
import difflib
import json
import re
import socket
import struct
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
import kafka  # noqa: E402
import metadata  # noqa: E402
from dohle import Node  # noqa: E402

SETTINGS = {"offsets.topic.num.partitions": "1"}
TOPICS = {"foo": 6, "bar": 3, "foobar": 2}
ANSWERED_LATER = (14, 15, 16)


def uvarint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def text(value):
    return b"\0" if value is None else uvarint(len(value.encode()) + 1) + value.encode()


def array(items):
    return b"\0" if items is None else uvarint(len(items) + 1) + b"".join(items)


class Reader(metadata.Reader):
    def text(self):
        size = self.unsigned()
        return None if size == 0 else self.take(size - 1).decode()

    def number(self, form):
        return struct.unpack(">" + form, self.take(struct.calcsize(form)))[0]

    def many(self, one):
        return [one() for _ in range(self.unsigned() - 1)]


class Client:
    """Flexible requests alone."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.next = 0

    def exactly(self, size):
        got = b""
        while len(got) < size:
            piece = self.socket.recv(size - len(got))
            assert piece, "the connection was closed"
            got += piece
        return got

    def call(self, key, version, body):
        self.next += 1
        message = struct.pack(">hhih", key, version, self.next, 3) + b"raw\0" + body
        self.socket.sendall(struct.pack(">i", len(message)) + message)
        answer = Reader(self.exactly(struct.unpack(">i", self.exactly(4))[0]))
        answer.take(4)
        answer.unsigned()
        return answer

    def create_topics(self):
        topics = [text(name) + struct.pack(">ih", count, 1) + b"\1\1\0" for name, count in TOPICS.items()]
        answer = self.call(19, 7, array(topics) + struct.pack(">i", 30000) + b"\0\0")
        answer.take(4)
        ids = {}
        for _ in range(answer.unsigned() - 1):
            name, ids_bytes = answer.text(), answer.take(16)
            assert answer.number("h") == 0
            answer.text()
            answer.take(6)
            answer.many(lambda: (answer.text(), answer.text(), answer.take(3), answer.unsigned()))
            answer.unsigned()
            ids[name] = ids_bytes
        return ids


class Group:
    """Sends heartbeats and notes each answer beside its question."""

    def __init__(self, port):
        self.client = Client(port)
        self.ids = self.client.create_topics()
        self.names = {value: name for name, value in self.ids.items()}
        self.client.call(10, 4, b"\0" + array([text("g")]) + b"\0")
        self.epochs, self.told = {}, []

    def ask(self, member, epoch, version=1, group="g", **more):
        owned = more.get("owned")
        partitions = None if owned is None else [
            self.ids[topic] + array([struct.pack(">i", p) for p in numbers]) + b"\0" for topic, numbers in owned.items()]
        names = more.get("names")
        body = (text(group) + text(member) + struct.pack(">i", epoch) + text(more.get("instance")) + text(more.get("rack"))
                + struct.pack(">i", more.get("rebalance", -1)) + array(None if names is None else [text(n) for n in names])
                + (text(more.get("regex")) if version > 0 else b"") + text(more.get("assignor")) + array(partitions) + b"\0")
        answer = self.client.call(68, version, body)
        answer.take(4)
        error, message, who, at, interval = (answer.number("h"), answer.text(), answer.text(), answer.number("i"), answer.number("i"))
        assignment = None
        if answer.number("b") == 1:
            assignment = {}
            for _ in range(answer.unsigned() - 1):
                topic = self.names[answer.take(16)]
                assignment[topic] = sorted(answer.many(lambda: answer.number("i")))
                answer.unsigned()
        assignment = assignment and dict(sorted(assignment.items()))
        return error, message, who if version > 0 or who is None else len(who), at, interval, assignment

    def say(self, member, epoch="=", **more):
        """`=`: the epoch that the member was told last."""
        asked = self.epochs.get(member, 0) if epoch == "=" else epoch
        answer = self.ask(member, asked, **more)
        if answer[0] == 0:
            self.epochs[member] = answer[3]
        self.told.append(f"{member} {asked} {more} -> {answer}")
        return answer

    def wait(self):
        for _ in range(200):
            if self.ask("m1", 1)[0] not in ANSWERED_LATER:
                return
            time.sleep(0.1)


def refusals(group, full):
    say = group.say
    say("m1", 1)
    say("m1", -1)
    say("m1", -2, instance="i")
    say("m1", 0)
    say("m1", 0, names=["foo"], rebalance=5000)
    say("m1", 0, owned={}, rebalance=5000)
    say("", 0, **full)
    for wrong in ({"group": " "}, {"group": ""}, {"instance": " "}, {"rack": ""}, {"assignor": "foo"}, {"owned": {"foo": [1]}},
                  {"regex": "["}, {"regex": "a{2,1}"}, {"regex": "(?=x)"}, {"regex": "*"}, {"regex": "(a"}, {"regex": "a\\"},
                  {"regex": "a**"}, {"regex": "[b-a]"}, {"regex": "\\8"}):
        say("m1", 0, **{**full, **wrong})
    say("m1", -2)
    say("m1", -3)


def members(group, full):
    say = group.say
    say("m1", 0, **full)
    say("m1")
    say("m1", names=["foo"], owned={"foo": [0, 1, 2, 3, 4, 5]}, rebalance=12000)
    for epoch in (3, 1):
        say("m1", epoch)
    for who, epoch, instance in (("x", 2, None), ("x", -1, None), ("m1", 2, "i9"), ("x", -1, "i9")):
        say(who, epoch, instance=instance)
    say("m2", 0, names=["foo", "bar"], owned={}, rebalance=12000, instance="i1", rack="r1")
    for who, epoch in (("m3", 0), ("m2", 0), ("m3", 3), ("m3", -1), ("m3", -2)):
        say(who, epoch, instance="i1", **(full if epoch == 0 else {}))
    time.sleep(1.2)
    kept = say("m1")[5]
    say("m1", owned={"foo": [0, 1, 2, 3, 4, 5]})
    say("m2", instance="i1")
    say("m1", owned=kept)
    for _ in range(2):
        say("m2", instance="i1")
    say("m1", names=["foo", "foobar"])
    say("m1")
    time.sleep(1.2)
    say("m1")
    say("m2", instance="i1")
    say("m1", owned=kept)
    say("m2", -2, instance="i1")
    say("m1")
    say("m4", 0, names=["foo", "bar"], owned={}, rebalance=12000, instance="i1")
    say("m2", instance="i1")
    say("m1", assignor="range")
    time.sleep(1.2)
    say("m1")
    say("m1", owned={"foo": [0, 1, 2], "foobar": [0, 1]})
    say("m4", 0, instance="i1", **full)
    say("m4", instance="i1")
    say("m4", owned={"foo": [3, 4, 5]}, instance="i1")


def patterns(group):
    say = group.say
    say("m5", 0, owned={}, rebalance=9000, regex="fo+.*")
    time.sleep(1.5)  # Kafka matches in the background.
    say("m5")
    time.sleep(1.5)
    say("m5")
    say("m1")
    say("m1", owned={})
    for more in ({}, {"regex": "bar"}, {"regex": ""}, {"names": []}, {"owned": {}}):
        say("m5", **more)
    say("m5", -1)
    say("m1", -1)
    say("m4", -1, instance="i1")
    say("m4", -1, instance="i1")
    say("n", 1)


def play(port):
    group = Group(port)
    full = {"names": ["foo"], "owned": {}, "rebalance": 12000}
    group.wait()
    refusals(group, full)
    members(group, full)
    patterns(group)
    group.say("n", 0, **full)
    group.say("v0", 0, group="g0", version=0, **full)
    group.say("", 0, group="g1", version=0, **full)
    return group


def masked(value, names, key=None):
    if isinstance(value, dict):
        return {k: masked(v, names, k) for k, v in value.items()}
    if isinstance(value, list):
        items = [masked(v, names) for v in value]
        for item in items:
            if isinstance(item, dict) and item.get("partitions"):
                order = sorted(range(len(item["partitions"])), key=item["partitions"].__getitem__)
                for parallel in ("partitions", "assignmentEpochs"):
                    if item.get(parallel):
                        item[parallel] = [item[parallel][i] for i in order]
        return sorted(items, key=lambda e: e["topicId"]) if items and isinstance(items[0], dict) and "topicId" in items[0] else items
    if key == "topicId":
        return names.get(value, value)
    if key in ("assignmentTimestamp", "timestamp", "metadataHash"):
        return value != 0  # Hashes cover the topics' ids.
    if key == "memberId" and len(value) == 22:
        return "made"
    if key in ("clientHost",) or (key == "version" and isinstance(value, int)):
        return key
    return value


def records(directory, group):
    names = {base64.urlsafe_b64encode(value).decode().rstrip("="): name for name, value in group.ids.items()}
    files = ",".join(str(path) for path in sorted(Path(directory).glob("__consumer_offsets-0/*.log")))
    out = []
    for line in kafka.tool("DumpLogSegments", "--offsets-decoder", "--files", files).splitlines():
        found = re.search(r"key: (\{.*\}) payload: ?(.*)$", line)
        if found:
            value = json.loads(found[2]) if found[2].startswith("{") else found[2]
            out.append(json.dumps([masked(json.loads(found[1]), names), masked(value, names)], sort_keys=True))
    return out


def different(theirs, ours):
    return "\n".join(line for line in difflib.unified_diff(theirs, ours, "Apache Kafka", "Dohle", lineterm="", n=0))


def test_answers_and_records_are_kafkas():
    with Node(SETTINGS) as node:
        ours = play(node.port)
        node.stop()
        our_records = records(node.directory, ours)
    with kafka.Kafka(settings=SETTINGS) as broker:
        broker.format()
        broker.start()
        theirs = play(broker.port)
        broker.stop()
        their_records = records(broker.directory, theirs)
    assert len(theirs.told) > 60 and len(their_records) > 60
    assert ours.told == theirs.told, "answers differ:\n" + different(theirs.told, ours.told)
    assert our_records == their_records, "records differ:\n" + different(their_records, our_records)


def run(suite):
    why = kafka.available()
    if why is not None:
        suite.skip("heartbeats_like_kafka", why)
        return
    suite.run(test_answers_and_records_are_kafkas)
