/* scram_keys.c - what a SCRAM record holds of a password (RFC 5802, 3).
 *
 * The hash functions alone are taken of libcrypto, and HMAC (RFC 2104) is written of them: its own
 * HMAC and EVP bring its tables of algorithms along, 3.5 MB of program and 350 KiB of memory for
 * two messages. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "broker/controller_inside.h"

#define BLOCK_BYTES_MAX 128

struct piece {
    const void *bytes;
    size_t size;
};

static void hash(int8_t mechanism, struct piece one, struct piece two, uint8_t out[64])
{
    if (mechanism == CLUSTER_SCRAM_SHA_512) {
        SHA512_CTX state;
        SHA512_Init(&state);
        SHA512_Update(&state, one.bytes, one.size);
        SHA512_Update(&state, two.bytes, two.size);
        SHA512_Final(out, &state);
    } else {
        SHA256_CTX state;
        SHA256_Init(&state);
        SHA256_Update(&state, one.bytes, one.size);
        SHA256_Update(&state, two.bytes, two.size);
        SHA256_Final(out, &state);
    }
}

static void hmac(int8_t mechanism, struct view key, struct view text, uint8_t out[64])
{
    bool wide = mechanism == CLUSTER_SCRAM_SHA_512;
    size_t block_bytes = wide ? 128 : 64, size_bytes = wide ? 64 : 32;
    uint8_t inner[BLOCK_BYTES_MAX] = {0}, outer[BLOCK_BYTES_MAX], digest[64];
    if (key.size > block_bytes)
        hash(mechanism, (struct piece){key.data, key.size}, (struct piece){"", 0}, inner);
    else if (key.size > 0)
        memcpy(inner, key.data, key.size);
    for (size_t i = 0; i < block_bytes; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    hash(mechanism, (struct piece){inner, block_bytes}, (struct piece){text.data, text.size},
         digest);
    hash(mechanism, (struct piece){outer, block_bytes}, (struct piece){digest, size_bytes}, out);
    OPENSSL_cleanse(inner, sizeof(inner));
    OPENSSL_cleanse(outer, sizeof(outer));
}

void scram_keys(int8_t mechanism, struct view salted, struct cluster_scram_keys *out)
{
    uint8_t client[64];
    out->size_bytes = mechanism == CLUSTER_SCRAM_SHA_512 ? 64 : 32;
    hmac(mechanism, salted, VIEW("Client Key"), client);
    hmac(mechanism, salted, VIEW("Server Key"), out->server);
    hash(mechanism, (struct piece){client, out->size_bytes}, (struct piece){"", 0}, out->stored);
    OPENSSL_cleanse(client, sizeof(client));
}
