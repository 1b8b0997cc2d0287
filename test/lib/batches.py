"""Record batches of magic 2 made by hand, right ones and wrong ones, and message sets of the formats before."""
import gzip
import struct
import zlib

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def varint(value):
    value = (value << 1) ^ (value >> 63)
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def sized(data):
    return varint(-1) if data is None else varint(len(data)) + data


def record(value=b"v", key=None, offset=0, ms=0, headers=(), attributes=0, extra=b"", length=None):
    body = bytes([attributes]) + varint(ms) + varint(offset) + sized(key) + sized(value) + varint(len(headers))
    body += b"".join(sized(name) + sized(data) for name, data in headers) + extra
    return varint(len(body) if length is None else length) + body


def batch(records=None, values=(b"v",), base=0, epoch=-1, magic=2, attributes=0, last=None, first_ms=1700000000000, max_ms=None, pid=-1, producer_epoch=-1,
          sequence=-1, count=None, crc=None, size=None, tail=b"", compress=None, epoch_bytes=None):
    if records is None:
        records = [record(value, offset=i) for i, value in enumerate(values)]
    body = b"".join(records)
    if compress == "gzip":
        body, attributes = gzip.compress(body, mtime=0), attributes | 1
    elif compress == "zstd":  # One block that is stored as it is.
        assert len(body) < 256
        body, attributes = b"\x28\xb5\x2f\xfd\x20" + bytes([len(body)]) + struct.pack("<I", len(body) << 3 | 1)[:3] + body, attributes | 4
    elif compress == "snappy":  # One literal, without the framing of Java's library.
        assert 0 < len(body) <= 60
        body, attributes = varint(len(body)) + bytes([len(body) - 1 << 2]) + body, attributes | 2
    elif compress is not None:
        body = compress
    last = len(records) - 1 if last is None else last
    count = len(records) if count is None else count
    after = struct.pack(">hiqqqhii", attributes, last, first_ms, first_ms if max_ms is None else max_ms, pid, producer_epoch, sequence, count) + body + tail
    crc = crc32c(after) if crc is None else crc
    size = 9 + len(after) if size is None else size
    return struct.pack(">qiibI", base, size, epoch, magic, crc) + after


def message(value=b"v", key=None, magic=1, ms=1700000000000, attributes=0, offset=0, crc=None):
    """One message of magic 0 or 1."""
    def blob(data):
        return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data
    body = bytes([magic, attributes]) + (struct.pack(">q", ms) if magic == 1 else b"") + blob(key) + blob(value)
    crc = zlib.crc32(body) if crc is None else crc
    return struct.pack(">qi", offset, 4 + len(body)) + struct.pack(">I", crc) + body
