/* refused.h - the authorizer of a unit test: it refuses the rights that the test lists, one by one.
 *
 * For one file of a program, which defines auth_is_broker() too: the linker takes both instead of
 * those of src/broker/auth.c. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/broker.h"

#define RIGHTS_MAX 4u

struct right {
    enum auth_operation operation;
    enum auth_resource resource;
    const char *name;
};

/* No right is asked for but by requests, and those come from one client. */
static struct {
    struct right items[RIGHTS_MAX];
    uint32_t count;
    uint32_t times; /* How often it said no. */
} refused;

bool auth_allows(const struct request *request,
                 enum auth_operation operation,
                 enum auth_resource resource,
                 struct view name)
{
    assert_true(view_is(request->principal, "User:ANONYMOUS"));
    for (uint32_t i = 0; i < refused.count; i++) {
        const struct right *right = &refused.items[i];
        if (right->operation != operation || right->resource != resource) continue;
        if (!view_is(name, right->name)) continue;
        refused.times++;
        return false;
    }
    return true;
}

static void refuse(enum auth_operation operation, enum auth_resource resource, const char *name)
{
    assert_true(refused.count < RIGHTS_MAX);
    refused.items[refused.count++] = (struct right){operation, resource, name};
    refused.times = 0;
}

/* Everything is allowed again. */
static void refuse_nothing(void)
{
    refused.count = 0;
}
