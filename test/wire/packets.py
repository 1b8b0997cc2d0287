"""Captures for the tests: reading, writing and disturbing pcap files, and TCP packets from bytes."""
import struct

HEAD = struct.Struct("<IHHiIII")
PACKET = struct.Struct("<IIII")


def read(data):
    """(file header, packets) of a classic little-endian pcap; a packet is (seconds, microseconds, bytes)."""
    found, at = [], HEAD.size
    while at < len(data):
        seconds, micros, size, _ = PACKET.unpack_from(data, at)
        at += PACKET.size
        found.append((seconds, micros, data[at:at + size]))
        at += size
    return data[:HEAD.size], found


def write(head, packets):
    return head + b"".join(PACKET.pack(s, u, len(p), len(p)) + p for s, u, p in packets)


RAW = HEAD.pack(0xA1B2C3D4, 2, 4, 0, 0, 262144, 101)  # DLT_RAW: packets begin with IP.


def ipv4(source, target, ports, sequence, ack, flags, data=b""):
    """One TCP packet; addresses are the last byte of 127.0.0.x."""
    tcp = struct.pack(">HHIIBBHHH", *ports, sequence & 0xFFFFFFFF, ack & 0xFFFFFFFF, 0x50, flags, 65535, 0, 0) + data
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0,
                     bytes([127, 0, 0, source]), bytes([127, 0, 0, target]))
    total = sum(struct.unpack(">10H", ip))
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    return ip[:10] + struct.pack(">H", checksum) + ip[12:] + tcp


def connection(port, exchanges, server_port=9092, start=0xFFFFFF00):
    """The packets of one connection: handshake, then (request, response) byte strings in turn. Its sequence
    numbers wrap around early."""
    ports, back = (port, server_port), (server_port, port)
    out = [ipv4(1, 2, ports, start, 0, 2), ipv4(2, 1, back, start, start + 1, 18), ipv4(1, 2, ports, start + 1, start + 1, 16)]
    mine = theirs = start + 1
    for request, response in exchanges:
        out.append(ipv4(1, 2, ports, mine, theirs, 24, request))
        mine += len(request)
        if response:
            out.append(ipv4(2, 1, back, theirs, mine, 24, response))
            theirs += len(response)
    out += [ipv4(1, 2, ports, mine, theirs, 17), ipv4(2, 1, back, theirs, mine + 1, 17)]
    return out


def timed(packets):
    return [(1700000000 + i // 1000, i % 1000 * 1000, p) for i, p in enumerate(packets)]
