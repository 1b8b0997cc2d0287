"""The workloads. Each takes a running server and a scale and yields (metric, value, unit); less is better.

What was acknowledged is read back, record by record: a figure without that is void. Where there is a floor, the same load runs
against it in the same round.
"""
import json
import socket
import struct
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from servers import Floor

ROOT = Path(__file__).resolve().parent.parent.parent
REPLAY = ROOT / "build/bench/replay"
GROUPS = ROOT / "build/bench/groups"


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
    kcat: int     # Records by librdkafka.


QUICK = Scale(seconds=1.5, warmup=0.5, idle=3, members=(2_000,), kafka_members=2_000, rebalanced=1000, partitions=500, restarted=2000, connections=2000, preload=3000, kcat=200_000)
FULL = Scale(seconds=30, warmup=30, idle=60, members=(10_000, 100_000, 1_000_000), kafka_members=100_000, rebalanced=1000, partitions=10_000, restarted=10_000, connections=10_000, preload=60_000, kcat=5_000_000)


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
    return json.loads(done.stdout) if done.stdout else {}


def replay(mode, server, **options):
    return said_by(REPLAY, mode, server, **options)


def load(mode, server, scale, **options):
    return replay(mode, server, seconds=scale.seconds, warmup=scale.warmup, **options)


def produce(server, scale, topic, partitions=1, records=1, **options):
    """Produce, and read all of it back."""
    if not server.floor:
        replay("create", server, topic=topic, partitions=partitions)
    shape = {"topic": topic, "partitions": partitions, "records": records}
    said = load("produce", server, scale, **shape, **options)
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


def restart(server, scale):
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
                   depth=(1, 16), rate=rate, bare=server.floor, **options)
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
    if not server.floor:
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


def batches(server, scale):
    said = produce(server, scale, "batches", partitions=2, records=150, connections=2, depth=5)
    yield "produce 150 x 100 B", said["server_cpu_s"] * 1e6 / (said["requests"] * 150), "CPU s per million records"
    said = produce(server, scale, "large", partitions=2, records=950, size=1024, connections=2, depth=2)
    yield "produce 950 x 1 KiB", said["server_cpu_s"] * 1e9 / (said["requests"] * 950 * 1024), "CPU s per GB"


def fetch(server, scale):
    shape = {"topic": "fetch", "records": 150, "requests": scale.preload}
    if not server.floor:
        replay("create", server, topic="fetch")
        replay("produce", server, seconds=600, warmup=0, depth=5, **shape)
    for size, name in ((1 << 20, "1 MiB"), (1 << 16, "64 KiB")):
        if server.floor and size != server.bytes:
            continue
        said = load("fetch", server, scale, connections=4, max_bytes=size, **shape)
        yield f"fetch by {name}", said["server_cpu_s"] * 1e9 / said["answer_bytes"], "CPU s per GB"


def partitions(server, scale):
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
    kcat(server, "-P", "-t", "kcat", "-X", "acks=all", "-X", "linger.ms=5", input=(line * scale.kcat).encode())
    yield "librdkafka produces 100 B", (cpu_s(server) - before) * 1e6 / scale.kcat, "CPU s per million records"
    before = cpu_s(server)
    found = len(kcat(server, "-C", "-t", "kcat", "-o", "beginning", "-e", "-q").splitlines())
    yield "librdkafka consumes 100 B", (cpu_s(server) - before) * 1e6 / scale.kcat, "CPU s per million records"
    if found != scale.kcat:
        raise Void(f"{scale.kcat} records were acknowledged, {found} are there")


class FetchFloor(Floor):
    def __init__(self, path, size):
        super().__init__("fetch", path, size)
        self.bytes = size


# What is left alone comes first: a server that has been loaded is not idle again.
LOADS = {"start": start, "idle": idle, "connections": connections, "partitions": partitions, "parked": parked, "heartbeat": heartbeat, "rebalance": rebalance, "small": small, "latency": latency,
         "produce": batches, "librdkafka": librdkafka, "fetch": fetch, "durable": durable, "restart": restart}
FOR_DURABLE = {"durable"}  # Only for servers that promise it.


def taken_by(server, names):
    """The loads of `names` that this server takes: it must be up first."""
    taken = [name for name in names if (server.takes is None or name in server.takes) and (server.durable or name not in FOR_DURABLE)]
    return list(dict.fromkeys(["start", *taken])) if set(taken) - {"start"} or names == ["start"] else []


def floors(name, place):
    """The floors of a workload; the last word is whom they are the limit of: "" for all, else servers whose name has it."""
    path = Path(place, "floor.dat")
    return {"durable": [(Floor("commit", path), "")], "heartbeat": [(Floor("echo"), "")], "small": [(Floor("produce", path), ""), (Floor("commit", path), "sync")],
            "latency": [(Floor("relay"), "")], "produce": [(Floor("produce", path), "")],
            "fetch": [(FetchFloor(path, 1 << 20), ""), (FetchFloor(path, 1 << 16), "")]}.get(name, [])
