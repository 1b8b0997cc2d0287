/* dial.c - see dial.h. */
#include "cli/dial.h"
#include "cli/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "gen/api_versions_request.h"
#include "gen/api_versions_response.h"
#include "gen/errors.h"
#include "text/frame.h"

#define API_VERSIONS_KEY 18

/* ---- where to -------------------------------------------------------------------------------- */

bool dial_host_parse(const char *text, struct dial_host *out)
{
    const char *colon = strrchr(text, ':');
    const char *end = text + strlen(text);
    bool brackets = text[0] == '[';

    memset(out, 0, sizeof(*out));
    out->port = DIAL_PORT;
    if (brackets) {
        const char *close = strchr(text, ']');
        if (close == NULL || (close[1] != '\0' && close[1] != ':')) return false;
        colon = close[1] == ':' ? close + 1 : NULL;
        text++;
        end = close;
    } else if (colon != NULL && strchr(text, ':') != colon) {
        colon = NULL; /* A bare IPv6 address. */
    } else if (colon != NULL) {
        end = colon;
    }
    if (colon != NULL) {
        char *stop = NULL;
        long port = strtol(colon + 1, &stop, 10);
        if (colon[1] == '\0' || *stop != '\0' || port < 1 || port > UINT16_MAX) return false;
        out->port = (uint16_t)port;
    }
    size_t size = (size_t)(end - text);
    if (size == 0 || size >= sizeof(out->name)) return false;
    memcpy(out->name, text, size);
    return true;
}

void dial_host_text(const struct dial_host *host, char out[DIAL_TEXT_BYTES])
{
    bool six = strchr(host->name, ':') != NULL;
    (void)snprintf(out, DIAL_TEXT_BYTES, six ? "[%s]:%u" : "%s:%u", host->name, host->port);
}

static void address_text(struct dial_address *address)
{
    char host[INET6_ADDRSTRLEN] = "?";
    const struct sockaddr_in *in = (const struct sockaddr_in *)&address->at;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->at;
    bool six = address->at.ss_family == AF_INET6;

    if (six) {
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
    } else {
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
    }
    (void)snprintf(address->text, sizeof(address->text), six ? "[%s]:%u" : "%s:%u", host,
                   dial_port(address));
}

int dial_resolve(const struct dial_host *host, struct dial_addresses *out)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char port[8];

    out->count = 0;
    (void)snprintf(port, sizeof(port), "%u", host->port);
    int code = getaddrinfo(host->name, port, &hints, &found);
    if (code != 0) return code;
    for (struct addrinfo *at = found; at != NULL && out->count < DIAL_ADDRESSES_MAX;
         at = at->ai_next) {
        if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
        struct dial_address *address = &out->items[out->count++];
        memset(address, 0, sizeof(*address));
        memcpy(&address->at, at->ai_addr, at->ai_addrlen);
        address->size = at->ai_addrlen;
        address_text(address);
    }
    freeaddrinfo(found);
    return out->count > 0 ? 0 : EAI_NONAME;
}

uint16_t dial_port(const struct dial_address *address)
{
    /* At one place in both forms. */
    return ntohs(((const struct sockaddr_in *)&address->at)->sin_port);
}

bool dial_same_host(const struct dial_address *a, const struct dial_address *b)
{
    if (a->at.ss_family != b->at.ss_family) return false;
    if (a->at.ss_family == AF_INET)
        return ((const struct sockaddr_in *)&a->at)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)&b->at)->sin_addr.s_addr;
    return memcmp(&((const struct sockaddr_in6 *)&a->at)->sin6_addr,
                  &((const struct sockaddr_in6 *)&b->at)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

bool dial_is_loopback(const struct dial_address *address)
{
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->at;
    if (address->at.ss_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
    return ntohl(((const struct sockaddr_in *)&address->at)->sin_addr.s_addr) >> 24 == 127;
}

/* ---- the socket ------------------------------------------------------------------------------ */

/* Wait until the socket is ready for `events`. False: the deadline has passed. */
static bool wait_for(int fd, short events, int64_t limit_ms)
{
    for (;;) {
        int64_t left_ms = limit_ms - clock_now_ms();
        struct pollfd one = {fd, events, 0};
        int ready = poll(&one, 1, (int)MAX(left_ms, 0));
        if (ready > 0) return true;
        if (ready == 0 && left_ms <= 0) return false;
    }
}

int dial_connect(const struct dial_address *address, int timeout_ms)
{
    int64_t limit_ms = clock_now_ms() + timeout_ms;
    int error = 0;
    socklen_t size = sizeof(error);
    int fd = socket(address->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) return -errno;
    if (connect(fd, (const struct sockaddr *)&address->at, address->size) != 0) {
        error = errno;
        if (error == EINPROGRESS && !wait_for(fd, POLLOUT, limit_ms)) {
            error = ETIMEDOUT;
        } else if (error == EINPROGRESS) {
            (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
        }
    }
    if (error == 0) return fd;
    close(fd);
    return -error;
}

int dial_open(struct dial *dial, const struct dial_address *address, int timeout_ms)
{
    assert(dial->fd < 0);
    int fd = dial_connect(address, timeout_ms);
    if (fd < 0) return fd;
    dial->fd = fd;
    dial->timeout_ms = timeout_ms;
    dial->first_size = 0;
    for (uint32_t i = 0; i < DIAL_APIS_MAX; i++)
        dial->apis[i] = (struct dial_range){0, -1};
    return 0;
}

void dial_close(struct dial *dial)
{
    if (dial->fd >= 0) close(dial->fd);
    dial->fd = -1;
}

static enum dial_result failed(struct dial *dial)
{
    dial->error = errno;
    return errno == ECONNRESET || errno == EPIPE ? DIAL_CLOSED : DIAL_FAILED;
}

static enum dial_result send_all(struct dial *dial, struct view bytes, int64_t limit_ms)
{
    uint32_t at = 0;
    while (at < bytes.size) {
        ssize_t sent = send(dial->fd, bytes.data + at, bytes.size - at, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) return failed(dial);
        if (sent < 0 && !wait_for(dial->fd, POLLOUT, limit_ms)) return DIAL_SILENT;
        if (sent > 0) at += (uint32_t)sent;
    }
    return DIAL_OK;
}

/* Exactly `size` bytes; `*got` tells how many came in any case. */
static enum dial_result receive(struct dial *dial,
                                struct view into,
                                int64_t limit_ms,
                                uint32_t *got)
{
    uint8_t *out;
    memcpy(&out, &into.data, sizeof(out)); /* The caller's own buffer. */
    *got = 0;
    while (*got < into.size) {
        ssize_t size = recv(dial->fd, out + *got, into.size - *got, 0);
        if (size == 0) return DIAL_CLOSED;
        if (size < 0 && errno != EAGAIN && errno != EINTR) return failed(dial);
        if (size < 0 && !wait_for(dial->fd, POLLIN, limit_ms)) return DIAL_SILENT;
        if (size > 0) *got += (uint32_t)size;
    }
    return DIAL_OK;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* The next frame, in the arena. */
static enum dial_result receive_frame(struct dial *dial, struct arena *arena, struct view *out)
{
    int64_t limit_ms = clock_now_ms() + dial->timeout_ms;
    uint8_t head[8];
    uint32_t got;

    enum dial_result result = receive(dial, view_of(head, sizeof(head)), limit_ms, &got);
    memcpy(dial->first, head, got);
    dial->first_size = got;
    if (result != DIAL_OK) return got > 0 && result != DIAL_FAILED ? DIAL_FOREIGN : result;
    uint32_t size = load_be32(head);
    bool ours = (int32_t)load_be32(head + 4) == dial->correlation_id;
    if (size < 4 || size > DIAL_FRAME_MAX || !ours) return DIAL_FOREIGN;
    uint8_t *bytes = arena_take(arena, (size_t)size + 4);
    if (bytes == NULL) return DIAL_DAMAGED;
    memcpy(bytes, head, sizeof(head));
    result = receive(dial, view_of(bytes + 8, size - 4), limit_ms, &got);
    *out = view_of(bytes, size + 4);
    return result;
}

/* Send a request in this version and read its answer into `response`. */
static enum dial_result ask_version(struct dial *dial,
                                    const struct dial_question *question,
                                    struct arena *arena,
                                    void *response)
{
    const struct wire_api *api = question->api;
    int16_t version = question->version_max;
    struct frame_kind kind = frame_kind_of(api->request, version);
    struct frame_header header = {++dial->correlation_id, VIEW("dohle")};
    struct view frame = frame_encode(&kind, &header, question->request, arena);

    if (frame.null) return DIAL_DAMAGED;
    enum dial_result result = send_all(dial, frame, clock_now_ms() + dial->timeout_ms);
    /* Who closes because of what was sent may still have said something. */
    if (result == DIAL_OK || result == DIAL_CLOSED) result = receive_frame(dial, arena, &frame);
    if (result != DIAL_OK) return result;
    struct reader in = reader_of(view_of(frame.data + 8, frame.size - 8));
    if (wire_response_header_version(api, version) >= 1) {
        /* The header's tags: none that is known. */
        uint32_t tags = reader_u8(&in);
        if (tags != 0) return DIAL_DAMAGED;
    }
    bool fine = wire_decode(&in, wire_form(api->response, version), arena, response);
    return fine ? DIAL_OK : DIAL_DAMAGED;
}

enum dial_result dial_ask(struct dial *dial,
                          const struct dial_question *question,
                          struct arena *arena,
                          void *response)
{
    assert(question->api->key >= 0 && question->api->key < DIAL_APIS_MAX);
    struct dial_range theirs = dial->apis[question->api->key];
    struct dial_question at = *question;

    at.version_max = MIN(at.version_max, question->api->stable_max);
    at.version_max = MIN(at.version_max, theirs.max);
    if (at.version_max < theirs.min || at.version_max < question->api->served_min)
        return DIAL_LACKING;
    return ask_version(dial, &at, arena, response);
}

enum dial_result dial_versions(struct dial *dial,
                               struct arena *arena,
                               struct api_versions_response *out)
{
    struct api_versions_request request;
    struct dial_question question = {wire_api(API_VERSIONS_KEY), &request, 4};

    wire_defaults(&wire_api_versions_request, &request);
    request.client_software_name = VIEW("dohle");
    request.client_software_version = VIEW("1");
    /* A server that is older answers in v0 with its range and error 35: read that far. */
    struct frame_kind kind = frame_kind_of(question.api->request, 4);
    struct frame_header header = {++dial->correlation_id, VIEW("dohle")};
    struct view frame = frame_encode(&kind, &header, &request, arena);
    if (frame.null) return DIAL_DAMAGED;
    enum dial_result result = send_all(dial, frame, clock_now_ms() + dial->timeout_ms);
    if (result == DIAL_OK || result == DIAL_CLOSED) result = receive_frame(dial, arena, &frame);
    if (result != DIAL_OK) return result;
    if (frame.size >= 10 && load_be16(frame.data + 8) == KAFKA_UNSUPPORTED_VERSION) {
        question.version_max = 0;
        result = ask_version(dial, &question, arena, out);
        if (result != DIAL_OK) return result;
    } else {
        struct reader in = reader_of(view_of(frame.data + 8, frame.size - 8));
        if (!wire_decode(&in, wire_form(question.api->response, 4), arena, out))
            return DIAL_DAMAGED;
    }
    for (int32_t i = 0; i < out->api_keys.count; i++) {
        const struct api_versions_response_api_version *api = &out->api_keys.items[i];
        if (api->api_key < 0 || api->api_key >= DIAL_APIS_MAX) continue;
        dial->apis[api->api_key] = (struct dial_range){api->min_version, api->max_version};
    }
    return DIAL_OK;
}

const char *dial_result_text(const struct dial *dial, enum dial_result result)
{
    switch (result) {
    case DIAL_OK: return "answers";
    case DIAL_CLOSED: return "closes the connection instead of an answer";
    case DIAL_SILENT: return "does not answer in time";
    case DIAL_FOREIGN: return "answers with something else than Kafka's protocol";
    case DIAL_DAMAGED: return "answers with bytes that cannot be read";
    case DIAL_LACKING: return "offers no version of this API that is known here";
    case DIAL_FAILED: return strerror(dial->error);
    }
    return "?";
}

/* ---- what else it may be --------------------------------------------------------------------- */

/* A ClientHello of TLS 1.2 that offers a few suites: enough for an answer, be it an alert. */
static const uint8_t client_hello[] = {
    0x16, 0x03, 0x01, 0x00, 0x4f,                              /* Handshake record, 79 bytes. */
    0x01, 0x00, 0x00, 0x4b, 0x03, 0x03,                        /* ClientHello, TLS 1.2. */
    'd',  'o',  'h',  'l',  'e',  ' ',  'a',  's',  'k',  's', /* 32 bytes of "random". */
    ' ',  'w',  'h',  'e',  't',  'h',  'e',  'r',  ' ',  'T',  'L',  'S',
    ' ',  'i',  's',  ' ',  's',  'p',  'o',  'k',  'e',  'n',  0x00, /* No session. */
    0x00, 0x06, 0xc0, 0x2f, 0xc0, 0x2b, 0x00, 0x9c,             /* Three suites, AES-128-GCM. */
    0x01, 0x00,                                                 /* No compression. */
    0x00, 0x1c,                                                 /* 28 bytes of extensions: */
    0x00, 0x0a, 0x00, 0x06, 0x00, 0x04, 0x00, 0x17, 0x00, 0x1d, /* groups: P-256, X25519; */
    0x00, 0x0d, 0x00, 0x08, 0x00, 0x06, 0x04, 0x01, 0x04, 0x03, /* signatures: RSA, ECDSA, */
    0x08, 0x04,                                                 /* RSA-PSS with SHA-256; */
    0x00, 0x0b, 0x00, 0x02, 0x01, 0x00,                         /* points: uncompressed. */
};
_Static_assert(sizeof(client_hello) == 5 + 79, "the record says its size");

enum dial_smell dial_smell(const struct dial *dial,
                           const struct dial_address *address,
                           int timeout_ms)
{
    if (dial->first_size >= 4 && memcmp(dial->first, "HTTP", 4) == 0) return DIAL_SMELLS_HTTP;
    struct dial other = {.fd = -1};
    uint8_t answer[2] = {0};
    uint32_t got = 0;
    if (dial_open(&other, address, timeout_ms) != 0) return DIAL_SMELLS_NOT;
    int64_t limit_ms = clock_now_ms() + timeout_ms;
    if (send_all(&other, view_of(client_hello, sizeof(client_hello)), limit_ms) == DIAL_OK &&
        receive(&other, view_of(answer, sizeof(answer)), limit_ms, &got) != DIAL_OK)
        got = 0;
    dial_close(&other);
    bool handshake_or_alert = answer[0] == 0x16 || answer[0] == 0x15;
    if (got == 2 && handshake_or_alert && answer[1] == 3) return DIAL_SMELLS_TLS;
    return got == 2 && memcmp(answer, "HT", 2) == 0 ? DIAL_SMELLS_HTTP : DIAL_SMELLS_NOT;
}
