"""Apache Kafka 4.4 from Maven: its jars, its tools, a broker of its own."""
import base64
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from dohle import ROOT, free_port

LIBS = ROOT / "build/kafka-libs"
POM = ROOT / "test/interop/pom.xml"


def libs_of(version):
    """Where the jars of a release other than the reference's are."""
    return ROOT / f"build/kafka-libs-{version}"


def jars(pom, libs, *options, mark="complete"):
    """None if Java is here and what `pom` names is in the folder `libs`, fetched if need be; else why not."""
    need = subprocess.run([str(ROOT / "test/toolchains/need"), "java"], stdout=subprocess.PIPE, text=True)
    if need.returncode != 0:
        return need.stdout.strip() or "no Java"
    if (libs / mark).exists() and (libs / "pom.xml").read_bytes() == Path(pom).read_bytes():
        return None
    libs.mkdir(parents=True, exist_ok=True)
    shutil.copy(pom, libs / "pom.xml")
    done = subprocess.run(["mvn", "-q", "-B", "-f", str(libs / "pom.xml"), "dependency:copy-dependencies", *options,
                           "-DincludeScope=runtime", f"-DoutputDirectory={libs}"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        return f"Maven could not fetch what {Path(pom).relative_to(ROOT)} names: " + done.stdout.strip()[-300:]
    (libs / mark).touch()
    return None


def available(version=None, shell=False):
    """None if Java and the jars (of the reference, or of another release; with its metadata shell) are here, fetched if need be; else why
    not."""
    release = ([] if version is None else [f"-Dkafka={version}"]) + (["-Pshell"] if shell else [])
    return jars(POM, LIBS if version is None else libs_of(version), *release, mark="complete-shell" if shell else "complete")


def java(main, *arguments, data=None, seconds=120, check=True, libs=LIBS):
    done = subprocess.run(["java", "-Xmx512m", "-cp", f"{libs}/*", main, *arguments], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=seconds)
    if check and done.returncode != 0:
        raise RuntimeError(f"{main} {' '.join(arguments)}: {done.stdout.decode()[-800:]}{done.stderr.decode()[-800:]}")
    return done.stdout.decode()


def tool(name, *arguments, **more):
    return java("org.apache.kafka.tools." + name, *arguments, **more)


class Tools:
    """The tools in one JVM, for suites that call many: a JVM of its own costs each two seconds."""

    def __init__(self):
        self.process = subprocess.Popen(["java", "-Xmx256m", "-cp", f"{LIBS}/*", str(ROOT / "test/lib/Tools.java")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def __call__(self, name, *arguments, check=True):
        self.process.stdin.write(("\t".join(["org.apache.kafka.tools." + name, *arguments]) + "\n").encode())
        self.process.stdin.flush()
        code, _, text = self.process.stdout.readline().decode().strip().partition(" ")
        text = base64.b64decode(text).decode(errors="replace")
        if check and code != "0":
            raise RuntimeError(f"{name} {' '.join(arguments)}: exit code {code}: {text[-1500:]}")
        return text

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=20)


class Kafka:
    """A combined broker and controller on free ports; `data` may be a directory that exists."""

    def __init__(self, data=None, port=None, controller_port=None, settings=None, options=None):
        self.options = options or (f"-Xmx{self.heap}", "-XX:+UseSerialGC")
        self.mine = data is None
        self.directory = data or tempfile.mkdtemp(prefix="kafka-test-")
        self.port = port or free_port()
        self.controller_port = controller_port or free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.config = tempfile.NamedTemporaryFile("w", suffix=".properties", delete=False)
        lines = {
            "process.roles": "broker,controller", "node.id": "1",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER", "log.dirs": self.directory,
            "offsets.topic.replication.factor": "1", "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1", "share.coordinator.state.topic.replication.factor": "1",
            **(settings or {}),
        }
        self.config.write("".join(f"{name}={value}\n" for name, value in lines.items()))
        self.config.close()
        self.process = None
        self.log = tempfile.NamedTemporaryFile(suffix=".log", delete=False)

    node_id = 1
    heap = "768m"
    libs = LIBS

    def format(self):
        uuid = java("kafka.tools.StorageTool", "random-uuid").strip().splitlines()[-1]
        java("kafka.tools.StorageTool", "format", "-t", uuid, "-c", self.config.name, "--standalone")

    def launch(self):
        """Start the process; do not wait until it serves."""
        self.process = subprocess.Popen(["java", *self.options, "-cp", f"{self.libs}/*", "kafka.Kafka", self.config.name],
                                        stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)

    def start(self, seconds=90):
        self.launch()
        limit = time.monotonic() + seconds
        while time.monotonic() < limit and self.process.poll() is None:
            done = subprocess.run(["kcat", "-b", self.address, "-L", "-m", "2"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            if done.returncode == 0 and f"broker {self.node_id} at".encode() in done.stdout:
                return self
            time.sleep(0.5)
        raise RuntimeError("Apache Kafka did not start:\n" + self.said())

    def said(self):
        return Path(self.log.name).read_text(errors="replace")[-3000:]

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self, seconds=60):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=seconds)

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for path in (self.config.name, self.log.name):
            Path(path).unlink(missing_ok=True)
        if self.mine:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


class Broker(Kafka):
    """A node with process.roles=broker under a controller elsewhere, `controller` an object with
    `controller_port` and `cluster_id`. Small: several run beside each other."""
    heap = "256m"

    def __init__(self, node_id, controller, settings=None, data=None):
        self.node_id = node_id
        super().__init__(data=data, controller_port=controller.controller_port, settings={
            "process.roles": "broker", "node.id": str(node_id), "num.partitions": "3",
            "offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3",
            "log.cleaner.dedupe.buffer.size": "4194304", **(settings or {})})
        lines = Path(self.config.name).read_text().splitlines()
        lines = [f"listeners=PLAINTEXT://127.0.0.1:{self.port}" if line.startswith("listeners=") else line for line in lines]
        Path(self.config.name).write_text("\n".join(lines) + "\n")
        self.cluster_id = controller.cluster_id

    def format(self):
        """As the storage tool formats a broker: what it writes beside these lines only controllers read."""
        directories = [line.partition("=")[2] for line in Path(self.config.name).read_text().splitlines()
                       if line.startswith("log.dirs=")][0]
        for directory in directories.split(","):
            os.makedirs(directory, exist_ok=True)
            uuid = base64.urlsafe_b64encode(b"\x11" + os.urandom(15)).decode().rstrip("=")
            (Path(directory) / "meta.properties").write_text(
                f"version=1\ncluster.id={self.cluster_id}\nnode.id={self.node_id}\ndirectory.id={uuid}\n")
        return self
