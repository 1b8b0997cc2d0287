/* wire_stream_print.c - see wire_stream_print.h. */
#include "cli/wire_stream_print.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <time.h>

static void put_endpoint(char *out, size_t size, const struct stream_endpoint *at)
{
    char address[INET6_ADDRSTRLEN];
    inet_ntop(at->family, at->address, address, sizeof(address));
    snprintf(out, size, at->family == AF_INET6 ? "[%s]:%u" : "%s:%u", address, at->port);
}

enum { NAME_BYTES = 192, PREFIX_BYTES = 256 };

struct labels {
    char from[64], to[64];
    char time[40];
};

static void labels_of(struct labels *out, const struct stream_event *event)
{
    struct tm tm;
    time_t seconds = (time_t)(event->time_us / 1000000);
    put_endpoint(out->from, sizeof(out->from), event->from);
    put_endpoint(out->to, sizeof(out->to), event->to);
    gmtime_r(&seconds, &tm);
    snprintf(out->time, sizeof(out->time), "%02d:%02d:%02d.%06d", tm.tm_hour, tm.tm_min, tm.tm_sec,
             (int)(event->time_us % 1000000));
}

static bool print_frame(struct wire_stream_printer *shown,
                        const struct stream_event *event,
                        const struct labels *labels)
{
    char prefix[PREFIX_BYTES], json[400], name[NAME_BYTES], took[40] = "";

    if (event->request_us >= 0)
        snprintf(took, sizeof(took), "+%.3fms ",
                 (double)(event->time_us - event->request_us) / 1000);
    snprintf(prefix, sizeof(prefix), "%s %s > %s  %s", labels->time, labels->from, labels->to,
             took);
    snprintf(name, sizeof(name), "%s %s > %s", labels->time, labels->from, labels->to);
    snprintf(json, sizeof(json), "\"time\":%" PRId64 ".%06d,\"from\":\"%s\",\"to\":\"%s\",",
             event->time_us / 1000000, (int)(event->time_us % 1000000), labels->from, labels->to);
    struct wire_printed printed = {event->frame_kind, event->frame, prefix, json, name};
    if (event->kind == STREAM_RESPONSE && event->frame_kind == NULL) {
        wire_print_damage(
            shown->printer, name,
            "%u bytes are a response whose request is not in the capture or not known",
            event->frame.size);
        return true;
    }
    shown->code = wire_print(shown->printer, &printed);
    return shown->code == CLI_OK;
}

bool wire_stream_print(void *context, const struct stream_event *event)
{
    struct wire_stream_printer *shown = context;
    struct labels labels;
    char name[NAME_BYTES];

    labels_of(&labels, event);
    snprintf(name, sizeof(name), "%s %s > %s", labels.time, labels.from, labels.to);
    switch (event->kind) {
    case STREAM_REQUEST:
    case STREAM_RESPONSE: return print_frame(shown, event, &labels);
    case STREAM_TOKEN:
        if (shown->printer->style != WIRE_PRINT_JSON)
            out_format(&shown->printer->cli->out, "%s  SASL token  %u bytes\n", name,
                       event->frame.size);
        return true;
    case STREAM_LOST: wire_print_damage(shown->printer, name, "%s", event->text); return true;
    case STREAM_ENCRYPTED:
        fprintf(shown->printer->cli->errors, "%s: speaks TLS and cannot be shown\n", name);
        return true;
    }
    return true;
}
