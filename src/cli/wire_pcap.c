/* wire_pcap.c - packets of a capture down to their TCP segments. See wire_pcap.h.
 *
 * Links: Ethernet (with VLAN tags), BSD loopback, raw IP, Linux cooked (v1, v2). IPv4 fragments
 * are left out and counted; IPv6 extension headers are skipped. */
#include "cli/wire_pcap.h"
#include "base/bytes.h"
#include "cli/load.h"
#include "cli/wire_stream_print.h"

#include <pcap/pcap.h>

#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

enum {
    ETHER_IPV4 = 0x0800,
    ETHER_IPV6 = 0x86dd,
    ETHER_VLAN = 0x8100,
    ETHER_QINQ = 0x88a8,
    IP_TCP = 6
};

/* What is used of libpcap, loaded by the first capture. */
struct pcap_library {
    __typeof__(&pcap_open_offline) open;
    __typeof__(&pcap_close) close;
    __typeof__(&pcap_datalink) link;
    __typeof__(&pcap_datalink_val_to_name) link_name;
    __typeof__(&pcap_next_ex) next;
    __typeof__(&pcap_geterr) error;
};

struct capture {
    struct pcap_library library;
    struct wire_stream_printer shown;
    struct streams streams;
    uint64_t fragments;
    uint16_t port;
};

/* ---- packets --------------------------------------------------------------------------------- */

/* One TCP segment; `in` holds it whole or as far as it was captured. */
static void take_tcp(struct capture *capture, struct reader *in, struct stream_segment *s)
{
    s->from.port = reader_be16(in);
    s->to.port = reader_be16(in);
    s->sequence = reader_be32(in);
    s->acknowledged = reader_be32(in);
    uint8_t words = reader_u8(in) >> 4;
    uint8_t flags = reader_u8(in);
    (void)reader_take(in, 6); /* Window, checksum, urgent pointer. */
    if (words > 5) (void)reader_take(in, 4u * (words - 5u));
    if (in->fault != READER_OK || words < 5) return;
    if (capture->port != 0 && s->from.port != capture->port && s->to.port != capture->port) return;
    s->fin = (flags & 1) != 0;
    s->syn = (flags & 2) != 0;
    s->rst = (flags & 4) != 0;
    s->ack = (flags & 16) != 0;
    s->data = view_of(in->at, (uint32_t)reader_left(in));
    if (!streams_take(&capture->streams, s) && capture->streams.failed)
        capture->shown.code =
            (enum cli_exit)cli_fail(capture->shown.printer->cli, CLI_FAILED, "out of memory");
}

/* Leave `size` bytes in `in`, if there are more: what follows a packet is padding. */
static void cut(struct reader *in, size_t size)
{
    if (in->fault == READER_OK && size < reader_left(in)) in->end = in->at + size;
}

static void take_ipv4(struct capture *capture, struct reader *in, struct stream_segment *s)
{
    const uint8_t *head = reader_take(in, 20);
    if (head == NULL || head[0] >> 4 != 4) return;
    size_t head_bytes = 4u * (head[0] & 15u), total = load_be16(head + 2);
    uint16_t fragment = load_be16(head + 6);
    if (head_bytes < 20 || head[9] != IP_TCP) return;
    if ((fragment & 0x3fff) != 0) {
        capture->fragments++;
        return;
    }
    (void)reader_take(in, head_bytes - 20);
    /* Total length 0: the sender's card was to cut it. */
    if (total >= head_bytes) cut(in, total - head_bytes);
    memcpy(s->from.address, head + 12, 4);
    memcpy(s->to.address, head + 16, 4);
    s->from.family = s->to.family = AF_INET;
    take_tcp(capture, in, s);
}

static void take_ipv6(struct capture *capture, struct reader *in, struct stream_segment *s)
{
    const uint8_t *head = reader_take(in, 40);
    if (head == NULL || head[0] >> 4 != 6) return;
    uint16_t payload = load_be16(head + 4);
    uint8_t next = head[6];
    if (payload > 0) cut(in, payload);
    memcpy(s->from.address, head + 8, 16);
    memcpy(s->to.address, head + 24, 16);
    s->from.family = s->to.family = AF_INET6;
    /* Hop-by-hop, routing and destination options have their length; a fragment is left out. */
    while (next == 0 || next == 43 || next == 60) {
        const uint8_t *extension = reader_take(in, 8);
        if (extension == NULL) return;
        next = extension[0];
        (void)reader_take(in, 8u * extension[1]);
    }
    if (next == 44) capture->fragments++;
    if (next == IP_TCP) take_tcp(capture, in, s);
}

static void take_ip(struct capture *capture, struct reader *in, int64_t time_us)
{
    struct stream_segment segment = {.time_us = time_us};
    if (reader_left(in) == 0) return;
    if (in->at[0] >> 4 == 4) {
        take_ipv4(capture, in, &segment);
    } else {
        take_ipv6(capture, in, &segment);
    }
}

/* Step over the link's header. False: no IP packet. */
static bool skip_link(struct reader *in, int link)
{
    uint16_t type = ETHER_IPV4;

    switch (link) {
    case DLT_EN10MB:
        (void)reader_take(in, 12);
        type = reader_be16(in);
        while (type == ETHER_VLAN || type == ETHER_QINQ) {
            (void)reader_be16(in);
            type = reader_be16(in);
        }
        break;
    case DLT_LINUX_SLL:
        (void)reader_take(in, 14);
        type = reader_be16(in);
        break;
    case DLT_LINUX_SLL2:
        type = reader_be16(in);
        (void)reader_take(in, 18);
        break;
    case DLT_NULL:
    case DLT_LOOP: (void)reader_take(in, 4); break;
    case DLT_RAW:
    case DLT_IPV4:
    case DLT_IPV6: break;
    default: return false;
    }
    return in->fault == READER_OK && (type == ETHER_IPV4 || type == ETHER_IPV6);
}

static bool is_known_link(int link)
{
    static const int links[] = {DLT_EN10MB, DLT_LINUX_SLL, DLT_LINUX_SLL2, DLT_NULL,
                                DLT_LOOP,   DLT_RAW,       DLT_IPV4,       DLT_IPV6};
    for (size_t i = 0; i < ARRAY_SIZE(links); i++)
        if (links[i] == link) return true;
    return false;
}

static void take_packets(struct capture *capture, pcap_t *pcap, const char *path)
{
    struct pcap_pkthdr *header;
    const u_char *bytes;
    int link = capture->library.link(pcap);
    int got;

    while ((got = capture->library.next(pcap, &header, &bytes)) == 1 && !capture->streams.stopped) {
        struct reader in = reader_of(view_of(bytes, header->caplen));
        int64_t time_us = (int64_t)header->ts.tv_sec * 1000000 + header->ts.tv_usec;
        if (skip_link(&in, link)) take_ip(capture, &in, time_us);
    }
    if (got == PCAP_ERROR)
        wire_print_damage(capture->shown.printer, path, "the capture ends in the middle: %s",
                          capture->library.error(pcap));
}

static void summary(const struct capture *capture)
{
    const struct streams *streams = &capture->streams;
    FILE *errors = capture->shown.printer->cli->errors;

    fprintf(errors, "%" PRIu64 " frames on %" PRIu64 " connections",
            capture->shown.printer->frame_count, streams->connection_count);
    if (streams->encrypted_count > 0)
        fprintf(errors, ", %" PRIu64 " speak TLS", streams->encrypted_count);
    if (streams->foreign_count > 0)
        fprintf(errors, ", %" PRIu64 " speak something else", streams->foreign_count);
    if (capture->fragments > 0)
        fprintf(errors, ", %" PRIu64 " IP fragments left out", capture->fragments);
    fprintf(errors, "; %" PRIu64 " damaged\n", capture->shown.printer->damaged_count);
}

static enum cli_exit load_pcap(struct cli *cli, struct pcap_library *library)
{
    static const char *const names[] = {"libpcap.so.0.8", "libpcap.so.1", "libpcap.so", NULL};
    const struct load_symbol symbols[] = {
        {"pcap_open_offline",         &library->open     },
        {"pcap_close",                &library->close    },
        {"pcap_datalink",             &library->link     },
        {"pcap_datalink_val_to_name", &library->link_name},
        {"pcap_next_ex",              &library->next     },
        {"pcap_geterr",               &library->error    },
    };
    return load_library(cli, names, "libpcap0.8", symbols, ARRAY_SIZE(symbols));
}

enum cli_exit wire_pcap(struct wire_printer *printer, const char *path, uint16_t port)
{
    struct capture capture = {.shown.printer = printer, .port = port};
    char error[PCAP_ERRBUF_SIZE] = "";

    struct pcap_library *library = &capture.library;
    enum cli_exit loaded = load_pcap(printer->cli, library);
    if (loaded != CLI_OK) return loaded;
    pcap_t *pcap = library->open(path, error);
    if (pcap == NULL) { /* What libpcap says of a file that it cannot open begins with its name. */
        size_t named = strncmp(error, path, strlen(path)) == 0 ? strlen(path) : 0;
        if (named > 0 && strncmp(error + named, ": ", 2) == 0) named += 2;
        return (enum cli_exit)cli_fail(printer->cli, CLI_FAILED, "could not read \"%s\": %s", path,
                                       error + named);
    }
    if (!is_known_link(library->link(pcap))) {
        const char *link = library->link_name(library->link(pcap));
        cli_fail(printer->cli, CLI_FAILED,
                 "\"%s\" was captured on a link of type %s, which is not known here", path,
                 link == NULL ? "?" : link);
        library->close(pcap);
        return CLI_FAILED;
    }
    streams_init(&capture.streams, printer->cli->mem, wire_stream_print, &capture.shown);
    take_packets(&capture, pcap, path);
    streams_end(&capture.streams);
    library->close(pcap);
    if (capture.shown.code == CLI_OK) summary(&capture);
    return capture.shown.code;
}
