"""A relay before a node whose coordinator is slow to load: it answers the first questions of each kind itself, with Kafka's
errors for that, and hands on the rest."""
import json
import socket
import subprocess
import threading

from dohle import DOHLE

LOADING, NOT_AVAILABLE = 14, 15
TIMES = 2  # Of each kind are refused.

ANSWERS = {
    10: ("FindCoordinator", {"errorCode": NOT_AVAILABLE, "nodeId": -1, "host": "", "port": -1}),
    16: ("ListGroups", {"errorCode": LOADING, "groups": []}),
    15: ("DescribeGroups", {"groups": [{"errorCode": LOADING, "groupId": "g", "groupState": "", "protocolType": "",
                                        "protocolData": "", "members": []}]}),
    9: ("OffsetFetch", {"groups": [{"groupId": "g", "topics": [], "errorCode": LOADING}]}),
    8: ("OffsetCommit", {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": LOADING}]}]}),
    42: ("DeleteGroups", {"results": [{"groupId": "g", "errorCode": LOADING}]}),
}


def answer(key, version, correlation):
    name, body = ANSWERS[key]
    return subprocess.run([DOHLE, "wire", "encode", name + "Response", "--version", str(version), "--correlation",
                           str(correlation), "--format", "raw"], check=True, input=json.dumps(body).encode(),
                          stdout=subprocess.PIPE).stdout


class Relay:
    """`port` is to be advertised by the node; `node` is set when it runs."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.node, self.refused = None, {}
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        """One question at a time, as the commands ask them."""
        with client, socket.create_connection(("127.0.0.1", self.node.port)) as server:
            questions, answers = client.makefile("rb"), server.makefile("rb")
            while head := questions.read(4):
                frame = questions.read(int.from_bytes(head, "big"))
                key, version, correlation = (int.from_bytes(frame[a:b], "big") for a, b in ((0, 2), (2, 4), (4, 8)))
                if key in ANSWERS and self.refused.setdefault(key, 0) < TIMES:
                    self.refused[key] += 1
                    client.sendall(answer(key, version, correlation))
                    continue
                server.sendall(head + frame)
                size = answers.read(4)
                client.sendall(size + answers.read(int.from_bytes(size, "big")))

    def close(self):
        self.listener.close()
