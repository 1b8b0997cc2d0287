/* core_test.h - what the tests of this folder share: a counted heap that can be told to fail, and
 * records from hexadecimal text. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
/* cmocka wants the lines above first. */
#include <cmocka.h>

#include "core/step.h"

/* base.h's assert must win over whatever a library brought. */
#undef assert
#define assert(condition) (LIKELY(condition) ? (void)0 : __builtin_trap())

struct rig_mem {
    struct mem mem;
    int64_t fail_in; /* The so-manieth allocation from now fails; < 0: none does. */
};

static void *rig_get(struct mem *mem, size_t size)
{
    struct rig_mem *rig = container_of(mem, struct rig_mem, mem);
    if (rig->fail_in == 0) return NULL;
    if (rig->fail_in > 0) rig->fail_in--;
    return calloc(1, size);
}

static void rig_put(struct mem *mem, void *block, size_t size)
{
    (void)mem;
    (void)size;
    free(block);
}

static inline void rig_mem_init(struct rig_mem *rig)
{
    *rig = (struct rig_mem){
        .mem = {.get = rig_get, .put = rig_put},
          .fail_in = -1
    };
}

/* A copy that lives until the test frees it; null stays null. */
static inline struct view rig_heap(struct view bytes)
{
    if (bytes.null) return VIEW_NULL;
    uint8_t *copy = malloc(bytes.size + 1);
    memcpy(copy, bytes.data, bytes.size);
    return view_of(copy, bytes.size);
}

static inline uint8_t rig_digit(char c)
{
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* The bytes of hexadecimal text (spaces are skipped), in the arena. */
static inline struct view rig_hex(struct arena *arena, const char *text)
{
    uint8_t *bytes = arena_get(arena, strlen(text) / 2 + 1);
    assert(bytes != NULL);
    uint32_t size = 0;
    for (; *text != '\0'; text++) {
        if (*text == ' ' || *text == '\n') continue;
        bytes[size++] = (uint8_t)(rig_digit(text[0]) << 4 | rig_digit(text[1]));
        text++;
    }
    return view_of(bytes, size);
}
