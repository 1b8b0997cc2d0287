"""Lines of `dohle log dump --json` beside lines of Apache Kafka's dump tool: the same values, or an AssertionError."""
import json
import os
import re
import subprocess

from dohle import ROOT

DOHLE = os.environ.get("DOHLE", str(ROOT / "build/dohle"))
CONTROL = {"LeaderChange": "LEADER_CHANGE", "KRaftVersion": "KRAFT_VERSION", "KRaftVoters": "KRAFT_VOTERS",
           "SnapshotHeader": "SNAPSHOT_HEADER", "SnapshotFooter": "SNAPSHOT_FOOTER"}
INDEXES = {".index": ("offsetIndexEntry", ("offset", "position")),
           ".timeindex": ("timeIndexEntry", ("timestamp", "offset")),
           ".txnindex": ("txnIndexEntry", ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset"))}


def ours(path):
    done = subprocess.run([DOHLE, "log", "dump", "--json", "--value", "0", path], stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def by_file(said):
    """Kafka's lines by the file that they are about."""
    lines, current = {}, None
    for line in said.splitlines():
        if line.startswith("Dumping "):
            current = lines.setdefault(line[len("Dumping "):], [])
        elif current is not None and not line.startswith(("Log starting offset", "Snapshot end offset")):
            current.append(line)
    return lines


def pairs(text):
    return {name: value for name, value in re.findall(r"(\w+): (\S+)", text)}


def number(value):
    inside = re.fullmatch(r"OptionalLong\[(-?\d+)\]", value)
    return int(inside[1]) if inside else int(value)


def same(where, name, got, want):
    assert got == want, f"{where}: {name} is {got!r}, Kafka has {want!r}"


def compare_batch(where, got, line):
    want = pairs(line)
    for name in ("baseOffset", "lastOffset", "count", "baseSequence", "lastSequence", "producerId", "producerEpoch",
                 "partitionLeaderEpoch", "position", "size", "magic", "crc"):
        same(where, name, got[name], int(want[name]))
    for name in ("isTransactional", "isControl", "isvalid"):
        same(where, name, "true" if got[name] else "false", want[name])
    same(where, "codec", got["compresscodec"], want["compresscodec"])
    same(where, "time", got["timestamp"], int(want[got["timestampType"]]))
    horizon = want["deleteHorizonMs"]
    same(where, "horizon", got.get("deleteHorizonMs"), None if horizon == "OptionalLong.empty" else number(horizon))


def compare_decoded(where, got, text):
    """A coordinator's key or value, or a metadata record: {"type" or "version": "N", "data": {...}}."""
    if text == "<DELETE>":
        same(where, "value", got, None)
        return
    want = json.loads(text)
    data = got["data"]
    if "version" in want:
        same(where, "version", got["version"], int(want["version"]))
    # Kafka prints some values as names, and bytes that hold a message as that message.
    drop = {"transactionStatus", "protocol", "members"}
    for name in set(data) | set(want["data"]):
        if name not in drop and name in want["data"]:
            same(where, name, data.get(name), want["data"][name])


def compare_text(where, name, got, text):
    value = got.get(name)
    if value is None and name + "Base64" in got:
        return  # Kafka prints bytes that are no UTF-8 with replacement characters.
    same(where, name, "" if value is None else value, text)


def compare_record(where, got, line):
    head, _, rest = line.partition("headerKeys: [")
    keys, _, data = rest.partition("]")
    want = pairs(head)
    for name in ("offset", "keySize", "valueSize", "sequence"):
        same(where, name, got[name], int(want[name]))
    same(where, "time", got["timestamp"], int(want[got["timestampType"]]))
    same(where, "headers", ",".join(h["key"] for h in got["headers"]), keys)
    data = data.strip()
    if "endTxnMarker" in got:
        same(where, "marker", f"endTxnMarker: {got['endTxnMarker']} coordinatorEpoch: {got['coordinatorEpoch']}", data)
    elif "controlType" in got:
        name, _, text = data.partition(" ")
        same(where, "control", got["controlType"], CONTROL[name.rstrip(":")])
        if text.startswith("{"):
            same(where, "value", got["payload"]["data"], json.loads(text))
    elif isinstance(got.get("payload"), dict) or isinstance(got.get("key"), dict):
        key = re.match(r"key: (\{.*?\}) payload: (.*)$", data)
        if key:
            compare_decoded(where, got["key"], key[1])
            compare_decoded(where, got["payload"], key[2])
        else:
            compare_decoded(where, got["payload"], data[len("payload: "):])
    else:
        found = re.match(r"(?:key: (?P<key>.*?))? ?(?:payload: ?(?P<payload>.*))?$", data, re.S)
        for name in ("key", "payload"):
            if found[name] is None:
                same(where, name, got[name], None)
            else:
                compare_text(where, name, got, found[name])


def compare_segment(path, want):
    """Every batch and record of one file. Returns how many there were."""
    got = [line for line in ours(path) if line["type"] in ("batch", "record")]
    same(path, "lines", len(got), len(want))
    for mine, line in zip(got, want):
        where = f"{path}: {line[:60]}"
        if mine["type"] == "batch":
            compare_batch(where, mine, line)
        else:
            compare_record(where, mine, line)
    return len(got)


def compare_index(path, want):
    kind, names = INDEXES[os.path.splitext(path)[1]]
    got = [line for line in ours(path) if line["type"] == kind]
    want = [pairs(line) for line in want if "is empty" not in line]
    same(path, "entries", len(got), len(want))
    for mine, line in zip(got, want):
        for name in names:
            same(path, name, mine[name], int(line[name]))
    return len(got)


def compare_snapshot(path, want):
    got = [line for line in ours(path) if line["type"] == "producer"]
    want = [pairs(line) for line in want]
    same(path, "producers", len(got), len(want))
    order = lambda line: int(line["producerId"])  # noqa: E731
    for mine, line in zip(sorted(got, key=order), sorted(want, key=order)):
        for name in ("producerId", "producerEpoch", "coordinatorEpoch", "lastTimestamp"):
            same(path, name, mine[name], int(line[name]))
        first = line["currentTxnFirstOffset"]
        same(path, "txn", mine["currentTxnFirstOffset"], -1 if first == "OptionalLong.empty" else number(first))
    return len(got)
