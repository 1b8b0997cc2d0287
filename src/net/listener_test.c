/* listener_test.c - a listener that is taken away: who asked is answered, then all of its
 * connections end, on every shard; the other listener's stay. */
#include "net/rig_test.h"

/* A client of another listener than the rig's. */
static int other_client(struct rig *rig, struct listener *other)
{
    struct listener *first = rig->listener;
    rig->listener = other;
    int fd = client_open(rig);
    rig->listener = first;
    return fd;
}

static struct listener *other_listener(struct rig *rig)
{
    struct listener *other;
    struct io_address address = {.host = "127.0.0.1"};
    struct listener_options options = {.name = VIEW("OTHER"),
                                       .kind = WIRE_BROKER,
                                       .connections_max = UINT32_MAX,
                                       .addresses = &address,
                                       .address_count = 1};
    rig->shard->state->hooks.admit = NULL; /* It knows one listener. */
    assert_int_equal(shard_listen(rig->shard, &options, &other), 0);
    return other;
}

static void taken_away(void **state)
{
    (void)state;
    struct rig rig;
    uint8_t frame[256], size[4];
    int idle[4], asking;
    rig_open_shards(&rig, default_settings(), 2);
    struct listener *other = other_listener(&rig);
    for (int i = 0; i < 4; i++) /* On both shards. */
        idle[i] = other_client(&rig, other);
    asking = other_client(&rig, other);
    int stays = client_open(&rig);
    client_send(asking, frame, frame_make(frame, 13, 5, 1));
    for (int i = 0; i < 100 && rig.parked_count == 0; i++)
        rig_turn(&rig);
    assert_int_equal(rig.parked_count, 1);

    shard_listener_end(rig.shard, other);
    for (int i = 0; i < 4; i++) {
        assert_true(client_closed(&rig, idle[i]));
        close(idle[i]);
    }
    assert_true(client_silent(&rig, asking));
    assert_true(client_silent(&rig, stays));
    answer(rig.parked[0]);
    assert_true(client_receive(&rig, asking, size, sizeof(size)));
    uint8_t body[256];
    assert_true(client_receive(&rig, asking, body, load_be32(size)));
    assert_true(client_closed(&rig, asking));
    close(asking);

    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(other->bound[0].port)};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int late = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(late, (struct sockaddr *)&to, sizeof(to)), -1);
    close(late);
    assert_true(client_silent(&rig, stays));
    close(stays);
    rig_close(&rig);
}

/* The node ends before the connections had to. */
static void taken_away_at_the_end(void **state)
{
    (void)state;
    struct rig rig;
    uint8_t frame[256];
    rig_open_shards(&rig, default_settings(), 2);
    int fd = client_open(&rig);
    client_send(fd, frame, frame_make(frame, 13, 5, 1));
    for (int i = 0; i < 100 && rig.parked_count == 0; i++)
        rig_turn(&rig);
    shard_listener_end(rig.shard, rig.listener);
    turns(&rig, 2);
    assert_int_equal(rig.gone, 0);
    rig_close(&rig);
    assert_int_equal(rig.gone, 1);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken_away),
        cmocka_unit_test(taken_away_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
