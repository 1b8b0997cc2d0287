"""A Dohle node for a test: started on a free port with a directory of its own, gone at the end.

    with Node() as node:
        node.kcat("-L")
        node.kill(); node.start()        # the same port, the same directory
"""
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOHLE = os.environ.get("DOHLE", str(ROOT / "build/dohle"))


def below_outgoing_ports():
    """Ports that no outgoing connection gets: a node keeps its port while it is down."""
    outgoing = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    return range(10000, max(int(outgoing[0]), 12000))


def free_port(given=set()):
    """A port of 127.0.0.1 that nobody has, and that was not given in this process before."""
    while True:
        port = random.choice(below_outgoing_ports())
        if port in given:
            continue
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        given.add(port)
        return port


class Node:
    def __init__(self, settings=None, data=None, options=(), dirs=0):
        self.directory = data or tempfile.mkdtemp(prefix="dohle-test-")
        self.mine = data is None
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.dirs = [Path(self.directory) / f"disk{i}" for i in range(dirs)]  # Several log directories, or none: the one.
        if dirs:
            settings = {"log.dirs": ",".join(map(str, self.dirs)), **(settings or {})}
        self.settings = {"listeners": f"PLAINTEXT://127.0.0.1:{self.port}", "dohle.http.listener": "", **(settings or {})}
        self.options = options
        if "DOHLE_SHARDS" in os.environ:  # The same tests against several shards.
            self.settings.setdefault("dohle.shards", os.environ["DOHLE_SHARDS"])
        self.process = None
        self.log = open(os.path.join(tempfile.gettempdir(), f"dohle-test-{os.getpid()}-{self.port}.log"), "w+b")

    def launch(self):
        """Start the process; do not wait until it serves."""
        where = () if "log.dirs" in self.settings else ("--data", self.directory)
        command = [DOHLE, "start", *where, *self.options]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, stdin=subprocess.DEVNULL)

    def start(self, seconds=20):
        self.launch()
        limit = time.monotonic() + seconds
        line = self.process.stdout.readline()
        if not line or time.monotonic() > limit:
            raise RuntimeError("no ready line; the log says:\n" + self.said())
        return line.decode()

    def said(self):
        self.log.flush()
        self.log.seek(0)
        return self.log.read().decode(errors="replace")[-4000:]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds=20):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=seconds)

    def kcat(self, *arguments, data=None, seconds=25, check=True):
        done = subprocess.run(["kcat", "-b", self.address, *arguments], input=data, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=seconds)
        if check and done.returncode != 0:
            raise RuntimeError(f"kcat {arguments}: {done.stderr.decode()}\nthe node says:\n{self.said()}")
        return done.stdout

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *unused):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        os.unlink(self.log.name)
        if self.mine:
            shutil.rmtree(self.directory, ignore_errors=True)


class Suite:
    """Runs named functions, counts them, and prints the line that the runner reads."""

    def __init__(self):
        self.passed = self.failed = 0
        self.skipped = []

    def run(self, *tests):
        for test in tests:
            start = time.monotonic()
            try:
                test()
                self.passed += 1
                print(f"ok   {test.__name__}  {time.monotonic() - start:.1f} s", flush=True)
            except Exception as reason:  # A test may fail in any way; the rest still runs.
                self.failed += 1
                print(f"FAIL {test.__name__}: {type(reason).__name__}: {reason}", flush=True)

    def skip(self, name, reason):
        self.skipped.append(name)
        print(f"SKIP {name}: {reason}")

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed, {len(self.skipped)} skipped")
        raise SystemExit(1 if self.failed else 0)
