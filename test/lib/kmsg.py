"""Kafka's messages from their schemas: a second, independent reading of schema/messages for tests.

    body = encode("BrokerHeartbeatRequest", 2, {"BrokerId": 1, "BrokerEpoch": 6})
    answer = decode("BrokerHeartbeatResponse", 2, data)

Fields that are not given have their schema's default. Uuids are 16 bytes. Frames: Connection below.
"""
import functools
import json
import re
import socket
import struct

from dohle import ROOT

FIXED = {"int8": ">b", "int16": ">h", "int32": ">i", "int64": ">q", "uint16": ">H", "uint32": ">I", "float64": ">d"}


def within(versions, version):
    if versions in (None, "none"):
        return False
    low, sep, high = versions.partition("-")
    if versions.endswith("+"):
        return version >= int(versions[:-1])
    return int(low) <= version <= int(high if sep else low)


@functools.lru_cache(maxsize=None)
def schema(name):
    text = (ROOT / "schema/messages" / f"{name}.json").read_text()
    return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M))


def uvarint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def read_uvarint(take):
    """The number of which `take(1)` gives the bytes."""
    value, shift = 0, 0
    while True:
        byte = take(1)[0]
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value


class Form:
    """One version of one message."""

    def __init__(self, name, version):
        self.schema = schema(name)
        self.version = version
        self.flexible = within(self.schema.get("flexibleVersions"), version)
        self.common = {s["name"]: s["fields"] for s in self.schema.get("commonStructs", ())}

    def fields(self, fields):
        plain, tagged = [], []
        for field in fields:
            if within(field.get("taggedVersions"), self.version):
                tagged.append(field)
            elif within(field["versions"], self.version):
                plain.append(field)
        return plain, sorted(tagged, key=lambda f: f["tag"])

    def struct_of(self, field, kind):
        return field.get("fields") or self.common[kind]

    def default(self, field):
        kind, value = field["type"], field.get("default")
        if value == "null":
            return None
        if kind.startswith("[]"):
            return []
        if kind == "uuid":
            return bytes(16)
        if kind == "bool":
            return value in (True, "true")
        if kind in FIXED:
            return float(value or 0) if kind == "float64" else int(str(value or 0), 0)
        if kind == "string":
            return value or ""
        if kind in ("bytes", "records"):
            return b""
        return {}

    # ---- encoding

    def length(self, value, size="i"):
        if self.flexible:
            return uvarint(0 if value is None else value + 1)
        return struct.pack(">" + size, -1 if value is None else value)

    def nullable(self, field, kind):
        """A struct that may be null; of an array only the array itself may."""
        return within(field.get("nullableVersions"), self.version) and kind == field["type"]

    def put(self, field, kind, value):
        if kind.startswith("[]"):
            if value is None:
                return self.length(None)
            return self.length(len(value)) + b"".join(self.put(field, kind[2:], item) for item in value)
        if kind in FIXED:
            return struct.pack(FIXED[kind], value)
        if kind == "bool":
            return bytes([bool(value)])
        if kind == "uuid":
            return value
        if kind == "string":
            data = None if value is None else value.encode()
            return self.length(None if data is None else len(data), "h") + (data or b"")
        if kind in ("bytes", "records"):
            return self.length(None if value is None else len(value)) + (value or b"")
        if self.nullable(field, kind):
            if value is None:
                return b"\xff"
            return b"\x01" + self.body(self.struct_of(field, kind), value)
        return self.body(self.struct_of(field, kind), value)

    def body(self, fields, values):
        plain, tagged = self.fields(fields)
        known = {f["name"] for f in fields}
        assert set(values) <= known, f"no such field: {set(values) - known}"
        out = b"".join(self.put(f, f["type"], values.get(f["name"], self.default(f))) for f in plain)
        if not self.flexible:
            return out
        tags = [(f["tag"], self.put(f, f["type"], values[f["name"]])) for f in tagged
                if f["name"] in values and values[f["name"]] != self.default(f)]
        return out + uvarint(len(tags)) + b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in tags)

    # ---- decoding

    def take(self, size):
        data = self.data[self.at:self.at + size]
        assert len(data) == size, "the message ends too early"
        self.at += size
        return data

    def get_uvarint(self):
        return read_uvarint(self.take)

    def get_length(self, size="i"):
        if self.flexible:
            value = self.get_uvarint()
            return None if value == 0 else value - 1
        (value,) = struct.unpack(">" + size, self.take(struct.calcsize(size)))
        return None if value < 0 else value

    def get(self, field, kind):
        if kind.startswith("[]"):
            count = self.get_length()
            return None if count is None else [self.get(field, kind[2:]) for _ in range(count)]
        if kind in FIXED:
            return struct.unpack(FIXED[kind], self.take(struct.calcsize(FIXED[kind])))[0]
        if kind == "bool":
            return self.take(1) != b"\0"
        if kind == "uuid":
            return self.take(16)
        if kind in ("string", "bytes", "records"):
            size = self.get_length("h" if kind == "string" else "i")
            data = None if size is None else self.take(size)
            return data.decode() if kind == "string" and data is not None else data
        if self.nullable(field, kind) and self.take(1) == b"\xff":
            return None
        return self.get_body(self.struct_of(field, kind))

    def get_body(self, fields):
        plain, tagged = self.fields(fields)
        out = {f["name"]: self.get(f, f["type"]) for f in plain}
        for field in tagged:
            kind = field["type"]
            empty = kind not in FIXED and kind not in ("bool", "uuid", "string", "bytes", "records") and kind[:2] != "[]"
            out[field["name"]] = None if empty else self.default(field)
        if self.flexible:
            by_tag = {f["tag"]: f for f in tagged}
            for _ in range(self.get_uvarint()):
                tag, size = self.get_uvarint(), self.get_uvarint()
                end = self.at + size
                if tag in by_tag:
                    out[by_tag[tag]["name"]] = self.get(by_tag[tag], by_tag[tag]["type"])
                self.at = end
        return out


def encode(name, version, values):
    form = Form(name, version)
    return form.body(form.schema["fields"], values)


def decode(name, version, data):
    form = Form(name, version)
    form.data, form.at = data, 0
    return form.get_body(form.schema["fields"])


@functools.lru_cache(maxsize=None)
def keys():
    out = {}
    for path in (ROOT / "schema/messages").glob("*Request.json"):
        key = schema(path.stem).get("apiKey")
        if key is not None:
            out[path.stem.removesuffix("Request")] = key
    return out


def request_bytes(api, version, values, correlation=1, client="test"):
    """Header and body of a request, without its length."""
    flexible = within(schema(api + "Request").get("flexibleVersions"), version)
    head = struct.pack(">hhih", keys()[api], version, correlation, len(client)) + client.encode()
    return head + (b"\0" if flexible else b"") + encode(api + "Request", version, values)


def response_of(api, version, data):
    """Correlation id and body of a response, without its length."""
    flexible = within(schema(api + "Request").get("flexibleVersions"), version) and api != "ApiVersions"
    return struct.unpack(">i", data[:4])[0], decode(api + "Response", version, data[5 if flexible else 4:])


class Connection:
    """One connection that sends requests and reads their answers, in order."""

    def __init__(self, port, seconds=20):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sent = 0
        self.waiting = []

    def send(self, api, version, values):
        self.sent += 1
        data = request_bytes(api, version, values, self.sent)
        self.socket.sendall(struct.pack(">i", len(data)) + data)
        self.waiting.append((self.sent, api, version))

    def exactly(self, size):
        got = b""
        while len(got) < size:
            piece = self.socket.recv(size - len(got))
            if not piece:
                raise EOFError("the server closed the connection")
            got += piece
        return got

    def receive(self):
        correlation, api, version = self.waiting.pop(0)
        (size,) = struct.unpack(">i", self.exactly(4))
        got, body = response_of(api, version, self.exactly(size))
        assert got == correlation, f"answer {got} to request {correlation}"
        return body

    def ask(self, api, version, values):
        self.send(api, version, values)
        return self.receive()

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()
