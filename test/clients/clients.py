"""Which clients there are, what each can do, and how each is installed under build/clients.

`install()` installs all of them, those of different registries at the same time, and returns for each client None or
why it is not here. What is installed carries the hash of the files that name its versions, so that it is made once.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import kafka
from dohle import ROOT

HERE = Path(__file__).resolve().parent
BUILD = ROOT / "build/clients"
ALL = ("none", "gzip", "snappy", "lz4", "zstd")


def node_has_zstd():
    done = subprocess.run(["node", "--version"], stdout=subprocess.PIPE, text=True, check=False)
    major, minor = (int(n) for n in done.stdout.strip().lstrip("v").split(".")[:2])
    return (major, minor) >= (22, 15)


class Client:
    """`writes` and `reads` are the codecs it writes and reads by assignment; the switches say what else it has."""

    def __init__(self, name, kind, command, **can):
        self.name, self.kind, self.command = name, kind, [str(word) for word in command]
        self.writes = can.get("writes", ALL)
        self.reads = can.get("reads", ALL)
        self.idempotent = can.get("idempotent", True)
        self.timestamps = can.get("timestamps", True)
        self.times = can.get("times", True)


def clients():
    zstd = ("zstd",) if shutil.which("node") and node_has_zstd() else ()
    node, python = BUILD / "node/agent.mjs", BUILD / "venv/bin/python"
    return [
        Client("java", "java", ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp",
                                f"{kafka.LIBS}/*:{BUILD}/java", "Agent"]),
        Client("franz-go", "go", [BUILD / "go/agent"]),
        Client("kafka-ts", "node", ["node", node, "kafka-ts"], writes=("none",), reads=("none", "gzip", "snappy", "lz4") + zstd),
        Client("kafkajs", "node", ["node", node, "kafkajs"], writes=("none", "gzip", "snappy"), reads=()),
        Client("platformatic", "node", ["node", node, "platformatic"], writes=("none", "gzip", "snappy", "lz4") + zstd, reads=()),
        Client("aiokafka", "python", [python, HERE / "python/agent.py", "aiokafka"]),
        Client("kafka-python", "python", [python, HERE / "python/agent.py", "kafka-python"]),
        Client("confluent-kafka", "python", [python, HERE / "python/agent.py", "confluent-kafka"]),
        Client("rskafka", "rust", [BUILD / "rust/debug/agent"], idempotent=False),
        Client("kcat", "kcat", [sys.executable, HERE / "kcat_agent.py"], timestamps=False),
    ]


def run(command, seconds, **more):
    try:
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, timeout=seconds, check=False, **more)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{command[0]} {command[1]}: not done after {seconds} s") from None
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} {command[1]}: {done.stdout.decode(errors='replace').strip()[-400:]}")


def make_java():
    (BUILD / "java").mkdir(parents=True, exist_ok=True)
    run(["javac", "-cp", f"{kafka.LIBS}/*", "-d", BUILD / "java", HERE / "java/Agent.java"], 120)


def make_go():
    run(["go", "build", "-o", BUILD / "go/agent", "."], 300, cwd=HERE / "go")


def make_node():
    for name in ("package.json", "package-lock.json", "agent.mjs"):
        shutil.copy(HERE / "node" / name, BUILD / "node" / name)
    if not (BUILD / "node/node_modules/kafkajs").exists():
        run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], 600, cwd=BUILD / "node")


def make_python():
    venv = BUILD / "venv"
    run([sys.executable, "-m", "venv", venv], 300)
    run([venv / "bin/pip", "install", "-q", "--only-binary", ":all:", "--disable-pip-version-check", "-r",
         HERE / "python/requirements.txt"], 600)


def make_rust():
    run(["cargo", "build", "--quiet", "--locked"], 900, cwd=HERE / "rust", env=dict(os.environ, CARGO_TARGET_DIR=str(BUILD / "rust")))


def make_kcat():
    if not shutil.which("kcat"):
        raise RuntimeError("kcat is not here (Debian package kcat)")


FILES = {
    "java": (make_java, ["java/Agent.java"]),
    "go": (make_go, ["go/go.mod", "go/go.sum", "go/agent.go"]),
    "node": (make_node, ["node/package.json", "node/package-lock.json", "node/agent.mjs"]),
    "python": (make_python, ["python/requirements.txt"]),
    "rust": (make_rust, ["rust/Cargo.toml", "rust/Cargo.lock", "rust/src/main.rs"]),
    "kcat": (make_kcat, []),
}


def missing_toolchain(kind):
    if kind == "java":
        return kafka.available()
    if kind in ("python", "kcat"):
        return None
    need = subprocess.run([str(ROOT / "test/toolchains/need"), kind], stdout=subprocess.PIPE, text=True, check=False)
    return need.stdout.strip() or f"no {kind}" if need.returncode != 0 else None


def install_kind(kind, reasons):
    try:
        make, files = FILES[kind]
        (BUILD / kind).mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in files)).hexdigest()
        stamp = BUILD / f"{kind}.made"
        if not files or not stamp.exists() or stamp.read_text() != digest:
            make()
            stamp.write_text(digest)
        reasons[kind] = None
    except (RuntimeError, OSError) as reason:
        reasons[kind] = str(reason).replace("\n", " ")


def install(kinds=None):
    reasons = {}
    threads = []
    for kind in kinds or FILES:
        reasons[kind] = missing_toolchain(kind)
        if reasons[kind] is None:
            threads.append(threading.Thread(target=install_kind, args=(kind, reasons)))
            threads[-1].start()
    for thread in threads:
        thread.join()
    return reasons
