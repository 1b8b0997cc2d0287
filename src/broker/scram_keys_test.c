/* scram_keys_test.c - the keys of RFC 7677's password and salt, computed by Python's hmac and
 * hashlib. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
/* cmocka wants the lines above first. */
#include <cmocka.h>

#include "broker/controller_inside.h"

static void bytes_of(const char *hex, uint8_t *out, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        char two[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        out[i] = (uint8_t)strtoul(two, NULL, 16);
    }
}

static void check(int8_t mechanism, uint32_t size, const char *hex[3])
{
    uint8_t salted[64], stored[64], server[64];
    struct cluster_scram_keys keys;
    bytes_of(hex[0], salted, size);
    bytes_of(hex[1], stored, size);
    bytes_of(hex[2], server, size);
    scram_keys(mechanism, view_of(salted, size), &keys);
    assert_int_equal(keys.size_bytes, size);
    assert_memory_equal(keys.stored, stored, size);
    assert_memory_equal(keys.server, server, size);
}

static void sha_256(void **state)
{
    (void)state;
    check(CLUSTER_SCRAM_SHA_256, 32,
          (const char *[]){"c4a49510323ab4f952cac1fa99441939e78ea74d6be81ddf7096e87513dc615d",
                           "586e5df283e6dceb5c3e791d8b8528ec191e664045ce971792e2e6b5bb13e2a6",
                           "c1f3cbc1c13a9d35a14c0990eed97629ea225863e566a4314ab99f3f00e5d9d5"});
}

static void sha_512(void **state)
{
    (void)state;
    check(CLUSTER_SCRAM_SHA_512, 64,
          (const char *[]){"f16efe1be67f1d09502ebd5ed9262fddffba5a377ab4f0b687e5ed5ba0f50686"
                           "b8a4ae166476da8ab3b951d2fa9238b63998f45461bc33a464814949cec9631d",
                           "e8002e6f7d3ae446119b216933644dc2a2be7869eb918b8459b5e7d7d2ec1260"
                           "6aceef106825cd735170a675fd3611f684affad1dce3f43a0ee43bd590e1dbbe",
                           "8d91db6230b5687874fe129bc7206e1858c3ae08e02934f57ac03b6b05a229c4"
                           "59d28ff46f5c9611e6c179256490215ec1ff759cb0df285db89af0f99e613aac"});
}

/* A password of any size comes from the network: none, and one longer than the hash's block. */
static void sizes(void **state)
{
    uint8_t salted[300];
    struct cluster_scram_keys none, long_one;
    (void)state;
    memset(salted, 7, sizeof(salted));
    scram_keys(CLUSTER_SCRAM_SHA_256, VIEW_EMPTY, &none);
    scram_keys(CLUSTER_SCRAM_SHA_256, view_of(salted, sizeof(salted)), &long_one);
    assert_memory_not_equal(none.stored, long_one.stored, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha_256),
        cmocka_unit_test(sha_512),
        cmocka_unit_test(sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
