#!/usr/bin/env python3
"""Seeds of the fuzzing targets from the golden vectors.

    seeds.py TARGET FOLDER      one file a seed, as libFuzzer wants them
    seeds.py TARGET FILE.pack   one file, each seed behind its length, as replay/replay.c wants them
"""
import gzip
import json
import re
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def vectors():
    with gzip.open(ROOT / "test/golden/vectors/kafka.tsv.gz", "rt") as lines:
        for line in lines:
            if line[0] != "#":
                name, version, _, _, hexes, text = line.rstrip("\n").split("\t")
                yield name, int(version), bytes.fromhex(hexes), text


def message_names():
    """All messages in the order of their names: what the targets' first two bytes choose from."""
    return sorted(path.stem for path in (ROOT / "schema/messages").glob("*.json"))


def seed_message():
    index = {name: i for i, name in enumerate(message_names())}
    oldest = {}
    for name, version, body, _ in vectors():
        first = oldest.setdefault(name, version)
        yield struct.pack(">HB", index[name], version - first) + body


def seed_json():
    index = {name: i for i, name in enumerate(message_names())}
    oldest = {}
    for name, version, _, text in vectors():
        first = oldest.setdefault(name, version)
        yield struct.pack(">HB", index[name], version - first) + text.encode()


def schema(name):
    text = (ROOT / f"schema/messages/{name}.json").read_text()
    return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M))


def seed_frame():
    for name, version, body, _ in vectors():
        if not name.endswith(("Request", "Response")):
            continue
        message = schema(name)
        key, since = message["apiKey"], message["flexibleVersions"]
        flexible = since != "none" and version >= int(since[:-1])
        if name.endswith("Request"):
            header = struct.pack(">hhi", key, version, 7) + b"\0\x02me" + b"\0" * flexible
            choice = bytes([1, 0, 0])
        else:
            header = struct.pack(">i", 7) + b"\0" * (flexible and key != 18)
            choice = bytes([0, key, version - int(message["validVersions"].split("-")[0])])
        yield choice + struct.pack(">i", len(header) + len(body)) + header + body


def seed_pcap():
    """The capture of real programs, whole and connection by connection."""
    sys.path.insert(0, str(ROOT / "test/wire"))
    import packets
    head, found = packets.read(gzip.decompress((ROOT / "test/wire/kafka-4.4.pcap.gz").read_bytes()))
    by_ports = {}
    for packet in found:
        at = 14 + 4 * (packet[2][14] & 15) if packet[2][12:14] == b"\x08\0" else 54
        by_ports.setdefault(frozenset((packet[2][at:at + 2], packet[2][at + 2:at + 4])), []).append(packet)
    for style, some in enumerate(by_ports.values()):
        yield bytes([style % 3]) + packets.write(head, some[:60])


def seed_record():
    """A vector behind each choice that the target's first byte makes."""
    for path in sorted((ROOT / "test/golden/records").glob("*.bin")):
        yield b"\x01" + path.read_bytes()
    for codec in range(5):
        for path in sorted((ROOT / "test/golden/records").glob("v2-*-CreateTime.bin")):
            yield bytes([2 + 4 * codec, 11]) + path.read_bytes()[61:]


def main():
    target, place = sys.argv[1], Path(sys.argv[2])
    seeds = list(globals()["seed_" + target]())
    assert len(seeds) > 10, f"{target} has {len(seeds)} seeds"
    if place.suffix == ".pack":
        place.write_bytes(b"".join(struct.pack(">I", len(seed)) + seed for seed in seeds))
    else:
        place.mkdir(parents=True, exist_ok=True)
        for i, seed in enumerate(seeds):
            (place / f"seed-{i:04}").write_bytes(seed)


main()
