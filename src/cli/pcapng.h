/* pcapng.h - captures written by ourselves, for `wire tap --pcapng` and `start --tap`: TCP segments
 * as packets of raw IP, as tshark, Wireshark and `wire decode --pcap` read them.
 *
 *   section header    0x0a0d0d0a, length, 0x1a2b3c4d, version 1.0, section length -1, length
 *   interface         1, length, link type 101 (raw IP), 0, snap length 0, length
 *   enhanced packet   6, length, interface 0, time in us (high, low half), bytes captured,
 *                     bytes originally, the packet padded to four bytes, length
 *
 * Host byte order (the magic tells it). A packet is an IPv4 or IPv6 header and a TCP header, made
 * up from addresses, ports and sequence numbers; checksums are 0, which means *not computed*. Each
 * block is one write to a file opened for appending: threads need no lock, and what is in the file
 * after a crash is whole. */
#pragma once

#include "cli/wire_stream.h"

#define PCAPNG_DATA_MAX 60000u /* Of one packet; longer data becomes several. */

/* A new file with its two first blocks (an old one is replaced). The descriptor or -errno. */
MUST_USE int pcapng_create(const char *path);

/* Append the segment, as several packets if it is long. 0 or -errno. */
MUST_USE int pcapng_append(int fd, const struct stream_segment *segment);

/* One connection whose segments are made up: the next sequence number of each side. */
struct pcapng_flow {
    struct stream_endpoint client, server;
    uint32_t client_next, server_next;
};

/* What happens on it: the handshake, data of one side, the end. Visits one to three segments. */
typedef void (*pcapng_visit)(void *context, const struct stream_segment *segment);
void pcapng_open(struct pcapng_flow *flow, int64_t time_us, pcapng_visit visit, void *context);
void pcapng_close(struct pcapng_flow *flow, int64_t time_us, pcapng_visit visit, void *context);

/* Data from the client, or from the server: the segment, whose sequence numbers are then used. */
struct stream_segment pcapng_data(struct pcapng_flow *flow,
                                  bool from_client,
                                  struct view data,
                                  int64_t time_us);
