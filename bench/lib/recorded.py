"""A frame as a real client sends it: kcat (librdkafka) produces to a server through a proxy that keeps what passes.

What is sent again is the largest Produce request for one partition, byte for byte but for its correlation id: the base offset in it
is 0 for every producer, its CRC stays, and without idempotence there is no sequence that could be a duplicate.
"""
import contextlib
import socket
import struct
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from dohle import Node, free_port

TOPIC = "recorded"
RECORDS = 5000
PRODUCE = 0
FLEXIBLE = 9  # Produce requests from this version on have compact fields: none of librdkafka's is, as yet.


@dataclass
class Frame:
    path: Path
    records: int
    bytes: int
    version: int


def pump(source, sink, keep):
    """Everything from one socket to the other; `keep` gets it too."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            keep.extend(data)
            sink.sendall(data)
    for each in (source, sink):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


class Proxy:
    """Keeps what clients send to `port`."""

    def __init__(self, port, listen):
        self.port, self.streams, self.sockets, self.threads = port, [], [], []
        self.listener = socket.create_server(("127.0.0.1", listen))
        self.accepting = threading.Thread(target=self.accept, daemon=True)
        self.accepting.start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                server = socket.create_connection(("127.0.0.1", self.port))
                sent = bytearray()
                self.streams.append(sent)
                self.sockets += [client, server]
                for pair in ((client, server, sent), (server, client, bytearray())):
                    self.threads.append(threading.Thread(target=pump, args=pair, daemon=True))
                    self.threads[-1].start()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.accepting.join(10)
        for each in self.sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(10)
        for each in self.sockets:
            each.close()


def frames_of(stream):
    at = 0
    while at + 4 <= len(stream):
        size = struct.unpack_from(">i", stream, at)[0]
        if at + 4 + size > len(stream):
            return
        yield bytes(stream[at:at + 4 + size])
        at += 4 + size


def records_of(frame):
    """Records of the one batch of a Produce request for one partition; None: it is another request."""
    key, version = struct.unpack_from(">hh", frame, 4)
    if key != PRODUCE or version >= FLEXIBLE:
        return None
    at = 12
    for _ in range(2):  # Client id, transactional id.
        length = struct.unpack_from(">h", frame, at)[0]
        at += 2 + max(length, 0)
    at += 2 + 4  # Acks, timeout.
    topics, length = struct.unpack_from(">ih", frame, at)
    at += 4 + 2 + length
    partitions, _, size = struct.unpack_from(">iii", frame, at)
    at += 12
    if topics != 1 or partitions != 1 or at + size != len(frame):
        return None
    batch = struct.unpack_from(">i", frame, at + 8)[0]
    return struct.unpack_from(">i", frame, at + 57)[0] if batch + 12 == size else None


def record(path):
    """The frame, in `path`. Takes a second."""
    port, listen = free_port(), free_port()
    settings = {"listeners": f"PLAINTEXT://127.0.0.1:{port}", "advertised.listeners": f"PLAINTEXT://127.0.0.1:{listen}"}
    line = ("0123456789abcdef" * 7)[:99] + "\n"
    with Node(settings):
        proxy = Proxy(port, listen)
        try:
            subprocess.run(["kcat", "-b", f"127.0.0.1:{listen}", "-P", "-t", TOPIC, "-X", "acks=all", "-X", "linger.ms=500",
                            "-X", "batch.size=16384"], input=(line * RECORDS).encode(), stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, timeout=60, check=True)
        finally:
            proxy.close()
    frames = [frame for stream in proxy.streams for frame in frames_of(stream) if records_of(frame)]
    largest = max(frames, key=len)
    path.write_bytes(largest)
    return Frame(path, records_of(largest), len(largest), struct.unpack_from(">h", largest, 6)[0])
