"""Bad and strange frames: the server answers as Kafka does or closes, and its memory stays flat."""
import os
import random
import socket
import struct
import time

from dohle import Node
from wire import Raw, api_versions, fetch, frame, header, metadata

ALIVE = 424242

REFUSED = {
    "W1 length 0": struct.pack(">i", 0),
    "W1 length 7": struct.pack(">i", 7) + b"\0" * 7,
    "W2 length -1": struct.pack(">i", -1),
    "W2 length INT32_MIN": struct.pack(">i", -(1 << 31)),
    "W3 length INT32_MAX": struct.pack(">i", (1 << 31) - 1),
    "W3 length one above the limit": struct.pack(">i", 104857601),
    "W7 api 9999": frame(header(9999, 0, 1)),
    "W7 api -1": frame(header(-1, 0, 1)),
    "W7 api 7, dropped": frame(header(7, 3, 1) + b"\0" * 8),
    "W7 Vote on a broker's listener": frame(header(52, 0, 1, flexible=True) + b"\0" * 8),
    "W8 Metadata 99": frame(header(3, 99, 1, flexible=True) + b"\0" * 8),
    "W8 Metadata -1": frame(header(3, -1, 1)),
    "W9 Metadata 9 with the old header": frame(header(3, 9, 1) + b"\x00"),
    "W10 client id beyond the frame": frame(struct.pack(">hhih", 3, 1, 1, 200) + b"abc"),
    "W11 array of 2^31-1": frame(header(3, 1, 1) + struct.pack(">i", (1 << 31) - 1)),
    "W11 array of -2": frame(header(3, 4, 1) + struct.pack(">i", -2)),
    "W19 body cut short": frame(header(3, 1, 1) + b"\0\0"),
    "W23 TLS hello": bytes.fromhex("1603010200010001fc0303") + os.urandom(64),
    "W23 HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
}

# What Kafka 4.0 dropped: served unless dohle.legacy.protocols=false.
REFUSED_WITHOUT_LEGACY = {
    "W8 Produce 2": frame(header(0, 2, 1) + b"\0" * 10),
    "W8 Fetch 3": frame(header(1, 3, 1) + b"\0" * 20),
    "W8 ListOffsets 0": frame(header(2, 0, 1) + b"\0" * 8),
    "W8 CreateTopics 1": frame(header(19, 1, 1) + b"\0" * 9),
}


def alive(node):
    with Raw(node.port) as raw:
        raw.send(metadata(ALIVE))
        assert raw.reply()[0] == ALIVE


def resident(node):
    for line in open(f"/proc/{node.process.pid}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise RuntimeError("no VmRSS")


def test_refused_frames():
    refuse({}, REFUSED)


def test_versions_that_kafka_4_dropped_can_be_refused():
    refuse({"dohle.legacy.protocols": "false"}, {**REFUSED, **REFUSED_WITHOUT_LEGACY})


def refuse(settings, frames):
    with Node(settings) as node:
        for name, data in frames.items():
            with Raw(node.port) as raw:
                raw.send(data)
                assert raw.closed(), f"{name}: not closed"
        alive(node)
        assert "closed" in node.said()


def test_random_noise():
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    with Node() as node:
        for _ in range(200):
            with Raw(node.port) as raw:
                kind = chance.randrange(3)
                body = chance.randbytes(chance.randrange(1, 200))
                if kind == 0:
                    data = body
                elif kind == 1:
                    data = frame(body)
                else:
                    data = frame(header(chance.randrange(94), chance.randrange(19), 1) + body)
                raw.send(data)
        alive(node)


def test_client_ids():
    """W10: what a client calls itself is taken, and shown escaped."""
    with Node({"dohle.request.log": "all"}) as node:
        for name in (None, b"", b"x" * 32000, b"\xff\xfe", b"a\nb\x1b[31m"):
            with Raw(node.port) as raw:
                raw.send(frame(header(3, 1, 5, client=name) + struct.pack(">i", 0)))
                assert raw.reply()[0] == 5, name
        said = node.said()
        assert "a\\x0ab\\x1b[31m" in said and "\x1b" not in said, said


def test_split_everywhere():
    """W6: a frame split anywhere, and two frames in one."""
    with Node() as node, Raw(node.port) as raw:
        data = metadata(1) + api_versions(3, 2)
        raw.send(data)
        whole = [raw.reply(), raw.reply()]
        for cut in range(1, len(data)):
            raw.send(data[:cut])
            time.sleep(0.001)
            raw.send(data[cut:])
            assert [raw.reply(), raw.reply()] == whole, cut


def test_trailing_bytes():
    """W18: bytes behind a body are ignored, as Kafka does."""
    with Node() as node, Raw(node.port) as raw:
        payload = metadata(7)[4:] + b"\1\2\3"
        raw.send(frame(payload))
        assert raw.reply()[0] == 7


def test_pipelined():
    """W21: ten thousand requests at once are answered in their order."""
    with Node() as node, Raw(node.port, seconds=60) as raw:
        count = 10000
        raw.socket.setblocking(False)
        data, at, got, expected = b"".join(api_versions(0, i) for i in range(count)), 0, b"", 0
        limit = time.monotonic() + 60
        while expected < count:
            assert time.monotonic() < limit
            try:
                at += raw.socket.send(data[at:at + 65536]) if at < len(data) else 0
            except BlockingIOError:
                pass
            try:
                got += raw.socket.recv(1 << 20)
            except BlockingIOError:
                pass
            place = 0
            while len(got) - place >= 4:
                (size,) = struct.unpack_from(">i", got, place)
                if len(got) - place < 4 + size:
                    break
                assert struct.unpack_from(">i", got, place + 4)[0] == expected
                expected += 1
                place += 4 + size
            got = got[place:]


def test_acks_0_that_fails():
    """W25: nothing can be answered, so the connection ends, as Kafka does, and no other."""
    with Node({"auto.create.topics.enable": "false"}) as node, Raw(node.port) as other, Raw(node.port) as bad:
        def produce(topic):
            body = struct.pack(">hhi", -1, 0, 1000) + struct.pack(">i", 1)
            body += struct.pack(">h", len(topic)) + topic + struct.pack(">iii", 1, 0, 0)
            return frame(header(0, 3, 9) + body)
        bad.send(produce(b"nowhere"))
        assert bad.closed()
        assert "acks=0" in node.said()
        other.send(metadata(3))
        assert other.reply()[0] == 3


def test_new_names_all_the_time():
    """W27: client ids and groups that nobody has seen before leave nothing behind."""
    with Node() as node:
        def some(first):
            with Raw(node.port) as raw:
                for i in range(first, first + 4000):
                    name = b"name-%08d-" % i + b"x" * 200
                    raw.send(frame(header(3, 1, i, client=name) + struct.pack(">i", 0)))
                    heartbeat = struct.pack(">h", len(name)) + name + struct.pack(">i", 1) + struct.pack(">h", 1) + b"m"
                    raw.send(frame(header(12, 0, i, client=name) + heartbeat))
                    assert raw.reply()[0] == i and raw.reply()[0] == i
        some(0)
        before = resident(node)
        some(4000)
        some(8000)
        assert resident(node) - before < 512, f"{resident(node) - before} KiB"


def test_order_behind_a_fetch():
    """A long poll holds up what follows it on its connection, and nothing else."""
    with Node() as node:
        node.kcat("-P", "-t", "t", data=b"x\n")
        with Raw(node.port) as raw:
            start = time.monotonic()
            raw.send(fetch(1, b"t", offset=1, wait_ms=700) + metadata(2))
            time.sleep(0.1)
            alive(node)
            assert time.monotonic() - start < 0.6
            assert raw.reply()[0] == 1
            assert time.monotonic() - start > 0.6
            assert raw.reply()[0] == 2


def test_promised_length():
    """W4: a length that promises 100 MB costs what arrives."""
    with Node() as node:
        alive(node)
        before = resident(node)
        raws = [Raw(node.port) for _ in range(300)]
        for raw in raws:
            raw.send(struct.pack(">i", 104857600) + b"\0" * 20)
        time.sleep(0.3)
        grown = resident(node) - before
        assert grown < 2048, f"{grown} KiB for 300 promises"
        alive(node)
        for raw in raws:
            raw.close()


def test_one_byte_at_a_time():
    """W5: the time of a frame counts from its first byte."""
    with Node({"connections.max.idle.ms": "600"}) as node, Raw(node.port) as raw:
        start = time.monotonic()
        try:
            for byte in metadata(1, topics=[b"a" * 100]):
                raw.send(bytes([byte]))
                time.sleep(0.05)
        except OSError:
            pass
        assert raw.closed()
        assert time.monotonic() - start < 3


def test_idle_connections_are_closed():
    with Node({"connections.max.idle.ms": "500"}) as node, Raw(node.port) as raw:
        raw.send(metadata(1))
        raw.reply()
        start = time.monotonic()
        assert raw.closed(seconds=5)
        assert 0.3 < time.monotonic() - start < 3


def test_client_that_does_not_read():
    """W22: output stays bounded, others are unhurt."""
    with Node() as node:
        node.kcat("-P", "-t", "t", data=b"".join(b"%0200d\n" % i for i in range(20000)))
        before = resident(node)
        raws = [Raw(node.port) for _ in range(20)]
        for raw in raws:
            for i in range(50):
                raw.send(fetch(i, b"t"))
        time.sleep(1)
        alive(node)
        grown = resident(node) - before
        assert grown < 20 * 2048, f"{grown} KiB"
        for raw in raws:
            raw.close()
        alive(node)


def test_reset_in_a_reply():
    """N10: a connection that is reset while an answer is sent."""
    with Node() as node:
        node.kcat("-P", "-t", "t", data=b"".join(b"%0200d\n" % i for i in range(20000)))
        for _ in range(20):
            raw = Raw(node.port)
            raw.send(fetch(1, b"t") + fetch(2, b"t", offset=20000, wait_ms=5000))
            raw.socket.recv(100)
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raw.close()
        alive(node)


def test_connections_of_one_address():
    with Node({"max.connections.per.ip": "2"}) as node:
        with Raw(node.port) as one, Raw(node.port) as two:
            for raw in (one, two):
                raw.send(metadata(1))
                raw.reply()
            with Raw(node.port) as three:
                assert three.closed()
        time.sleep(0.1)
        alive(node)


def test_connections_in_all():
    with Node({"max.connections": "3"}) as node:
        raws = [Raw(node.port) for _ in range(3)]
        for raw in raws:
            raw.send(metadata(1))
            raw.reply()
        with Raw(node.port) as fourth:
            # The one listener is that between brokers, which makes itself no place.
            assert fourth.closed()
        for raw in raws:
            raw.close()


def test_api_versions():
    with Node() as node, Raw(node.port) as raw:
        for version in range(6):
            raw.send(api_versions(version, 10 + version))
            correlation, body = raw.reply()
            assert correlation == 10 + version
            assert struct.unpack(">h", body[:2])[0] == 0, version
        # Not served: version 0 of the answer, error 35, the one range that helps.
        raw.send(api_versions(77, 1))
        assert raw.reply() == (1, struct.pack(">hihhh", 35, 1, 18, 0, 5))
        for name in (b"", b"-x", b"x-", b"a b"):
            raw.send(api_versions(3, 2, name=name))
            assert struct.unpack(">h", raw.reply()[1][:2])[0] == 42, name
        # KIP-1242: the cluster and node that the client means.
        raw.send(api_versions(5, 3, cluster=b"another", node=1))
        assert struct.unpack(">h", raw.reply()[1][:2])[0] == 129
        raw.send(api_versions(5, 4, cluster=b"another"))
        assert struct.unpack(">h", raw.reply()[1][:2])[0] == 42
        ranges = advertised(raw)
        assert ranges[0] == (0, 13) and ranges[1] == (0, 18) and ranges[18] == (0, 5), ranges
        assert not {4, 5, 6, 7, 52, 62} & ranges.keys(), ranges
    with Node({"dohle.legacy.protocols": "false"}) as node, Raw(node.port) as raw:
        ranges = advertised(raw)
        assert ranges[0] == (0, 13) and ranges[1] == (4, 18) and ranges[2] == (1, 11), ranges


def advertised(raw):
    """What ApiVersions 0 tells: key: (lowest, highest)."""
    raw.send(api_versions(0, 5))
    ranges = {}
    body = raw.reply()[1]
    for i in range(struct.unpack(">i", body[2:6])[0]):
        key, low, high = struct.unpack_from(">hhh", body, 6 + 6 * i)
        ranges[key] = (low, high)
    return ranges


TESTS = [value for name, value in sorted(globals().items()) if name.startswith("test_")]
