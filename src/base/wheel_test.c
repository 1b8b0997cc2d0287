/* wheel_test.c - against a list that is searched: nothing early, nothing late, nothing lost. */
#include <stdarg.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/wheel.h"

#define ENTRIES 500

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static int64_t draw_distance(uint64_t *state)
{
    static const int64_t spans[] = {3, 64, 70, 5000, 300000, 20000000, INT64_C(70000000000)};
    return (int64_t)(draw(state) % (uint64_t)spans[draw(state) % 7]);
}

static void test_against_list(void **state)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        static struct wheel wheel;
        static struct wheel_entry entries[ENTRIES];
        uint64_t random = seed;
        int64_t now = (int64_t)draw(&random);
        wheel_init(&wheel, now);
        for (int i = 0; i < ENTRIES; i++)
            wheel_entry_init(&entries[i]);
        for (int round = 0; round < 300; round++) {
            struct wheel_entry *one = &entries[draw(&random) % ENTRIES];
            switch (draw(&random) % 4) {
            case 0:
            case 1: wheel_set(&wheel, one, now + draw_distance(&random)); break;
            case 2: wheel_defer(&wheel, one, now + draw_distance(&random)); break;
            case 3: wheel_cancel(&wheel, one); break;
            }
            if (draw(&random) % 3 != 0) continue;
            now += draw_distance(&random) / (int64_t)(1 + draw(&random) % 50);
            struct wheel_entry *entry;
            int64_t last = INT64_MIN;
            while ((entry = wheel_expired(&wheel, now)) != NULL) {
                assert_true(entry->deadline_ms <= now);
                assert_false(wheel_armed(entry));
                last = entry->deadline_ms;
            }
            (void)last;
            int64_t earliest = INT64_MAX;
            uint32_t armed = 0;
            for (int i = 0; i < ENTRIES; i++) {
                if (!wheel_armed(&entries[i])) continue;
                armed++;
                assert_true(entries[i].deadline_ms > now);
                earliest = MIN(earliest, entries[i].deadline_ms);
            }
            assert_int_equal(armed, wheel.count);
            assert_true(wheel_next_ms(&wheel) <= earliest);
            assert_true(wheel_next_ms(&wheel) > now || armed == 0);
        }
    }
}

/* A heartbeat's way: the deadline moves on and on; the entry comes up once, at the last one. */
static void test_defer(void **state)
{
    struct wheel *wheel = malloc(sizeof(*wheel));
    struct wheel_entry entry;
    wheel_init(wheel, 0);
    wheel_entry_init(&entry);
    wheel_set(wheel, &entry, 10000);
    for (int64_t now = 0; now < 100000; now += 3000) {
        assert_null(wheel_expired(wheel, now));
        wheel_defer(wheel, &entry, now + 10000);
    }
    assert_null(wheel_expired(wheel, 108999));
    assert_ptr_equal(wheel_expired(wheel, 109000), &entry);
    assert_int_equal(wheel->count, 0);
    free(wheel);
}

/* An entry that sets itself for a time that has passed, or for now, comes up once a round and keeps
 * no other from it; the next millisecond it comes up again. */
static void test_round(void **state)
{
    (void)state;
    struct wheel *wheel = malloc(sizeof(*wheel));
    struct wheel_entry spinning, other, new;
    wheel_init(wheel, 0);
    wheel_entry_init(&spinning);
    wheel_entry_init(&other);
    wheel_entry_init(&new);
    wheel_set(wheel, &spinning, 100);
    wheel_set(wheel, &other, 5000);
    for (int64_t now = 6000; now < 6003; now++) {
        assert_ptr_equal(wheel_expired(wheel, now), &spinning);
        wheel_set(wheel, &spinning, now == 6000 ? 100 : now);
        if (now == 6000) {
            wheel_set(wheel, &new, 200); /* Of another one in the round it holds too. */
            assert_ptr_equal(wheel_expired(wheel, now), &other);
        }
        if (now == 6001) assert_ptr_equal(wheel_expired(wheel, now), &new);
        assert_null(wheel_expired(wheel, now));
        assert_int_equal(wheel_next_ms(wheel), now + 1);
    }
    wheel_cancel(wheel, &spinning);
    wheel_set(wheel, &spinning, 50); /* Between rounds: in the next one, whenever that is. */
    assert_int_equal(spinning.deadline_ms, 50);
    assert_ptr_equal(wheel_expired(wheel, 6002), &spinning);
    free(wheel);
}

/* What was not done with comes up again at once, after a round that was broken off too. */
static void test_put_back(void **state)
{
    (void)state;
    struct wheel *wheel = malloc(sizeof(*wheel));
    struct wheel_entry one, other;
    wheel_init(wheel, 0);
    wheel_entry_init(&one);
    wheel_entry_init(&other);
    wheel_set(wheel, &one, 100);
    wheel_set(wheel, &other, 200);
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(wheel_expired(wheel, 300), &one);
        wheel_put_back(wheel, &one);
    }
    assert_ptr_equal(wheel_expired(wheel, 300), &one);
    assert_ptr_equal(wheel_expired(wheel, 300), &other);
    assert_null(wheel_expired(wheel, 300));
    assert_int_equal(wheel->count, 0);
    free(wheel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_list),
                                       cmocka_unit_test(test_defer), cmocka_unit_test(test_round),
                                       cmocka_unit_test(test_put_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
