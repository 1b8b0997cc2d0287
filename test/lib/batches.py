"""Batches of magic 2, made by hand."""
import struct


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def batch_of(record):
    """A batch of one record, given as its bytes (below 64) without the length before them."""
    body = struct.pack(">hiqqqhii", 0, 0, 1_700_000_000_000, 1_700_000_000_000, -1, -1, -1, 1) + bytes([2 * len(record)]) + record
    return struct.pack(">qiibI", 0, 9 + len(body), -1, 2, crc32c(body)) + body


def batch(value):
    """One record without a key, short enough for lengths of one byte."""
    return batch_of(bytes([0, 0, 0, 1, 2 * len(value)]) + value + b"\0")
