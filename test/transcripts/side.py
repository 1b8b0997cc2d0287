"""One of the two servers that a script is played at: its connections, its answers, what is particular to it taken out.

A script is a function of a Side. What it asks is recorded as (what was asked, what was answered) with ids, times, ports and
paths named by what they mean, so that two recordings are equal where two servers mean the same.
"""
import json
import re
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
import kmsg  # noqa: E402

NO_UUID = bytes(16)
# What names an element of an array, so that the arrays of both may be brought into one order.
NAMES = ("ApiKey", "Name", "TopicName", "Topic", "TopicId", "Index", "PartitionIndex", "Partition", "PartitionId", "ResourceType",
         "ResourceName", "GroupId", "MemberId", "TransactionalId", "ProducerId", "BrokerId", "NodeId", "LogDir", "User", "Mechanism", "Key")
# A Java or Base64 spelled uuid inside a string: the part of member ids, cluster ids that is drawn at random.
RANDOM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<![\w-])[\w-]{22}(?![\w-])")
DAY_MS = 86400000
SAYS = ("ErrorMessage", "BatchIndexErrorMessage")  # Words are each one's own; that there are some is compared.


def batches_of(data):
    """The whole batches of a records field as dicts: Kafka ends an answer where its limit is, in the middle of a batch."""
    out, at = [], 0
    while at + 61 <= len(data):
        base, size, epoch, magic = struct.unpack(">qiib", data[at:at + 17])
        if magic != 2:
            out.append({"base": base, "size": size, "magic": magic, "bytes": data[at + 12:at + 12 + size].hex()})
        else:
            crc, attributes, last, first_ms, max_ms, pid, pepoch, seq, count = struct.unpack(">IhiqqqhiI", data[at + 17:at + 61])
            out.append({"base": base, "size": size, "epoch": epoch, "attributes": attributes, "last": last, "firstMs": first_ms,
                        "maxMs": max_ms, "ProducerId": pid, "producerEpoch": pepoch, "sequence": seq, "count": count,
                        "records": data[at + 61:at + 12 + size].hex()})
        if at + 12 + size > len(data):
            out.pop()
        at += 12 + size
    return out


class Side:
    """Where a script is played. `ask` sends, records and gives back the answer as the server gave it."""

    def __init__(self, name, port, controller_port, paths, server=None):
        self.name = name
        self.server = server
        self.port = port
        self.controller_port = controller_port
        self.paths = paths
        self.connections = {}
        self.entries = []
        self.words = []
        self.ids = {}
        self.topics = {}
        self.pids = {}

    # ---- asking

    def connection(self, on):
        if on not in self.connections:
            self.connections[on] = kmsg.Connection(self.controller_port if on == "controller" else self.port, seconds=20)
        return self.connections[on]

    def drop(self, on="a"):
        if on in self.connections:
            self.connections.pop(on).close()

    def close(self):
        for on in list(self.connections):
            self.drop(on)

    def restart(self):
        """A clean stop and a new start of this side's server."""
        self.close()
        self.server.stop()
        self.server.start()

    def send(self, api, version, values, on="a"):
        self.connection(on).send(api, version, values)

    def receive(self, api, version, values, on="a", quiet=False):
        try:
            answer = self.connection(on).receive()
        except (EOFError, ConnectionError):
            self.drop(on)
            answer = {"closed": True}
        except socket.timeout:
            self.drop(on)
            answer = {"silent": True}
        self.learn(answer)
        if not quiet:
            self.entries.append((self.label(api, version, values), self.normal(answer)))
        return answer

    def ask(self, api, version, values, on="a", quiet=False):
        try:
            self.send(api, version, values, on)
        except ConnectionError:
            self.drop(on)
        return self.receive(api, version, values, on, quiet)

    def until(self, done, api, version, values, on="a", seconds=20, quiet=False):
        """Ask until the answer is as wanted; only the last one is recorded."""
        limit = time.monotonic() + seconds
        while True:
            answer = self.ask(api, version, values, on, quiet=True)
            if done(answer) or time.monotonic() > limit:
                if quiet:
                    return answer
                self.entries.append((self.label(api, version, values), self.normal(answer)))
                return answer
            time.sleep(0.05)

    def raw(self, label, data, on="raw"):
        """Bytes as they are, with the length before them; the answer's bytes, or that the connection was closed."""
        self.drop(on)
        connection = self.connection(on)
        try:
            connection.socket.sendall(struct.pack(">i", len(data)) + data)
            (size,) = struct.unpack(">i", connection.exactly(4))
            answer = {"bytes": connection.exactly(size).hex()}
        except (EOFError, ConnectionError):
            answer = {"closed": True}
        except socket.timeout:
            answer = {"silent": True}
        self.drop(on)
        self.entries.append((label, answer))
        return answer

    def note(self, label, value):
        self.entries.append((label, self.normal(value)))

    # ---- what is particular is named

    def learn(self, value):
        """Topic ids that an answer tells together with the topic's name."""
        if isinstance(value, dict):
            name = value.get("Name") or value.get("TopicName") or value.get("Topic")
            if isinstance(value.get("TopicId"), bytes) and value["TopicId"] != NO_UUID and isinstance(name, str):
                self.topics[value["TopicId"]] = name
            for item in value.values():
                self.learn(item)
        elif isinstance(value, list):
            for item in value:
                self.learn(item)

    def topic_id(self, name):
        for key, known in reversed(self.topics.items()):
            if known == name:
                return key
        self.ask("Metadata", 12, {"Topics": [{"Name": name}]}, on="ids", quiet=True)
        for key, known in reversed(self.topics.items()):
            if known == name and key != NO_UUID:
                return key
        return NO_UUID

    def named(self, kind, value):
        known = self.ids.setdefault(kind, {})
        return f"{kind}-{known.setdefault(value, len(known) + 1)}"

    def text(self, value):
        for path in self.paths:
            value = value.replace(path, "DIR")
        return RANDOM.sub(lambda found: self.named("id", found[0]), value)

    def scalar(self, name, value):
        if name in ("ThrottleTimeMs", "TotalBytes", "UsableBytes", "FinalizedFeaturesEpoch"):
            return 0
        if name in SAYS and value is not None:
            self.words.append(value)
            return "said" if value else ""
        if isinstance(value, bytes):
            if len(value) != 16:
                return batches_of(value) if name in ("Records",) else self.text(value.decode("latin-1"))
            return "none" if value == NO_UUID else f"id of {self.topics[value]}" if value in self.topics else self.named("uuid", value)
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return value
        if value in (self.port, self.controller_port):
            return "PORT" if value == self.port else "CONTROLLER PORT"
        if name == "SessionId" and value > 0:
            return self.named("session", value)
        if name == "ProducerId" and value >= 0:
            return self.named("producer", value)
        if abs(value - time.time() * 1000) < 30 * DAY_MS:
            return "now"
        return value

    def order(self, item):
        if not isinstance(item, dict):
            return json.dumps(item, default=repr)
        return json.dumps([(name, self.topics.get(value, "") if isinstance(value, bytes) else self.text(value) if isinstance(value, str) else value)
                           for name, value in ((name, item[name]) for name in NAMES if name in item)], default=repr)

    def normal(self, value, name=None):
        if isinstance(value, dict):
            return {key: self.normal(item, key) for key, item in value.items()}
        if isinstance(value, list):
            if value and all(isinstance(item, dict) for item in value) and name != "batches":
                value = sorted(value, key=self.order)
            return [self.normal(item, name) for item in value]
        value = self.scalar(name, value)
        return [self.normal(item, "batch") for item in value] if isinstance(value, list) else value

    def label(self, api, version, values):
        def short(item):
            if isinstance(item, dict):
                return {key: short(inner) for key, inner in item.items()}
            if isinstance(item, list):
                return [short(inner) for inner in item]
            if isinstance(item, bytes):
                return self.scalar(None, item) if len(item) == 16 else f"{len(item)} bytes"
            return self.text(item) if isinstance(item, str) and len(item) < 99 else str(item)[:60] if isinstance(item, str) else item
        return f"{api} v{version} {json.dumps(short(values))}"


def differences(left, right, path=""):
    """(path, left, right) of each place where two recordings differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in left.keys() | right.keys():
            yield from differences(left.get(key, "absent"), right.get(key, "absent"), f"{path}.{key}")
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for i, pair in enumerate(zip(left, right)):
            yield from differences(*pair, f"{path}[{i}]")
    elif left != right:
        yield path, left, right
