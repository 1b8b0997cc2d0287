"""The workloads. Each takes a running server and a scale and yields (metric, value, unit); less is better.

What was acknowledged is read back, record by record: a figure without that is void. Where there is a floor, the same load runs
against it in the same round.
"""
import functools
import json
import socket
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import kafka
import recorded
from servers import Floor

ROOT = Path(__file__).resolve().parent.parent.parent
REPLAY = ROOT / "build/bench/replay"
GROUPS = ROOT / "build/bench/groups"
CLIENT = ROOT / "bench/peers/client/Client.java"
CLASSES = ROOT / "build/bench/client"

# Work before the measured time, the same for every server: a JVM compiles what it does often, and a cache is warm. Requests, records
# for the Java client. A full run does ten times as much.
WARM = {"heartbeat": 10_000, "small": 15_000, "small5": 4_000, "batches": 1_500, "large": 400, "huge": 100, "lz4": 300, "zstd": 300,
        "recorded": 1_000, "java": 50_000, "fetch": 400, "durable1": 200, "durable64": 2_000}


@dataclass
class Scale:
    seconds: float
    warmup: float
    idle: float
    members: tuple  # Of groups, in all; what is above `kafka_members` is Dohle's alone.
    kafka_members: int
    rebalanced: int  # Members of one group.
    partitions: int
    restarted: int    # Partitions that a server starts again with.
    connections: int  # That do nothing.
    preload: int  # Batches of 16 KiB.
    client: int   # Records by librdkafka and by the Java client.
    warm: int     # Times WARM.


QUICK = Scale(seconds=1, warmup=0.2, idle=2, members=(2_000,), kafka_members=2_000, rebalanced=1000, partitions=500, restarted=500, connections=2000, preload=2000, client=100_000, warm=1)
FULL = Scale(seconds=30, warmup=30, idle=60, members=(10_000, 100_000, 1_000_000), kafka_members=100_000, rebalanced=1000, partitions=10_000, restarted=10_000, connections=10_000, preload=60_000, client=5_000_000, warm=10)


class Void(Exception):
    """The server lost something, or refused something: its figure is none."""


def words_of(options):
    """`name=value` as words; True is a word alone, False none, a tuple is the option again and again."""
    words = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        for each in value if isinstance(value, tuple) else (value,):
            words += [option] if each is True else [] if each is False else [option, str(each)]
    return words


def said_by(program, mode, server, **options):
    done = subprocess.run([str(program), mode, server.address, *words_of(options), "--server-pid", str(server.pid)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=1800)
    if done.returncode != 0:
        raise Void(f"{mode}: {done.stderr.strip() or done.stdout.strip()}")
    said = json.loads(done.stdout) if done.stdout else {}
    if "warm" in said and said["warm"] < options.get("warm", 0):
        print(f"  only {said['warm']:,} of {options['warm']:,} requests of warm-up in {options['topic']}", flush=True)
    return said


def replay(mode, server, **options):
    return said_by(REPLAY, mode, server, **options)


def load(mode, server, scale, warm=0, **options):
    return replay(mode, server, **{"seconds": scale.seconds, **options}, warmup=scale.warmup, warm=warm * scale.warm)


def produce(server, scale, topic, partitions=1, records=1, **options):
    """Produce, and read all of it back."""
    if not server.floor:
        replay("create", server, topic=topic, partitions=partitions)
    shape = {"topic": topic, "partitions": partitions, "records": records}
    said = load("produce", server, scale, WARM.get(topic, 0), **shape, **options)
    if not server.floor:
        found = replay("verify", server, topic=topic, partitions=partitions)["records"]
        if found != said["all"] * records:
            raise Void(f"{said['all'] * records} records were acknowledged, {found} are there")
    return said


def each_us(said):
    return said["server_cpu_s"] * 1e6 / said["requests"]


def resident_kib(server, what="VmRSS"):
    text = Path(f"/proc/{server.pid}/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith(what + ":")))


def cpu_s(server):
    return time.clock_gettime(~server.pid << 3 | 2)  # The process's own clock.


def create_many(server, name, count):
    """Seconds. Topics of a thousand partitions: ten thousand records in one request are refused."""
    return sum(replay("create", server, topic=f"{name}{first}", partitions=min(1000, count - first))["seconds"]
               for first in range(0, count, 1000))


def until_first(server):
    """Seconds from exec until a record is acknowledged; a server that drops the connection while it starts is asked again."""
    while True:
        try:
            replay("first", server, topic="first")
            return time.monotonic() - server.begun
        except Void:
            if time.monotonic() - server.begun > 120:
                raise


def start(server, scale):
    seconds = until_first(server)
    if replay("verify", server, topic="first")["records"] < 1:
        raise Void("the first record is not there")
    yield "exec to first acknowledged record", seconds * 1e3, "ms"


def installed(server, scale):
    """What the server needs on a disk beside the system's own libraries."""
    if not server.repeated:
        yield "installed", server.installed_bytes() / (1 << 20), "MiB"


def restart(server, scale):
    if server.repeated:
        return  # A JVM's stop and start with so many takes the time of all the others.
    create_many(server, "restart", scale.restarted)
    server.again()
    yield f"exec to first acknowledged record, {scale.restarted:,} partitions", until_first(server) * 1e3, "ms"


def connections(server, scale):
    """Each asks for ApiVersions once and then does nothing. They stay open: what they free would be found by the next load."""
    ask = struct.pack(">ihhih", 10, 18, 0, 1, -1)
    host, port = server.address.split(":")
    before = resident_kib(server)
    for _ in range(scale.connections):
        client = server.kept.enter_context(socket.create_connection((host, int(port))))
        client.sendall(ask)
        if not client.recv(1 << 16):
            raise Void("a connection was closed")
    yield "resident per idle connection", (resident_kib(server) - before) * 1024 / scale.connections, "bytes"


def parked(server, scale):
    """A thousand consumers of a topic to which nothing comes; each asks anew when its 500 ms are over."""
    replay("create", server, topic="parked")
    said = load("park", server, scale, topic="parked", connections=1000)
    yield "1,000 consumers that wait", said["server_cpu_s"] * 60e3 / said["seconds"], "CPU ms per minute"


def durable(server, scale):
    """Every answer is on disk: one producer that waits for each, and 64 whose batches may share a sync."""
    for count in (1, 64):
        said = produce(server, scale, f"durable{count}", connections=count)
        yield f"durable 1 x 100 B, {count} connections, between two answers", said["seconds"] * 1e6 / said["requests"], "us"
        yield f"durable 1 x 100 B, {count} connections", each_us(said), "CPU us each"


def idle(server, scale):
    before = cpu_s(server)
    time.sleep(scale.idle)
    yield "CPU when idle", (cpu_s(server) - before) * 60e3 / scale.idle, "ms per minute"
    yield "resident when idle", resident_kib(server) / 1024, "MiB"


def beats(server, scale, members, name, **options):
    """Groups of a hundred, over 64 connections: one request at a time on each, sixteen, and as many as are due every 5 s, up to
    what every server can do."""
    before = resident_kib(server)
    rate, often = (members / 5, "each every 5 s") if members <= 10_000 else (2000, "2,000 a second")
    said = said_by(GROUPS, "beat", server, members=members, group_size=100, links=1000, seconds=scale.seconds, warmup=scale.warmup,
                   warm=WARM["heartbeat"] * scale.warm if not server.floor else 0, depth=(1, 16), rate=rate, bare=server.floor, **options)
    one, many, due = said["loads"]
    yield f"{name}, {members:,} members, one at a time", each_us(one), "CPU us each"
    yield f"{name}, {members:,} members, 16 at a time", each_us(many), "CPU us each"
    yield f"{name}, {members:,} members, {often}", each_us(due), "CPU us each"
    yield f"{name}, {members:,} members, {often}, p99", due["p99_us"], "us"
    if not server.floor:
        yield f"{name}, {members:,} members, resident", (resident_kib(server) - before) * 1024 / members, "bytes each"


def heartbeat(server, scale):
    for members in scale.members:
        if server.kafka and members > scale.kafka_members:
            continue
        yield from beats(server, scale, members, "Heartbeat")
        yield from beats(server, scale, members, "ConsumerGroupHeartbeat", consumer=True)
    if not server.floor and not server.repeated:
        said = said_by(GROUPS, "expiry", server, members=128)
        if said["early_ms"] > 1:  # Clocks are read in whole milliseconds.
            raise Void(f"a session ended {said['early_ms']} ms early")
        yield "silent member noticed behind its session's end, p50", said["late_p50_ms"], "ms"
        yield "silent member noticed behind its session's end, max", said["late_max_ms"], "ms"


def rebalance(server, scale):
    """From a change until every member has its share of the new generation."""
    count = scale.rebalanced
    replay("create", server, topic="rebalance", partitions=2 * count)
    for name, options in (("classic", {}), ("consumer", {"consumer": True, "topic": "rebalance", "partitions": 2 * count})):
        said = said_by(GROUPS, "rebalance", server, members=count, **options)
        for step, spent in said.items():
            yield f"{count:,} members, {name}: {step}", spent["ms"], "ms"
            yield f"{count:,} members, {name}: {step}, server", spent["cpu_ms"], "CPU ms"


def small(server, scale):
    said = produce(server, scale, "small", connections=64)
    yield "produce 1 x 100 B, 64 connections", each_us(said), "CPU us each"
    yield "the same, until acknowledged, p99", said["p99_us"], "us"
    yield "produce 1 x 100 B, 1 connection, 5 at a time", each_us(produce(server, scale, "small5", depth=5)), "CPU us each"


def latency(server, scale):
    said = produce(server, scale, "latency", size=1000, rate=1000, follow=True)
    yield "1,000 records a second, acknowledged, p50", said["p50_us"], "us"
    yield "1,000 records a second, acknowledged, p99", said["p99_us"], "us"
    yield "1,000 records a second, delivered, p50", said["delivered_p50_us"], "us"
    yield "1,000 records a second, delivered, p99", said["delivered_p99_us"], "us"
    yield "1,000 records a second", each_us(said), "CPU us each"
    if server.floor:
        return
    said = produce(server, scale, "latency10", size=1000, records=10, rate=1000, follow=True, seconds=max(scale.seconds, 3))
    yield "10,000 records a second by tens, delivered, p99", said["delivered_p99_us"], "us"
    yield "10,000 records a second by tens, delivered, p99.9", said["delivered_p999_us"], "us"


def batches(server, scale):
    said = produce(server, scale, "batches", partitions=2, records=150, connections=2, depth=5)
    yield "produce 150 x 100 B", said["server_cpu_s"] * 1e6 / (said["requests"] * 150), "CPU s per million records"
    said = produce(server, scale, "large", partitions=2, records=950, size=1024, connections=2, depth=2)
    yield "produce 950 x 1 KiB", said["server_cpu_s"] * 1e9 / (said["requests"] * 950 * 1024), "CPU s per GB"
    said = produce(server, scale, "huge", partitions=2, records=10, size=100 * 1024, connections=2, depth=2)
    yield "produce 10 x 100 KiB", said["server_cpu_s"] * 1e9 / (said["requests"] * 10 * 100 * 1024), "CPU s per GB"
    if server.floor:
        return  # It does not decompress.
    for codec in ("lz4", "zstd"):
        said = produce(server, scale, codec, partitions=2, records=150, size=1024, connections=2, depth=2, codec=codec)
        yield f"produce 150 x 1 KiB, {codec}", said["server_cpu_s"] * 1e9 / (said["requests"] * 150 * 1024), "CPU s per GB before compression"


def fetch(server, scale):
    shape = {"topic": "fetch", "records": 150, "requests": scale.preload}
    if not server.floor:
        replay("create", server, topic="fetch")
        replay("produce", server, seconds=600, warmup=0, depth=5, **shape)
    for size, name in ((1 << 20, "1 MiB"), (1 << 16, "64 KiB")):
        if server.floor and size != server.bytes:
            continue
        said = load("fetch", server, scale, WARM["fetch"], connections=4, max_bytes=size, **shape)
        yield f"fetch by {name}", said["server_cpu_s"] * 1e9 / said["answer_bytes"], "CPU s per GB"


def partitions(server, scale):
    """The first lot is not measured: what a heap grows by for one large request is no partition's."""
    create_many(server, "before", min(1000, scale.partitions))
    before = resident_kib(server)
    yield "create a partition", create_many(server, "many", scale.partitions) * 1e6 / scale.partitions, "us each"
    yield "resident per partition", (resident_kib(server) - before) * 1024 / scale.partitions, "bytes"


def kcat(server, *arguments, **more):
    done = subprocess.run(["kcat", "-b", server.address, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=900, **more)
    if done.returncode != 0:
        raise Void("kcat: " + done.stderr.decode()[-300:])
    return done.stdout


def librdkafka(server, scale):
    """A real client, at both ends: kcat."""
    line = ("0123456789abcdef" * 7)[:99] + "\n"
    replay("create", server, topic="kcat")
    before = cpu_s(server)
    kcat(server, "-P", "-t", "kcat", "-X", "acks=all", "-X", "linger.ms=5", input=(line * scale.client).encode())
    yield "librdkafka produces 100 B", (cpu_s(server) - before) * 1e6 / scale.client, "CPU s per million records"
    before = cpu_s(server)
    found = len(kcat(server, "-C", "-t", "kcat", "-o", "beginning", "-e", "-q").splitlines())
    yield "librdkafka consumes 100 B", (cpu_s(server) - before) * 1e6 / scale.client, "CPU s per million records"
    if found != scale.client:
        raise Void(f"{scale.client} records were acknowledged, {found} are there")
    frame = recorded_frame()
    said = produce(server, scale, recorded.TOPIC, records=frame.records, recorded=frame.path, connections=2, depth=5)
    yield "librdkafka's frames sent again, 100 B", said["server_cpu_s"] * 1e6 / (said["requests"] * frame.records), "CPU s per million records"


@functools.cache
def recorded_frame():
    """One for the whole bench: every server gets the same bytes."""
    frame = recorded.record(Path(tempfile.gettempdir(), "recorded.frame"))
    print(f"  recorded from librdkafka: Produce v{frame.version}, {frame.records} records, {frame.bytes:,} bytes", flush=True)
    return frame


@functools.cache
def compiled_client():
    CLASSES.mkdir(parents=True, exist_ok=True)
    subprocess.run(["javac", "-nowarn", "-cp", f"{kafka.LIBS}/*", "-d", str(CLASSES), str(CLIENT)], check=True)


def java(server, scale):
    """Apache Kafka's own client, at both ends."""
    if (reason := kafka.available()) is not None:
        print(f"  without the Java client: {reason}")
        return
    compiled_client()
    replay("create", server, topic="java")
    client = subprocess.Popen(["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{kafka.LIBS}/*:{CLASSES}", "Client", server.address, "java",
                               str(WARM["java"]), str(scale.client)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    spent = {}
    with client:
        for word in ("warm", "produced", "consumed"):
            said = client.stdout.readline().split()
            spent[word] = cpu_s(server)
            if not said or said[0] != word:
                client.kill()
                raise Void(f"the Java client ended before it had {word}")
            client.stdin.write("\n")
            client.stdin.flush()
    yield "Java client produces 100 B", (spent["produced"] - spent["warm"]) * 1e6 / scale.client, "CPU s per million records"
    yield "Java client consumes 100 B", (spent["consumed"] - spent["produced"]) * 1e6 / scale.client, "CPU s per million records"
    found = replay("verify", server, topic="java")["records"]
    if found != scale.client + WARM["java"] or int(said[1]) != scale.client:
        raise Void(f"{scale.client + WARM['java']} records were acknowledged, {found} are there, {said[1]} were delivered")


class FetchFloor(Floor):
    def __init__(self, path, size):
        super().__init__("fetch", path, size)
        self.bytes = size


# What is left alone comes first: a server that has been loaded is not idle again.
LOADS = {"start": start, "installed": installed, "idle": idle, "connections": connections, "partitions": partitions, "parked": parked, "heartbeat": heartbeat, "rebalance": rebalance, "small": small, "latency": latency,
         "produce": batches, "librdkafka": librdkafka, "java": java, "fetch": fetch, "durable": durable, "restart": restart}
FOR_DURABLE = {"durable"}  # Only for servers that promise it.


def taken_by(server, names):
    """The loads of `names` that this server takes; `start` first, which waits until it is up: who cannot take that does so itself."""
    taken = [name for name in names if (server.takes is None or name in server.takes) and (server.durable or name not in FOR_DURABLE)]
    first = ["start"] if server.takes is None or "start" in server.takes else []
    return list(dict.fromkeys([*first, *taken])) if set(taken) - {"start"} or names == ["start"] else []


def floors(name, place):
    """The floors of a workload; the last word is whom they are the limit of: "" for all, else servers whose name has it."""
    path = Path(place, "floor.dat")
    return {"durable": [(Floor("commit", path), "")], "heartbeat": [(Floor("echo"), "")], "small": [(Floor("produce", path), ""), (Floor("commit", path), "sync")],
            "latency": [(Floor("relay"), "")], "produce": [(Floor("produce", path), "")],
            "fetch": [(FetchFloor(path, 1 << 20), ""), (FetchFloor(path, 1 << 16), "")]}.get(name, [])
