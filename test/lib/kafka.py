"""Apache Kafka 4.4 from Maven: its jars, its tools, a broker of its own."""
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


def available():
    """None if Java and the jars are here (the jars are fetched), else why not."""
    need = subprocess.run([str(ROOT / "test/toolchains/need"), "java"], stdout=subprocess.PIPE, text=True)
    if need.returncode != 0:
        return need.stdout.strip() or "no Java"
    if (LIBS / "complete").exists():
        return None
    LIBS.mkdir(parents=True, exist_ok=True)
    shutil.copy(POM, LIBS / "pom.xml")
    done = subprocess.run(["mvn", "-q", "-B", "-f", str(LIBS / "pom.xml"), "dependency:copy-dependencies",
                           "-DincludeScope=runtime", f"-DoutputDirectory={LIBS}"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        return "Maven could not fetch Apache Kafka's jars: " + done.stdout.strip()[-300:]
    (LIBS / "complete").touch()
    return None


def java(main, *arguments, data=None, seconds=120, check=True):
    done = subprocess.run(["java", "-Xmx512m", "-cp", f"{LIBS}/*", main, *arguments], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=seconds)
    if check and done.returncode != 0:
        raise RuntimeError(f"{main} {' '.join(arguments)}: {done.stdout.decode()[-800:]}{done.stderr.decode()[-800:]}")
    return done.stdout.decode()


def tool(name, *arguments, **more):
    return java("org.apache.kafka.tools." + name, *arguments, **more)


class Kafka:
    """A combined broker and controller on free ports; `data` may be a directory that exists."""

    def __init__(self, data=None, port=None, controller_port=None, settings=None):
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

    def format(self):
        uuid = java("kafka.tools.StorageTool", "random-uuid").strip().splitlines()[-1]
        java("kafka.tools.StorageTool", "format", "-t", uuid, "-c", self.config.name, "--standalone")

    def start(self, seconds=90):
        self.process = subprocess.Popen(["java", "-Xmx768m", "-cp", f"{LIBS}/*", "kafka.Kafka", self.config.name],
                                        stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        limit = time.monotonic() + seconds
        while time.monotonic() < limit and self.process.poll() is None:
            done = subprocess.run(["kcat", "-b", self.address, "-L", "-m", "2"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            if done.returncode == 0 and b"broker 1 at" in done.stdout:
                return self
            time.sleep(0.5)
        raise RuntimeError("Apache Kafka did not start:\n" + Path(self.log.name).read_text(errors="replace")[-3000:])

    def stop(self, seconds=60):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=seconds)

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.unlink(self.config.name)
        os.unlink(self.log.name)
        if self.mine:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()
