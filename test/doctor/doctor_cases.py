"""What both doctor suites use: run it, read its JSON, hold its words against docs/doctor.md."""
import json
import re
import socket
import ssl
import subprocess
import tempfile
import threading
from pathlib import Path

from dohle import DOHLE, ROOT

DOC = ROOT / "docs/doctor.md"


def doctor(target, *more):
    done = subprocess.run([DOHLE, "doctor", target, "--json", "--timeout", "3", *more], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60)
    said = json.loads(done.stdout)
    assert (done.returncode == 0) == said["ok"], (done.returncode, said)
    said["hops"] = [(step["hop"], step["state"]) for step in said["steps"]]
    return said


def same(text):
    """Text without what differs from run to run: numbers of ports, spaces, marks of a list."""
    return re.sub(r"\d{4,}", "N", re.sub(r"[\s>]+", " ", text))


def expect(said, hop, kind, ok=False):
    """The hop and kind are these, and the cause and each change stand in the guide word for word."""
    assert (said.get("hop"), said.get("kind"), said["ok"]) == (hop, kind, ok), said
    guide = same(DOC.read_text())
    for text in [said["cause"], *said["changes"]]:
        assert same(text) in guide, f"docs/doctor.md does not have: {text}"


class Server:
    """A socket that takes connections and treats each with a function."""

    def __init__(self, treat, family=socket.AF_INET):
        self.socket = socket.socket(family)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(16)
        self.port = self.socket.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.treat = treat
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                one, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.handle, args=(one,), daemon=True).start()

    def handle(self, one):
        try:
            self.treat(one)
        except OSError:
            pass
        finally:
            one.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.socket.close()


def tls_server():
    """A TLS listener with a certificate of its own; it serves nothing behind it."""
    folder = tempfile.TemporaryDirectory()
    key, certificate = Path(folder.name) / "key.pem", Path(folder.name) / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-subj", "/CN=localhost", "-days", "2", "-keyout", key, "-out", certificate],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def treat(one):
        with context.wrap_socket(one, server_side=True) as wrapped:
            wrapped.recv(1)
    return Server(treat), folder
