/* settings_test.c - server.properties and --set become a node's options, or are refused with a
 * place and a reason. */
#include "cli/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "net/listener.h"
#include "sys/memory.h"

struct rig {
    struct mem mem;
    struct arena arena;
    struct say say;
    char said[8192]; /* All lines, from the level on. */
    size_t said_size;
    struct settings settings;
};

static int64_t no_time(void *context)
{
    (void)context;
    return 0;
}

static void catch_line(void *context, const char *line, size_t size)
{
    struct rig *rig = context;
    const size_t stamp = strlen("1970-01-01 00:00:00.000 ");
    assert_true(size > stamp && rig->said_size + size < sizeof(rig->said));
    memcpy(rig->said + rig->said_size, line + stamp, size - stamp);
    rig->said_size += size - stamp;
    rig->said[rig->said_size] = '\0';
}

static void rig_open(struct rig *rig)
{
    *rig = (struct rig){
        .say = {.sink = catch_line, .wall_ms = no_time}
    };
    rig->say.context = rig;
    memory_init(&rig->mem, 0);
    arena_init(&rig->arena, &rig->mem, 0);
}

static void rig_close(struct rig *rig)
{
    arena_free(&rig->arena);
    assert_int_equal(rig->mem.used_bytes, 0);
}

static bool load(struct rig *rig, const char *text)
{
    struct settings_source source = {.file = "s.properties", .text = view_of_string(text)};
    return settings_load(&rig->settings, &source, &rig->arena, &rig->say);
}

static void nothing_given(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    struct settings_source source = {0};
    assert_true(settings_load(&rig.settings, &source, &rig.arena, &rig.say));
    assert_string_equal(rig.said, "");
    assert_true(rig.settings.loopback);
    assert_int_equal(rig.settings.node_id, -1);
    assert_int_equal(rig.settings.listener_count, 1);
    assert_string_equal(rig.settings.listeners[0].name, "PLAINTEXT");
    assert_int_equal(rig.settings.listeners[0].port, 9092);
    assert_string_equal(rig.settings.listeners[0].advertised_host, "");
    assert_int_equal(rig.settings.log_dir_count, 1);
    assert_int_equal(rig.settings.log_dirs[0][0], '/');
    assert_non_null(strstr(rig.settings.log_dirs[0], "/dohle-data"));
    assert_int_equal(settings_number(&rig.settings, "socket.request.max.bytes"), 104857600);
    assert_true(settings_switch(&rig.settings, "auto.create.topics.enable"));
    rig_close(&rig);
}

static void file_of_kafka(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    assert_true(load(&rig,
                     "process.roles=broker,controller\nnode.id=7\n"
                     "controller.quorum.bootstrap.servers=localhost:9093\n"
                     "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
                     "inter.broker.listener.name=PLAINTEXT\n"
                     "advertised.listeners=PLAINTEXT://example.org:19092\n"
                     "controller.listener.names=CONTROLLER\n"
                     "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
                     "log.dirs=/var/a, /var/b\nnum.partitions=3\n"));
    assert_string_equal(rig.said, "");
    assert_int_equal(rig.settings.node_id, 7);
    assert_false(rig.settings.loopback);
    assert_int_equal(rig.settings.listener_count, 2);
    const struct node_listener *broker = &rig.settings.listeners[0];
    assert_string_equal(broker->name, "PLAINTEXT");
    assert_string_equal(broker->host, "127.0.0.1");
    assert_string_equal(broker->advertised_host, "example.org");
    assert_int_equal(broker->advertised_port, 19092);
    assert_true(broker->inter_broker);
    assert_false(broker->controller);
    assert_true(rig.settings.listeners[1].controller);
    assert_int_equal(rig.settings.listeners[1].port, 9093);
    assert_int_equal(rig.settings.log_dir_count, 2);
    assert_string_equal(rig.settings.log_dirs[1], "/var/b");
    assert_int_equal(settings_number(&rig.settings, "num.partitions"), 3);
    assert_true(view_is(settings_given(&rig.settings, VIEW("num.partitions")), "3"));
    assert_true(settings_given(&rig.settings, VIEW("num.io.threads")).null);
    rig_close(&rig);
}

static void ignored_settings_are_told(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    assert_true(load(&rig, "num.io.threads=8\nnum.network.threads=9\nnum.partitions=2\n"
                           "metric.reporters=a.B\nlog.dirs=/a,/b\nmetadata.log.dir=/a\n"));
    assert_non_null(strstr(rig.said, "without effect here: num.network.threads, metric.reporters"));
    assert_null(strstr(rig.said, "num.io.threads"));
    rig_close(&rig);
}

static void order_of_sources(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    const char *set[] = {"num.partitions=4", "num.partitions=5", "broker.rack=a=b"};
    struct settings_source source = {.file = "f",
                                     .text = VIEW("num.partitions=3\nlog.dirs=/a\n"),
                                     .data = "/data",
                                     .set = set,
                                     .set_count = ARRAY_SIZE(set)};
    assert_true(settings_load(&rig.settings, &source, &rig.arena, &rig.say));
    assert_int_equal(settings_number(&rig.settings, "num.partitions"), 5);
    assert_true(view_is(settings_value(&rig.settings, "broker.rack"), "a=b"));
    assert_string_equal(rig.settings.log_dirs[0], "/data");
    rig_close(&rig);
}

/* What is taken with a warning. */
static void warned(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"num.partition=3",                                                       "warn config: s.properties:1: num.partition = \"3\": is not a known "
                            "setting, it has no effect; is num.partitions meant?\n"},
        {"#\n\nzzzzzzzzzzzzzzzzzzzzzzzzzzzz=1",
         "warn config: s.properties:3: zzzzzzzzzzzzzzzzzzzzzzzzzzzz = \"1\": is not a known setting, "
         "it has no effect\n"                                                                                 },
        {"num.partitions=1\nnum.partitions=2",
         "warn config: s.properties:2: num.partitions = \"2\": "
         "replaces the value of line 1\n"                                                                     },
        {"listeners=PLAINTEXT://:9092",
         "warn config: listener PLAINTEXT is open to the network and "
         "asks nobody who they are\n"                                                                         },
        {"listeners=PLAINTEXT://0.0.0.0:9092",
         "warn config: listener PLAINTEXT is open to the network and asks nobody who they are\n"              },
        {"listener.name.plaintext.max.connections=5",                             ""                          },
        {"listeners=plaintext://[::1]:9092",                                      ""                          },
        {"listeners=A://127.0.0.1:1\nlistener.security.protocol.map=a:plaintext", ""                          },
        {"queued.max.request.bytes=-1",                                           ""                          },
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct rig rig;
        rig_open(&rig);
        assert_true(load(&rig, cases[i].text));
        assert_string_equal(rig.said, cases[i].said);
        rig_close(&rig);
    }
}

/* What is refused, and a part of the reason. */
static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"num.partitions=x",                                                                 "s.properties:1: num.partitions = \"x\": is not a whole number"},
        {"\nnum.partitions=0",                                                               "s.properties:2: num.partitions = \"0\": must be at least 1"   },
        {"auto.create.topics.enable=yes",                                                    "is not true or false"                                         },
        {"dohle.ack.durability=maybe",                                                       "must be sync, replicated"                                     },
        {"a=\\u12",                                                                          "s.properties:1: \\u without four"                             },
        {"node.id=1\nbroker.id=2",                                                           "broker.id = \"2\": is not node.id, which is 1"                },
        {"process.roles=broker",                                                             "a broker without a controller"                                },
        {"process.roles=controller",                                                         "must name the controller's listener"                          },
        {"process.roles=controller\nlisteners=C://127.0.0.1:0\ncontroller.listener.names=C",
         "C is a controller's and needs a port"                                                                                                             },
        {"process.roles=controller\ncontroller.listener.names=C\n"
         "listeners=C://127.0.0.1:1,PLAINTEXT://127.0.0.1:2",                       "PLAINTEXT is a broker's listener"                             },
        {"controller.quorum.voters=1@a:1,2@b:2",                                             "more than this node"                                          },
        {"max.connections.per.ip=0",                                                         "max.connections.per.ip.overrides"                             },
        {"queued.max.request.bytes=1000",                                                    "must not be less than socket.request.max.bytes"               },
        {"authorizer.class.name=org.example.Own",                                            "enforces no ACL yet"                                          },
        {"log.dirs=/a,/b\nmetadata.log.dir=/b",
         "the metadata log is in the first log directory, /a"                                                                                               },
        {"log.dirs=/a,/a",                                                                   "names /a twice"                                               },
        {"listeners=",                                                                       "must not be empty"                                            },
        {"listeners=PLAINTEXT:9092",                                                         "PLAINTEXT:9092 is not NAME://HOST:PORT"                       },
        {"listeners=PLAINTEXT://:x",                                                         "is not NAME://HOST:PORT"                                      },
        {"listeners=PLAINTEXT://a b:1",                                                      "is not NAME://HOST:PORT"                                      },
        {"listeners=://:1",                                                                  "is not NAME://HOST:PORT"                                      },
        {"listeners=PLAINTEXT://:65536",                                                     "is not from 0 to 65535"                                       },
        {"listeners=PLAINTEXT://:-1",                                                        "is not from 0 to 65535"                                       },
        {"listeners=PLAINTEXT://127.0.0.1:1,plaintext://127.0.0.1:2",                        "PLAINTEXT is there twice"                                     },
        {"listeners=FOO://:1",                                                               "FOO is not in listener.security.protocol.map"                 },
        {"listeners=SSL://127.0.0.1:1",                                                      "SSL asks for SSL, which is not served"                        },
        {"listeners=A://127.0.0.1:1\nlistener.security.protocol.map=A:X",
         "the protocol of A is none"                                                                                                                        },
        {"listeners=A://127.0.0.1:1,B://127.0.0.1:1\n"
         "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT",                  "A and B share port 1"                                         },
        {"listeners=PLAINTEXT://127.0.0.1:1\ninter.broker.listener.name=X",
         "X is not in listeners"                                                                                                                            },
        {"listeners=PLAINTEXT://127.0.0.1:1\ncontroller.listener.names=C",                   "C is not in listeners"                                        },
        {"listeners=PLAINTEXT://127.0.0.1:1\ncontroller.listener.names=PLAINTEXT\n"
         "inter.broker.listener.name=PLAINTEXT",                                    "PLAINTEXT is a controller's listener"                         },
        {"advertised.listeners=X://a:1",                                                     "X is not in listeners"                                        },
        {"advertised.listeners=PLAINTEXT://0.0.0.0:1",                                       "no address that a client can reach"                           },
        {"advertised.listeners=PLAINTEXT://[::]:1",                                          "no address that a client can reach"                           },
        {"listeners=PLAINTEXT://no.such.host.invalid:1",                                     "has no address here"                                          },
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct rig rig;
        rig_open(&rig);
        bool taken = load(&rig, cases[i].text);
        if (taken || strstr(rig.said, cases[i].said) == NULL)
            fail_msg("%s\nwas %s and said: %s", cases[i].text, taken ? "taken" : "refused",
                     rig.said);
        rig_close(&rig);
    }
}

/* A controller alone: no listener between brokers is asked for. */
static void controller_alone(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    assert_true(load(&rig, "process.roles=controller\nnode.id=9\ncontroller.listener.names=C\n"
                           "listeners=C://127.0.0.1:9093"));
    assert_true(rig.settings.controller_only);
    assert_int_equal(rig.settings.listener_count, 1);
    assert_true(rig.settings.listeners[0].controller);
    assert_string_equal(rig.settings.listeners[0].advertised_host, "127.0.0.1");
    rig_close(&rig);
    rig_open(&rig); /* On all addresses: brokers get the host's name. */
    assert_true(
        load(&rig, "process.roles=controller\ncontroller.listener.names=C\nlisteners=C://:9093"));
    assert_string_not_equal(rig.settings.listeners[0].advertised_host, "");
    rig_close(&rig);
}

static void command_line(void **state)
{
    (void)state;
    static const char *const bad[] = {"num.partitions", "=3", "num.partitions=x"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct rig rig;
        rig_open(&rig);
        struct settings_source source = {.set = &bad[i], .set_count = 1};
        assert_false(settings_load(&rig.settings, &source, &rig.arena, &rig.say));
        assert_non_null(strstr(rig.said, "--set"));
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_given),
        cmocka_unit_test(file_of_kafka),
        cmocka_unit_test(ignored_settings_are_told),
        cmocka_unit_test(order_of_sources),
        cmocka_unit_test(warned),
        cmocka_unit_test(ignored_settings_are_told),
        cmocka_unit_test(refused),
        cmocka_unit_test(command_line),
        cmocka_unit_test(controller_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
