/* scram_keys.c - what a SCRAM record holds of a password (RFC 5802, 3). */
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "broker/controller_inside.h"

static bool hmac(const EVP_MD *hash, struct view key, struct view text, uint8_t out[64])
{
    unsigned int size = 0;
    const void *bytes = key.size > 0 ? (const void *)key.data : "";
    return HMAC(hash, bytes, (int)key.size, text.data, text.size, out, &size) != NULL;
}

bool scram_keys(int8_t mechanism, struct view salted, struct cluster_scram_keys *out)
{
    const EVP_MD *hash = mechanism == CLUSTER_SCRAM_SHA_512 ? EVP_sha512() : EVP_sha256();
    uint8_t client[64];
    out->size_bytes = (uint32_t)EVP_MD_size(hash);
    return hmac(hash, salted, VIEW("Client Key"), client) &&
           hmac(hash, salted, VIEW("Server Key"), out->server) &&
           EVP_Digest(client, out->size_bytes, out->stored, NULL, hash, NULL) == 1;
}
