"""The servers of a round: Dohle in its two ways, Apache Kafka in two, and the floors."""
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import kafka
from dohle import DOHLE, Node, free_port

ROOT = Path(__file__).resolve().parent.parent.parent
FLOORS = ROOT / "build/bench/floor"
# Groups begin at once and have one partition to write to; nothing is thrown away while it is read.
COMMON = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1", "log.retention.ms": "-1",
          "message.max.bytes": "2097152", "group.max.session.timeout.ms": "1800000",
          "group.consumer.max.session.timeout.ms": "1800000", "group.consumer.session.timeout.ms": "1800000"}
# A thousand clients that connect at once: with room for 50 the kernel drops their SYNs, and the loads wait seconds for the next.
BACKLOG = {"socket.listen.backlog.size": "1024"}
JAVA = ("-Xms1G", "-Xmx1G", "-server", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
        "-XX:+ExplicitGCInvokesConcurrent")


class Server:
    """`with Server() as s`: launched, not waited for; s.address, s.pid, s.begun."""
    floor = False
    kafka = False
    durable = False  # What is acknowledged is on disk.
    repeated = False # The second turn of the round.
    takes = None     # The loads that it can take, if not all.

    def launch(self, process):
        self.begun = time.monotonic()
        process.launch()
        self.pid = process.process.pid

    def __init__(self):
        self.kept = contextlib.ExitStack()  # What a load leaves open.

    def __exit__(self, *unused):
        self.kept.close()
        self.close()


class Dohle(Server):
    name = "dohle sync"
    durability = "sync"
    durable = True

    def __enter__(self):
        self.node = Node({**COMMON, "dohle.ack.durability": self.durability})
        self.address, self.close = self.node.address, self.node.__exit__
        self.launch(self.node)
        return self

    def installed_bytes(self):
        """The program as a package has it."""
        with tempfile.NamedTemporaryFile() as out:
            subprocess.run(["strip", "-o", out.name, DOHLE], check=True)
            return os.stat(out.name).st_size

    def again(self):
        """Stopped in order and launched on the same directory."""
        self.node.stop(120)
        self.node.process.stdout.close()
        self.launch(self.node)


class DohleReplicated(Dohle):
    name = "dohle replicated"
    durability = "replicated"
    durable = False


class Kafka(Server):
    name = "kafka default"
    kafka = True
    settings = {}
    options = (*JAVA, "-XX:+UseG1GC")

    def __enter__(self):
        self.server = kafka.Kafka(settings={**COMMON, **BACKLOG, **self.settings}, options=self.options)
        self.address, self.close = self.server.address, self.server.close
        self.server.format()
        self.launch(self.server)
        return self

    def installed_bytes(self):
        """Its jars and the Java that runs it."""
        said = subprocess.run(["java", "-XshowSettings:properties", "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=True).stdout
        home = next(line.split("=")[1].strip() for line in said.splitlines() if line.strip().startswith("java.home"))
        return sum(path.stat().st_size for place in (kafka.LIBS, Path(home)) for path in place.rglob("*")
                   if path.is_file() and not path.is_symlink())

    def again(self):
        self.server.stop(120)
        self.launch(self.server)


class KafkaTuned(Kafka):
    name = "kafka tuned"
    settings = {"num.network.threads": "1", "num.io.threads": "2"}
    options = (*JAVA[:3], "-XX:+UseParallelGC")


class KafkaFlush(Kafka):
    """What `dohle sync` promises: on disk before the answer. It takes only the loads that are about that."""
    name = "kafka flush"
    durable = True
    takes = {"start", "durable"}
    settings = {"log.flush.interval.messages": "1"}


class Kfake(Server):
    """franz-go's broker for tests, in Go: it keeps everything in memory and writes nothing."""
    name = "kfake"
    takes = {"start", "idle", "connections", "small", "produce"}
    program = ROOT / "build/bench/kfake"

    @classmethod
    def available(cls):
        """None, or why it is not here. Go fetches what bench/peers/kfake/go.mod names."""
        need = subprocess.run([str(ROOT / "test/toolchains/need"), "go"], stdout=subprocess.PIPE, text=True)
        if need.returncode != 0:
            return need.stdout.strip() or "no Go"
        done = subprocess.run(["go", "build", "-o", str(cls.program), "."], cwd=ROOT / "bench/peers/kfake", stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        return None if done.returncode == 0 else "kfake could not be built: " + done.stdout.strip()[-300:]

    def __enter__(self):
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.begun = time.monotonic()
        self.process = subprocess.Popen([str(self.program), str(self.port)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self.pid = self.process.pid
        return self

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()


class Tansu(Server):
    """A broker in Rust over a store of objects, here the one in memory. 0.6.0 answers librdkafka's ApiVersions and every Fetch of
    records with what no client can read: it can stand idle, and no more."""
    name = "tansu"
    takes = {"idle", "connections"}

    @classmethod
    def available(cls):
        """None, or why it is not here. It is half an hour of compiling, which nobody waits for unasked."""
        if shutil.which("tansu") is not None:
            return None
        return "no tansu in PATH: cargo install tansu@0.6.0 --locked --features dynostore"

    def __enter__(self):
        self.address = f"127.0.0.1:{free_port()}"
        self.begun = time.monotonic()
        at = f"tcp://{self.address}"
        command = ["tansu", "broker", "--listener-url", at, "--advertised-listener-url", at, "--storage-engine", "memory://tansu/"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.pid = self.process.pid
        while self.process.poll() is None:
            try:
                socket.create_connection(self.address.split(":"), timeout=1).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.01)
        return self

    def close(self):
        self.process.kill()
        self.process.wait()


class Floor(Server):
    floor = True
    name = "limit"

    def __init__(self, program, *arguments):
        super().__init__()
        self.command = [FLOORS / program, *arguments]

    def __enter__(self):
        self.process = subprocess.Popen([str(word) for word in self.command], stdout=subprocess.PIPE, text=True)
        self.address = "127.0.0.1:" + self.process.stdout.readline().split()[-1]
        self.pid = self.process.pid
        return self

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
