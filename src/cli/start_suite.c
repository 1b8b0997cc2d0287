/* start_suite.c - `dohle start --test`: a node for a test suite.
 *
 * Its directory is private and goes with it. It ends when the process that started it ends, told by
 * a pidfd (the death signal of prctl follows the parent's *thread*, which in Java and Go is not
 * what is meant), and when standard input ends, if that is a pipe, a socket or a terminal. */
#include <arpa/inet.h>
#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cli/clock.h"
#include "cli/start.h"
#include "gen/create_topics_request.h"
#include "gen/create_topics_response.h"
#include "gen/errors.h"
#include "gen/request_header.h"
#include "sys/memory.h"

#define SUITE_FRAME_BYTES 65536u
#define SUITE_WAIT_MS     10000

/* ---- beginning and ending -------------------------------------------------------------------- */

static enum cli_exit read_topic(struct cli *cli, struct start_test *test, const char *text)
{
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    long partitions = colon == NULL ? 1 : strtol(colon + 1, &end, 10);
    size_t size = colon == NULL ? strlen(text) : (size_t)(colon - text);
    if (size == 0 || (colon != NULL && (colon[1] == '\0' || *end != '\0')) || partitions < 1 ||
        partitions > 10000)
        return (enum cli_exit)cli_fail(cli, CLI_USAGE, "--topic takes NAME:PARTITIONS, not \"%s\"",
                                       text);
    if (test->topic_count == START_TOPICS_MAX)
        return (enum cli_exit)cli_fail(cli, CLI_USAGE, "more than %u topics", START_TOPICS_MAX);
    test->topics[test->topic_count++] =
        (struct start_topic){text, (uint32_t)size, (int32_t)partitions};
    return CLI_OK;
}

static void find_ends(struct start_test *test)
{
    struct stat s;
    test->watches_input = fstat(STDIN_FILENO, &s) == 0 &&
                          (S_ISFIFO(s.st_mode) || S_ISSOCK(s.st_mode) || isatty(STDIN_FILENO) == 1);
    test->parent = (int32_t)getppid();
    /* Process 1 adopts orphans: then there is no parent to wait for. */
    test->parent_fd = test->parent <= 1 ? -1 : (int)syscall(SYS_pidfd_open, test->parent, 0);
}

enum cli_exit start_test_begin(struct cli *cli, struct start_test *test)
{
    const char *folder = getenv("TMPDIR");
    find_ends(test);
    if (folder == NULL || folder[0] != '/' || strlen(folder) > 80) folder = "/tmp";
    (void)snprintf(test->directory, sizeof(test->directory), "%s/dohle-XXXXXX", folder);
    if (mkdtemp(test->directory) == NULL) {
        cli_fail(cli, CLI_FAILED, "could not make a directory in %s: %s", folder, strerror(errno));
        test->directory[0] = '\0';
        return CLI_FAILED;
    }
    enum cli_exit code = CLI_OK;
    int at = 0;
    const char *text;
    while (code == CLI_OK && (text = cli_next(cli, "topic", &at)) != NULL)
        code = read_topic(cli, test, text);
    return code;
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *place)
{
    (void)s;
    (void)kind;
    (void)place;
    (void)remove(path);
    return 0;
}

void start_test_end(const struct start_test *test)
{
    if (test->directory[0] != '\0')
        (void)nftw(test->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (test->parent_fd >= 0) close(test->parent_fd);
}

/* ---- who ends it ----------------------------------------------------------------------------- */

struct watcher {
    struct node *node;
    struct pollfd fds[2];
    nfds_t count;
    bool input; /* fds[0] is standard input. */
};

/* Standard input is read and thrown away; true at its end. */
static bool input_ended(void)
{
    char bytes[512];
    ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));
    return got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
}

static void *watch(void *argument)
{
    struct watcher *watcher = argument;
    bool ended = false;
    while (!ended) {
        if (poll(watcher->fds, watcher->count, -1) < 0) continue;
        for (nfds_t i = 0; i < watcher->count && !ended; i++) {
            if (watcher->fds[i].revents == 0) continue;
            ended = !(watcher->input && i == 0) || input_ended();
        }
    }
    node_stop(watcher->node);
    free(watcher);
    return NULL;
}

bool start_test_watch(const struct start_test *test, struct node *node)
{
    struct watcher *watcher = calloc(1, sizeof(*watcher));
    if (watcher == NULL) return false;
    watcher->node = node;
    watcher->input = test->watches_input;
    if (watcher->input) watcher->fds[watcher->count++] = (struct pollfd){STDIN_FILENO, POLLIN, 0};
    if (test->parent_fd >= 0)
        watcher->fds[watcher->count++] = (struct pollfd){test->parent_fd, POLLIN, 0};
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool started = watcher->count > 0 && pthread_create(&thread, &attributes, watch, watcher) == 0;
    pthread_attr_destroy(&attributes);
    if (!started) free(watcher);
    return started || test->parent_fd < 0;
}

/* ---- topics ---------------------------------------------------------------------------------- */

static struct view build_request(const struct start_test *test, uint8_t *out, size_t room)
{
    static const int16_t version = 5;
    struct create_topics_request_creatable_topic topics[START_TOPICS_MAX];
    struct create_topics_request request;
    wire_defaults(&wire_create_topics_request, &request);
    for (uint32_t i = 0; i < test->topic_count; i++) {
        wire_struct_defaults(&wire_create_topics_request_creatable_topic_shape, &topics[i]);
        topics[i].name = view_of(test->topics[i].name, test->topics[i].name_size);
        topics[i].num_partitions = test->topics[i].partitions;
        topics[i].replication_factor = -1;
    }
    request.topics.items = topics;
    request.topics.count = (int32_t)test->topic_count;
    request.timeout_ms = SUITE_WAIT_MS;
    struct request_header header = {wire_create_topics_request.api_key, version, 1, VIEW("dohle"),
                                    VIEW_EMPTY};
    const struct wire_form *head = wire_form(&wire_request_header, 2);
    const struct wire_form *body = wire_form(&wire_create_topics_request, version);
    size_t size = wire_size(head, &header) + wire_size(body, &request);
    if (size + 4 > room) return VIEW_NULL;
    store_be32(out, (uint32_t)size);
    size_t at = 4 + wire_encode(head, &header, out + 4, NULL, 0, NULL);
    at += wire_encode(body, &request, out + at, NULL, 0, NULL);
    return view_of(out, (uint32_t)at);
}

/* Receive a whole frame while the node turns. Its size without the length, or -1. */
static int64_t receive_frame(int fd, struct node *node, uint8_t *out, size_t room)
{
    size_t at = 0;
    int64_t limit_ms = clock_now_ms() + SUITE_WAIT_MS;
    while (clock_now_ms() < limit_ms) {
        ssize_t got = recv(fd, out + at, room - at, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return -1;
        if (got > 0) at += (size_t)got;
        if (at >= 4 && load_be32(out) + 4 > room) return -1;
        if (at >= 4 && load_be32(out) + 4 == at) return (int64_t)at - 4;
        if (got < 0) (void)node_turn(node, clock_now_ms() + 10);
    }
    return -1;
}

/* The first topic that was refused is said. Correlation id and an empty tag section stand before
 * the body. */
static bool check_reply(struct view frame, struct mem *mem, const struct say *say_to)
{
    struct arena arena;
    struct create_topics_response response;
    arena_init(&arena, mem, 0);
    struct reader in = reader_of(view_of(frame.data + 5, frame.size - 5));
    bool fine = wire_decode(&in, wire_form(&wire_create_topics_response, 5), &arena, &response);
    for (int32_t i = 0; fine && i < response.topics.count; i++) {
        const struct create_topics_response_creatable_topic_result *topic =
            &response.topics.items[i];
        if (topic->error_code == 0) continue;
        char name[256], message[256];
        fine = false;
        say(say_to, SAY_ERROR, SAY_IN_START, "topic %s was not created: %s, %s",
            say_bytes(topic->name, name, sizeof(name)), kafka_error_name(topic->error_code),
            say_bytes(topic->error_message, message, sizeof(message)));
    }
    arena_free(&arena);
    return fine;
}

static int connect_to(const struct node *node)
{
    struct io_address address;
    struct sockaddr_in to = {.sin_family = AF_INET};
    node_address(node, &address);
    to.sin_port = htons(address.port);
    const char *host = strcmp(address.host, "0.0.0.0") == 0 || strcmp(address.host, "::") == 0
                           ? "127.0.0.1"
                           : address.host;
    if (inet_pton(AF_INET, host, &to.sin_addr) != 1) return -1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

bool start_test_topics(const struct start_test *test, struct node *node, const struct say *say_to)
{
    uint8_t bytes[SUITE_FRAME_BYTES];
    if (test->topic_count == 0) return true;
    struct view request = build_request(test, bytes, sizeof(bytes));
    int fd = connect_to(node);
    int64_t size = -1;
    if (fd >= 0 && !request.null &&
        send(fd, request.data, request.size, MSG_NOSIGNAL) == (ssize_t)request.size)
        size = receive_frame(fd, node, bytes, sizeof(bytes));
    if (fd >= 0) close(fd);
    if (size < 5) {
        say(say_to, SAY_ERROR, SAY_IN_START, "the topics were not created: %s",
            fd < 0 ? "no connection" : "no answer");
        return false;
    }
    struct mem mem;
    memory_init(&mem, 0);
    return check_reply(view_of(bytes + 4, (uint32_t)size), &mem, say_to);
}
