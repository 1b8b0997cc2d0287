"""Records of a metadata log from the bytes of a Fetch or of a file: batches of magic 2, uncompressed."""
import functools
import struct

import kmsg


@functools.lru_cache(maxsize=None)
def names():
    out = {}
    for path in (kmsg.ROOT / "schema/messages").glob("*Record.json"):
        schema = kmsg.schema(path.stem)
        if schema["type"] == "metadata" and not path.stem.startswith("Remote"):  # Tiered storage has keys of its own.
            out[schema["apiKey"]] = path.stem
    return out


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        self.at += size
        return self.data[self.at - size:self.at]

    def unsigned(self):
        return kmsg.read_uvarint(self.take)

    def signed(self):
        value = self.unsigned()
        return value >> 1 ^ -(value & 1)

    def blob(self):
        size = self.signed()
        return None if size < 0 else self.take(size)


def records(data):
    """(offset, name, version, fields) of each record; control records as (offset, "control", type, bytes)."""
    out, at = [], 0
    while at + 61 <= len(data):
        base, size = struct.unpack(">qi", data[at:at + 12])
        (attributes,) = struct.unpack(">h", data[at + 21:at + 23])
        (count,) = struct.unpack(">i", data[at + 57:at + 61])
        assert data[at + 16] == 2 and attributes & 7 == 0, "not a plain batch of magic 2"
        reader = Reader(data[at + 61:at + 12 + size])
        for _ in range(count):
            body = Reader(reader.take(reader.signed()))
            body.take(1)
            body.signed()
            offset = base + body.signed()
            key, value = body.blob(), body.blob()
            if attributes & 32:
                out.append((offset, "control", struct.unpack(">hh", key)[1], value))
                continue
            frame = Reader(value)
            assert key is None and frame.unsigned() == 1, "not framed as a metadata record"
            name, version = names()[frame.unsigned()], frame.unsigned()
            out.append((offset, name, version, kmsg.decode(name, version, value[frame.at:])))
        at += 12 + size
    return out
