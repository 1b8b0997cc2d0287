"""Just enough of Kafka's protocol to speak raw bytes to a server: headers, three requests, replies."""
import socket
import struct


def frame(payload):
    return struct.pack(">i", len(payload)) + payload


def header(key, version, correlation, client=b"raw", flexible=False):
    name = struct.pack(">h", -1) if client is None else struct.pack(">h", len(client)) + client
    return struct.pack(">hhi", key, version, correlation) + name + (b"\0" if flexible else b"")


def compact(text):
    return bytes([len(text) + 1]) + text


def api_versions(version, correlation, name=b"raw", software=b"1.0", cluster=None, node=-1):
    """ApiVersions; version 3 and above are flexible."""
    body = b""
    if 3 <= version <= 5:
        body = compact(name) + compact(software)
        if version == 5:
            body += (b"\0" if cluster is None else compact(cluster)) + struct.pack(">i", node)
        body += b"\0"
    return frame(header(18, version, correlation, flexible=version >= 3) + body)


def metadata(correlation, version=1, topics=None):
    body = struct.pack(">i", -1 if topics is None else len(topics))
    for topic in topics or ():
        body += struct.pack(">h", len(topic)) + topic
    return frame(header(3, version, correlation) + body)


def fetch(correlation, topic, offset=0, wait_ms=500, min_bytes=1, limit=1 << 20):
    """Fetch version 4 of partition 0."""
    body = struct.pack(">iiiib", -1, wait_ms, min_bytes, limit, 0)
    body += struct.pack(">i", 1) + struct.pack(">h", len(topic)) + topic
    body += struct.pack(">iiqi", 1, 0, offset, limit)
    return frame(header(1, 4, correlation) + body)


class Raw:
    """One connection that sends and receives bytes."""

    def __init__(self, port, seconds=10):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data):
        self.socket.sendall(data)

    def exactly(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(min(size - len(data), 1 << 20))
            if not part:
                raise EOFError(f"closed after {len(data)} of {size} bytes")
            data += part
        return data

    def reply(self):
        """The next reply: correlation id and what follows it."""
        (size,) = struct.unpack(">i", self.exactly(4))
        data = self.exactly(size)
        return struct.unpack(">i", data[:4])[0], data[4:]

    def closed(self, seconds=5):
        """Does the server close without a byte?"""
        self.socket.settimeout(seconds)
        try:
            data = self.socket.recv(1)
        except ConnectionResetError:
            return True
        except socket.timeout:
            return False
        assert data == b"", f"a byte came: {data!r}"
        return True

    def silent(self, seconds=0.2):
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(1, socket.MSG_PEEK) is None
        except socket.timeout:
            return True
        finally:
            self.socket.settimeout(10)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()
