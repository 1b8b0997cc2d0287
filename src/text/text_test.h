/* text_test.h - what tests of this folder share: a counted heap and an arena for each test. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
/* cmocka wants the lines above first. */
#include <cmocka.h>

#include "base/arena.h"
#include "sys/memory.h"

static struct mem mem;
static struct arena arena;

static int setup(void **state)
{
    memory_init(&mem, 0);
    arena_init(&arena, &mem, 0);
    return 0;
}

static int teardown(void **state)
{
    arena_free(&arena);
    assert_int_equal(mem.used_bytes, 0);
    return 0;
}
