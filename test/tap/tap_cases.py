"""What both suites of the tap use: a tap in front of a broker."""
import json
import os
import signal
import subprocess
import tempfile
import time

from dohle import DOHLE, free_port


def tap_port():
    """A port with free ones behind it, which the tap takes for further brokers."""
    return free_port()


class Tap:
    """`dohle wire tap` in front of an address; `lines` after the end."""

    def __init__(self, upstream, *options):
        self.port = tap_port()
        self.address = f"127.0.0.1:{self.port}"
        self.out = tempfile.TemporaryFile()
        self.process = subprocess.Popen([DOHLE, "wire", "tap", str(self.port), upstream, *options], stdout=self.out,
                                        stderr=subprocess.PIPE)
        first = self.process.stderr.readline().decode()
        assert first == f"tap: {self.address} is {upstream}\n", first

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.said = self.process.stderr.read().decode()
        assert self.process.wait(timeout=20) == 0, self.said
        self.out.seek(0)
        self.lines = self.out.read().decode().splitlines()

    def frames(self):
        return [json.loads(line) for line in self.lines]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()
        self.out.close()


def kcat(address, *arguments, data=None, seconds=40):
    done = subprocess.run(["kcat", "-b", address, *arguments], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=seconds)
    assert done.returncode == 0, (arguments, done.stderr.decode())
    return done.stdout.decode()


def there_and_back(address, topic):
    """Produce and consume with a simple consumer and in a group."""
    words = "".join(f"word {i}\n" for i in range(1000))
    kcat(address, "-P", "-t", topic, data=words.encode())
    assert kcat(address, "-C", "-t", topic, "-e", "-q") == words
    assert kcat(address, "-G", topic + "-group", "-e", "-q", "-X", "auto.offset.reset=earliest", topic) == words


def check_all_frames(tap):
    """Every request has its answer, no frame is damaged, all that was done was seen."""
    frames = tap.frames()
    assert "0 damaged" in tap.said, tap.said
    apis = {frame["api"] for frame in frames}
    assert {"ApiVersions", "Metadata", "Produce", "Fetch", "FindCoordinator", "JoinGroup", "OffsetFetch"} <= apis, apis
    open_, answered = {}, {}
    for frame in frames:
        ends = (frame["from"], frame["to"]) if frame["type"] == "request" else (frame["to"], frame["from"])
        key = (*ends, frame["header"]["correlationId"])
        if frame["type"] == "request":
            open_[key] = frame["api"]
        else:
            assert open_.pop(key) == frame["api"], frame
            answered[ends] = key[2]
    # A client may go while its last requests on a connection wait.
    assert all(id > answered.get((client, broker), -1) for client, broker, id in open_), open_


def wait_for(condition, seconds=10):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not come to pass"
        time.sleep(0.02)


def size_of(path):
    return os.path.getsize(path)
