"""Requests by name over a raw socket: encoded and decoded by `dohle wire`, so a test says only what it means.

    with Caller(node, client="me") as caller:
        caller.call("Heartbeat", 4, {"groupId": "g", ...})["errorCode"]
"""
import json
import socket
import subprocess

from dohle import DOHLE


def encode(api, version, body, client="test", correlation=1):
    return subprocess.run([DOHLE, "wire", "encode", api + "Request", "--version", str(version), "--client", client,
                           "--correlation", str(correlation), "--format", "raw"], check=True,
                          input=json.dumps(body).encode(), stdout=subprocess.PIPE).stdout


def decode(api, version, frame):
    done = subprocess.run([DOHLE, "wire", "decode", "--response", api, "--version", str(version), "--json", "-"],
                          input=frame, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["body"]


class Caller:
    """One connection of one client id."""

    def __init__(self, node, client="test", seconds=20, source="127.0.0.1"):
        self.client = client
        self.socket = socket.create_connection(("127.0.0.1", node.port), timeout=seconds, source_address=(source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, api, version, body):
        self.socket.sendall(encode(api, version, body, self.client))

    def receive(self, api, version):
        frame = b""
        while len(frame) < 4 or len(frame) < 4 + int.from_bytes(frame[:4], "big"):
            part = self.socket.recv(1 << 20)
            if not part:
                raise EOFError("the connection was closed")
            frame += part
        return decode(api, version, frame)

    def call(self, api, version, body):
        self.send(api, version, body)
        return self.receive(api, version)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()
