/* drive.c - see drive.h. */
#include "bench/lib/drive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench/lib/client.h"
#include "bench/lib/requests.h"

#define DRIVE_BURST_BYTES (256u * 1024u)
#define DRIVE_EVENTS      256

struct drive {
    const struct drive_options *options;
    struct drive_result *result;
    struct drive_link *links;
    int epoll_fd;
    bool measuring;
    bool ending;    /* Nothing new is sent. */
    int64_t due_ns; /* Open loop: when the next request is scheduled. */
    int64_t interval_ns;
    uint32_t next_link;
    uint64_t sent, answered;
    uint8_t *scratch;
};

int64_t drive_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static double cpu_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- out ------------------------------------------------------------------------------------- */

static void flush(struct drive_link *link)
{
    while (link->out_at < link->out.size_bytes) {
        ssize_t put = send(link->fd, link->out.data + link->out_at,
                           link->out.size_bytes - link->out_at, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0 && errno == EAGAIN) break;
        if (put <= 0) client_die("a connection broke: %s", strerror(errno));
        link->out_at += (uint32_t)put;
    }
    bool wants = link->out_at < link->out.size_bytes;
    if (!wants) {
        sink_reset(&link->out);
        link->out_at = 0;
    }
    if (wants == link->wants_out) return;
    struct epoll_event event = {.events = EPOLLIN | (wants ? (uint32_t)EPOLLOUT : 0),
                                .data.ptr = link};
    (void)epoll_ctl(link->drive->epoll_fd, EPOLL_CTL_MOD, link->fd, &event);
    link->wants_out = wants;
}

/* One more frame behind those that wait. */
static void queue(struct drive_link *link, int64_t due_ns)
{
    struct drive *drive = link->drive;
    if (link->sent - link->answered == DRIVE_DEPTH_MAX)
        client_die("%u requests on their way: the server is behind for good", DRIVE_DEPTH_MAX);
    sink_put(&link->out, link->frame.data, link->frame.size);
    uint8_t *at = link->out.data + link->out.size_bytes - link->frame.size;
    store_be32(at + REQUESTS_CORRELATION_AT, (uint32_t)link->sent);
    if (drive->options->patch != NULL) drive->options->patch(link, at);
    link->sent_ns[link->sent++ % DRIVE_DEPTH_MAX] = due_ns;
    if (!link->follower) drive->sent++;
}

static bool may_send(const struct drive *drive)
{
    uint64_t limit = drive->options->requests;
    return !drive->ending && (limit == 0 || drive->sent < limit);
}

/* Closed loop: as many as the depth allows, in one send. */
static void fill(struct drive_link *link)
{
    int64_t now_ns = drive_now_ns();
    uint32_t depth = link->follower ? 1 : link->drive->options->depth;
    if (link->wants_out) return;
    while (
        may_send(link->drive) && link->sent - link->answered < depth &&
        (link->out.size_bytes == 0 || link->out.size_bytes + link->frame.size <= DRIVE_BURST_BYTES))
        queue(link, now_ns);
    if (link->out.size_bytes > 0) flush(link);
}

/* Open loop: what is due. */
static void send_due(struct drive *drive)
{
    int64_t now_ns = drive_now_ns();
    while (drive->due_ns <= now_ns && may_send(drive)) {
        struct drive_link *link = &drive->links[drive->next_link++ % drive->options->connections];
        queue(link, drive->due_ns);
        drive->due_ns += drive->interval_ns;
        if (!link->wants_out) flush(link);
    }
}

/* ---- in -------------------------------------------------------------------------------------- */

static void answered(struct drive_link *link)
{
    struct drive *drive = link->drive;
    uint32_t size = link->answer_size;
    struct view head = view_of(link->head + 4, link->head_size - 4);
    if (link->answered == link->sent) client_die("an answer to no request");
    if (head.size < 4 || load_be32(head.data) != (uint32_t)link->answered)
        client_die("an answer to another request");
    bool fine = drive->options->answer(link, head, size);
    int64_t due_ns = link->sent_ns[link->answered++ % DRIVE_DEPTH_MAX];
    if (!link->follower) drive->answered++;
    if (!fine) drive->result->errors++;
    link->head_size = link->answer_size = link->answer_seen = 0;
    if (!drive->measuring || link->follower) return;
    drive->result->requests++;
    drive->result->answer_bytes += size;
    histogram_add(&drive->result->latency, drive_now_ns() - due_ns);
}

/* Bytes of answers, one after the other. */
static void take(struct drive_link *link, const uint8_t *at, uint32_t size)
{
    while (size > 0) {
        uint32_t whole = link->answer_size == 0 ? 4 : 4 + link->answer_size;
        uint32_t part = MIN(size, whole - link->answer_seen);
        uint32_t room = MIN(DRIVE_HEAD_BYTES - link->head_size, part);
        memcpy(link->head + link->head_size, at, room);
        link->head_size += room;
        link->answer_seen += part;
        at += part;
        size -= part;
        if (link->answer_size == 0 && link->answer_seen == 4)
            link->answer_size = load_be32(link->head);
        else if (link->answer_seen == 4 + link->answer_size)
            answered(link);
    }
}

static void receive(struct drive_link *link)
{
    for (;;) {
        /* What lies behind a full head is dropped without a copy. */
        uint32_t left = link->answer_size == 0 ? 0 : 4 + link->answer_size - link->answer_seen;
        bool drop = link->head_size == DRIVE_HEAD_BYTES && left > DRIVE_BURST_BYTES / 4;
        size_t room = drop ? left : DRIVE_BURST_BYTES;
        ssize_t got = recv(link->fd, link->drive->scratch, room, drop ? MSG_TRUNC : 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return;
        if (got <= 0) client_die("a connection ended: %s", got == 0 ? "closed" : strerror(errno));
        take(link, link->drive->scratch, (uint32_t)got);
        if (!drop && (size_t)got < room) return;
    }
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void turn(struct drive *drive, int64_t until_ns)
{
    struct epoll_event events[DRIVE_EVENTS];
    bool open = drive->interval_ns > 0;
    if (open) {
        send_due(drive);
        if (may_send(drive)) until_ns = MIN(until_ns, drive->due_ns);
    }
    int64_t wait_ns = MAX(until_ns - drive_now_ns(), 0);
    struct timespec wait = {wait_ns / 1000000000, wait_ns % 1000000000};
    int count = epoll_pwait2(drive->epoll_fd, events, DRIVE_EVENTS, &wait, NULL);
    for (int i = 0; i < count; i++) {
        struct drive_link *link = events[i].data.ptr;
        if (events[i].events & EPOLLOUT) flush(link);
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(link);
        if (!open || link->follower) fill(link);
    }
}

static uint32_t link_count(const struct drive *drive)
{
    return drive->options->connections + (drive->options->follower ? 1 : 0);
}

static void open_links(struct drive *drive)
{
    const struct drive_options *options = drive->options;
    for (uint32_t i = 0; i < link_count(drive); i++) {
        struct drive_link *link = &drive->links[i];
        *link = (struct drive_link){.drive = drive,
                                    .number = i,
                                    .context = options->context,
                                    .follower = i == options->connections,
                                    .leader = &drive->links[0]};
        link->fd = client_socket(options->host, options->port);
        (void)fcntl(link->fd, F_SETFL, O_NONBLOCK);
        link->frame = options->frame(options->context, i);
        link->sent_ns = malloc(DRIVE_DEPTH_MAX * sizeof(*link->sent_ns));
        if (link->sent_ns == NULL) client_die("no memory for a connection");
        sink_init(&link->out, options->mem, 1u << 30);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};
        if (epoll_ctl(drive->epoll_fd, EPOLL_CTL_ADD, link->fd, &event) != 0)
            client_die("could not watch a connection: %s", strerror(errno));
    }
}

static void close_links(struct drive *drive)
{
    for (uint32_t i = 0; i < link_count(drive); i++) {
        close(drive->links[i].fd);
        free(drive->links[i].sent_ns);
        sink_free(&drive->links[i].out);
    }
    close(drive->epoll_fd);
    free(drive->links);
    free(drive->scratch);
}

/* Turns until the time, or until all requests that may be sent are answered. */
static void run_until(struct drive *drive, int64_t until_ns)
{
    while (drive_now_ns() < until_ns) {
        if (!may_send(drive) && drive->answered == drive->sent) return;
        turn(drive, until_ns);
    }
}

/* Work that is not measured: the same for every server, however long it takes it. */
static void warm_up(struct drive *drive, int64_t start_ns)
{
    run_until(drive, start_ns + (int64_t)(drive->options->warmup_s * 1e9));
    int64_t end_ns = drive_now_ns() + (int64_t)DRIVE_WARM_S * 1000000000;
    while (drive->answered < drive->options->warm && may_send(drive) && drive_now_ns() < end_ns)
        turn(drive, end_ns);
    drive->result->warm = drive->answered;
}

void drive_run(const struct drive_options *options,
               void (*mark)(void *context, bool begins),
               struct drive_result *result)
{
    struct drive drive = {.options = options, .result = result};
    assert(options->connections > 0 && options->connections <= DRIVE_CONNECTIONS_MAX);
    assert(options->depth > 0 && options->depth <= DRIVE_DEPTH_MAX);
    *result = (struct drive_result){0};
    drive.links = calloc(link_count(&drive), sizeof(*drive.links));
    drive.scratch = malloc(DRIVE_BURST_BYTES);
    drive.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (drive.links == NULL || drive.scratch == NULL || drive.epoll_fd < 0)
        client_die("no memory for the connections");
    open_links(&drive);

    int64_t start_ns = drive_now_ns();
    if (options->rate > 0) {
        drive.interval_ns = MAX((int64_t)(1e9 / options->rate), 1);
        drive.due_ns = start_ns;
    }
    for (uint32_t i = 0; i < link_count(&drive); i++)
        if (options->rate <= 0 || drive.links[i].follower) fill(&drive.links[i]);
    warm_up(&drive, start_ns);
    double cpu = cpu_s();
    mark(options->context, true);
    start_ns = drive_now_ns();
    drive.measuring = true;
    run_until(&drive, start_ns + (int64_t)(options->seconds * 1e9));
    result->seconds = (double)(drive_now_ns() - start_ns) * 1e-9;
    result->cpu_s = cpu_s() - cpu;
    mark(options->context, false);
    drive.measuring = false;
    drive.ending = true;
    run_until(&drive, drive_now_ns() + (int64_t)30e9);
    if (drive.answered != drive.sent) client_die("requests were not answered within 30 s");
    result->all = drive.answered;
    close_links(&drive);
}
