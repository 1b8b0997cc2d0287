/* pcapng.c - see pcapng.h. */
#include "cli/pcapng.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"

enum { BLOCK_HEAD = 28, IPV4_HEAD = 20, IPV6_HEAD = 40, TCP_HEAD = 20 };
enum { FLAG_FIN = 1, FLAG_SYN = 2, FLAG_PUSH = 8, FLAG_ACK = 16 };

#define LINK_RAW_IP 101

/* ---- blocks ---------------------------------------------------------------------------------- */

static uint8_t *put_u32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, bytes, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return -errno;
        bytes += written;
        size -= (size_t)written;
    }
    return 0;
}

int pcapng_create(const char *path)
{
    uint8_t head[48];
    uint8_t *at = head;
    at = put_u32(at, 0x0a0d0d0a);
    at = put_u32(at, 28);
    at = put_u32(at, 0x1a2b3c4d);
    at = put_u32(at, 1); /* Version 1.0, two halves. */
    at = put_u32(at, UINT32_MAX);
    at = put_u32(at, UINT32_MAX);
    at = put_u32(at, 28);
    at = put_u32(at, 1);
    at = put_u32(at, 20);
    at = put_u32(at, LINK_RAW_IP);
    at = put_u32(at, 0);
    at = put_u32(at, 20);
    assert(at == head + sizeof(head));
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) return -errno;
    int result = write_all(fd, head, sizeof(head));
    if (result == 0) return fd;
    close(fd);
    return result;
}

/* ---- headers --------------------------------------------------------------------------------- */

static uint8_t *put_ip(uint8_t *at, const struct stream_segment *segment)
{
    uint16_t tcp = (uint16_t)(TCP_HEAD + segment->data.size);
    if (segment->from.family == AF_INET6) {
        memset(at, 0, IPV6_HEAD);
        at[0] = 0x60;
        store_be16(at + 4, tcp);
        at[6] = 6;
        at[7] = 64;
        memcpy(at + 8, segment->from.address, 16);
        memcpy(at + 24, segment->to.address, 16);
        return at + IPV6_HEAD;
    }
    memset(at, 0, IPV4_HEAD);
    at[0] = 0x45;
    store_be16(at + 2, (uint16_t)(IPV4_HEAD + tcp));
    at[6] = 0x40; /* Not to be cut in pieces. */
    at[8] = 64;
    at[9] = 6;
    memcpy(at + 12, segment->from.address, 4);
    memcpy(at + 16, segment->to.address, 4);
    return at + IPV4_HEAD;
}

static uint8_t *put_tcp(uint8_t *at, const struct stream_segment *segment)
{
    uint8_t flags =
        (uint8_t)((segment->syn ? FLAG_SYN : 0) | (segment->fin ? FLAG_FIN : 0) |
                  (segment->ack ? FLAG_ACK : 0) | (segment->data.size > 0 ? FLAG_PUSH : 0));
    memset(at, 0, TCP_HEAD);
    store_be16(at, segment->from.port);
    store_be16(at + 2, segment->to.port);
    store_be32(at + 4, segment->sequence);
    store_be32(at + 8, segment->acknowledged);
    at[12] = (TCP_HEAD / 4) << 4;
    at[13] = flags;
    store_be16(at + 14, UINT16_MAX); /* Window. */
    return at + TCP_HEAD;
}

static int append_one(int fd, const struct stream_segment *segment)
{
    uint8_t block[BLOCK_HEAD + IPV6_HEAD + TCP_HEAD + PCAPNG_DATA_MAX + 8];
    uint8_t *packet = block + BLOCK_HEAD;

    uint8_t *at = put_tcp(put_ip(packet, segment), segment);
    if (segment->data.size > 0) memcpy(at, segment->data.data, segment->data.size);
    at += segment->data.size;
    uint32_t size = (uint32_t)(at - packet);
    while ((at - packet) % 4 != 0)
        *at++ = 0;
    uint32_t whole = (uint32_t)(at - block) + 4;
    put_u32(at, whole);
    uint64_t time_us = (uint64_t)segment->time_us;
    at = put_u32(block, 6);
    at = put_u32(at, whole);
    at = put_u32(at, 0);
    at = put_u32(at, (uint32_t)(time_us >> 32));
    at = put_u32(at, (uint32_t)time_us);
    at = put_u32(at, size);
    at = put_u32(at, size);
    assert(at == packet);
    return write_all(fd, block, whole);
}

int pcapng_append(int fd, const struct stream_segment *segment)
{
    struct stream_segment part = *segment;
    struct view left = segment->data;
    int result;
    do {
        part.data = view_of(left.data, MIN(left.size, PCAPNG_DATA_MAX));
        if (left.size > 0) left = view_of(left.data + part.data.size, left.size - part.data.size);
        result = append_one(fd, &part);
        part.sequence += part.data.size;
    } while (result == 0 && left.size > 0);
    return result;
}

/* ---- made-up connections --------------------------------------------------------------------- */

static struct stream_segment segment_of(const struct pcapng_flow *flow,
                                        bool from_client,
                                        int64_t time_us)
{
    return (struct stream_segment){
        .from = from_client ? flow->client : flow->server,
        .to = from_client ? flow->server : flow->client,
        .time_us = time_us,
        .sequence = from_client ? flow->client_next : flow->server_next,
        .acknowledged = from_client ? flow->server_next : flow->client_next,
        .ack = true,
    };
}

void pcapng_open(struct pcapng_flow *flow, int64_t time_us, pcapng_visit visit, void *context)
{
    flow->client_next = flow->server_next = 0;
    struct stream_segment segment = segment_of(flow, true, time_us);
    segment.syn = true;
    segment.ack = false;
    visit(context, &segment);
    flow->client_next++;
    segment = segment_of(flow, false, time_us);
    segment.syn = true;
    visit(context, &segment);
    flow->server_next++;
    segment = segment_of(flow, true, time_us);
    visit(context, &segment);
}

void pcapng_close(struct pcapng_flow *flow, int64_t time_us, pcapng_visit visit, void *context)
{
    struct stream_segment segment = segment_of(flow, true, time_us);
    segment.fin = true;
    visit(context, &segment);
    flow->client_next++;
    segment = segment_of(flow, false, time_us);
    segment.fin = true;
    visit(context, &segment);
    flow->server_next++;
}

struct stream_segment pcapng_data(struct pcapng_flow *flow,
                                  bool from_client,
                                  struct view data,
                                  int64_t time_us)
{
    struct stream_segment segment = segment_of(flow, from_client, time_us);
    segment.data = data;
    if (from_client) {
        flow->client_next += data.size;
    } else {
        flow->server_next += data.size;
    }
    return segment;
}
