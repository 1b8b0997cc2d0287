/* dial_test.c - how a host is written, and what a socket that misbehaves is taken for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "cli/dial.h"
#include "gen/api_versions_response.h"
#include "sys/memory.h"

static void test_hosts(void **state)
{
    static const struct {
        const char *text, *name;
        uint16_t port;
    } good[] = {
        {"localhost",      "localhost", 9092 },
        {"localhost:1",    "localhost", 1    },
        {"10.0.0.1:65535", "10.0.0.1",  65535},
        {"[::1]:29092",    "::1",       29092},
        {"[fe80::1]",      "fe80::1",   9092 },
        {"::1",            "::1",       9092 },
    };
    static const char *const bad[] = {"",    ":9092", "a:",     "a:0",  "a:65536",
                                      "a:b", "[::1",  "[::1]x", "[]:1", "a:-1"};
    struct dial_host host;
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_true(dial_host_parse(good[i].text, &host));
        assert_string_equal(host.name, good[i].name);
        assert_int_equal(host.port, good[i].port);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(dial_host_parse(bad[i], &host));
}

static void test_text(void **state)
{
    char text[DIAL_TEXT_BYTES];
    struct dial_host host;
    (void)state;
    assert_true(dial_host_parse("[::1]:1", &host));
    dial_host_text(&host, text);
    assert_string_equal(text, "[::1]:1");
    assert_true(dial_host_parse("kafka", &host));
    dial_host_text(&host, text);
    assert_string_equal(text, "kafka:9092");
}

/* A listening socket of the loopback, and its address. */
static int listener(struct dial_address *out)
{
    struct dial_host host = {.name = "127.0.0.1", .port = 1};
    struct dial_addresses found;
    struct sockaddr_in *in = (struct sockaddr_in *)&out->at;
    socklen_t size = sizeof(out->at);
    assert_int_equal(dial_resolve(&host, &found), 0);
    *out = found.items[0];
    in->sin_port = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&out->at, out->size), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&out->at, &size), 0);
    return fd;
}

/* What dial_versions says when the other side sends `bytes` and then closes, or waits. */
static enum dial_result answer(const void *bytes, size_t size, bool closes)
{
    struct dial_address address;
    struct dial dial = {.fd = -1};
    struct api_versions_response response;
    struct arena arena;
    struct mem mem;
    memory_init(&mem, 0);
    arena_init(&arena, &mem, 0);
    int fd = listener(&address);
    assert_int_equal(dial_open(&dial, &address, 200), 0);
    int other = accept(fd, NULL, NULL);
    if (size > 0) assert_int_equal(send(other, bytes, size, 0), size);
    if (closes) shutdown(other, SHUT_WR);
    enum dial_result result = dial_versions(&dial, &arena, &response);
    dial_close(&dial);
    close(other);
    close(fd);
    arena_free(&arena);
    assert_int_equal(mem.used_bytes, 0);
    return result;
}

static void test_answers(void **state)
{
    static const uint8_t alert[] = {0x15, 3, 3, 0, 2, 2, 0x50};
    static const uint8_t other_id[] = {0, 0, 0, 6, 0, 0, 0, 9, 0, 0};
    static const uint8_t cut[] = {0, 0, 0, 20, 0, 0, 0, 1, 0, 0};
    static const uint8_t huge[] = {0x7f, 0, 0, 0, 0, 0, 0, 1};
    static const uint8_t empty[] = {0, 0, 0, 6, 0, 0, 0, 1, 0, 0};
    (void)state;
    assert_int_equal(answer(NULL, 0, true), DIAL_CLOSED);
    assert_int_equal(answer(NULL, 0, false), DIAL_SILENT);
    assert_int_equal(answer(alert, sizeof(alert), true), DIAL_FOREIGN);
    assert_int_equal(answer(other_id, sizeof(other_id), false), DIAL_FOREIGN);
    assert_int_equal(answer(huge, sizeof(huge), false), DIAL_FOREIGN);
    assert_int_equal(answer(cut, sizeof(cut), false), DIAL_SILENT);
    assert_int_equal(answer(cut, sizeof(cut), true), DIAL_CLOSED);
    assert_int_equal(answer(empty, sizeof(empty), false), DIAL_DAMAGED);
}

static void test_nobody_listens(void **state)
{
    struct dial_address address;
    (void)state;
    close(listener(&address));
    assert_int_equal(dial_connect(&address, 1000), -ECONNREFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_nobody_listens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
