/* memory_test.c - what is counted, and where it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sys/memory.h"

static void limits(void **state)
{
    (void)state;
    struct mem mem;
    memory_init(&mem, 100);
    void *block = mem_get(&mem, 60);
    assert_non_null(block);
    assert_null(mem_get(&mem, 41));
    mem_put(&mem, block, 60);
    assert_int_equal(mem_used(&mem), 0);
}

/* A job takes from the node, within the node's limit and its own. */
static void shares(void **state)
{
    (void)state;
    struct mem mem;
    struct memory_share one, two;
    memory_init(&mem, 100);
    memory_share(&one, &mem, 0);
    memory_share(&two, &mem, 30);
    void *first = mem_get(&one.mem, 60);
    assert_non_null(first);
    assert_int_equal(mem_used(&mem), 60);
    assert_null(mem_get(&one.mem, 41)); /* The node's. */
    assert_null(mem_get(&two.mem, 31)); /* Its own. */
    void *second = mem_take(&two.mem, 30);
    assert_non_null(second);
    assert_int_equal(mem_used(&mem), 90);
    assert_null(mem_get(&mem, 11)); /* What jobs have counts for all. */
    mem_put(&two.mem, second, 30);
    mem_put(&mem, first, 60); /* What a job leaves is the node's. */
    assert_int_equal(mem_used(&mem), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits),
        cmocka_unit_test(shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
