/* run_test.c - a few seeds of each world in one process: what a build with sanitizers sees of them.
 *
 * Many more are run by test/sim/run-test, without. */
#include "sim/run.h"

#include "core/core_test.h"

#define SEEDS 12

static void seeds_pass(enum run_world world)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct run_options options = {.seed = seed, .world = world};
        struct run_result result;
        run_seed(&options, &result);
        if (result.violation[0] != '\0')
            fail_msg("seed %llu: %s", (unsigned long long)seed, result.violation);
        assert_true(result.events > 1000);
    }
}

static void test_clients(void **state)
{
    (void)state;
    seeds_pass(RUN_CLIENTS);
}

static void test_controller(void **state)
{
    (void)state;
    seeds_pass(RUN_CONTROLLER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clients),
        cmocka_unit_test(test_controller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
