/* resident_test.c - clean pages go, changed ones stay as they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/resident.h"

/* What the kernel maps around a touch, at most. Here it is aligned so that no other constant that a
 * test touches is in the middle one. */
#define AROUND 65536u

/* Constants of a file, like any: read-only, and the same before as after. */
static const uint8_t constants[3 * AROUND]
    __attribute__((aligned(AROUND))) = {[0] = 1, [AROUND + 5000] = 4, [3 * AROUND - 1] = 9};
static const volatile uint8_t *const first = &constants[0];
static const volatile uint8_t *const middle = &constants[AROUND + 5000];
static const volatile uint8_t *const last = &constants[3 * AROUND - 1];

static bool is_mapped(const volatile uint8_t *at)
{
    uint64_t entry = 0;
    FILE *pagemap = fopen("/proc/self/pagemap", "r");
    assert_non_null(pagemap);
    long page_bytes = sysconf(_SC_PAGESIZE);
    assert_int_equal(
        fseek(pagemap, (long)((uintptr_t)at / (uintptr_t)page_bytes * sizeof entry), SEEK_SET), 0);
    assert_int_equal(fread(&entry, sizeof entry, 1, pagemap), 1);
    fclose(pagemap);
    return entry >> 63;
}

static void clean_pages_go(void **state)
{
    (void)state;
    assert_int_equal(*middle, 4);
    assert_true(is_mapped(middle));
    assert_true(resident_let_go() > 0);
    assert_false(is_mapped(middle));
    assert_int_equal(*middle, 4); /* And come back. */
    assert_true(is_mapped(middle));
}

/* What a debugger does to code. */
static void changed_pages_stay(void **state)
{
    (void)state;
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t at = (uintptr_t)middle;
    void *page = (void *)(at & ~(page_bytes - 1));
    assert_int_equal(mprotect(page, page_bytes, PROT_READ | PROT_WRITE), 0);
    *(volatile uint8_t *)at = 77;
    assert_int_equal(mprotect(page, page_bytes, PROT_READ), 0);
    assert_int_equal(*last, 9);
    assert_true(resident_let_go() > 0);
    assert_true(is_mapped(middle));
    assert_int_equal(*middle, 77);
    assert_int_equal(*last, 9);
    assert_int_equal(*first, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_pages_go),
        cmocka_unit_test(changed_pages_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
