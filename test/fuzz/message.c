/* message.c - bytes of anybody as the body of the message and version that the first three bytes
 * choose.
 *
 * Checked beside the sanitizers: decoding and the walk agree on what is a message; it costs at most
 * WIRE_MEMORY_FACTOR times its bytes; what was decoded encodes, and that decodes to the same bytes.
 */
#include "base/limits.h"
#include "sys/memory.h"
#include "wire/walk.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX 65536u

static void see(void *context, const struct wire_event *event)
{
    uint64_t *sum = context;
    *sum += event->offset + event->length;
}

static uint8_t *encode(const struct wire_form *form,
                       const void *value,
                       struct arena *arena,
                       size_t *size)
{
    *size = wire_size(form, value);
    uint8_t *bytes = arena_get(arena, *size + 1);
    size_t written = wire_encode(form, value, bytes, NULL, 0, NULL);
    assert(written == *size);
    return bytes;
}

static void check(const struct wire_message *message,
                  const struct wire_form *form,
                  struct view body)
{
    struct mem mem;
    struct arena arena, own;
    uint64_t sum = 0;

    memory_init(&mem, 0);
    arena_init(&arena, &mem, 0);
    arena_init(&own, &mem, 0);
    struct reader walked = reader_of(body), in = reader_of(body);
    bool walks = wire_walk(&walked, form, &(struct wire_visitor){see, &sum});
    void *value = arena_get(&own, message->size_bytes + 1);
    bool decodes = wire_decode(&in, form, &arena, value);
    assert(arena.used_bytes <= WIRE_MEMORY_FACTOR * (uint64_t)body.size + WIRE_MEMORY_FLOOR);
    /* Only the memory of a request may be refused where the walk, which takes none, goes on. */
    assert(walks == decodes || in.fault == READER_MEMORY);
    if (decodes) {
        assert(walked.at == in.at);
        size_t first_size, second_size;
        uint8_t *first = encode(form, value, &own, &first_size);
        void *again = arena_get(&own, message->size_bytes + 1);
        struct reader back = reader_of(view_of(first, (uint32_t)first_size));
        if (wire_decode(&back, form, &own, again)) {
            assert(reader_left(&back) == 0);
            uint8_t *second = encode(form, again, &own, &second_size);
            assert(second_size == first_size && memcmp(first, second, first_size) == 0);
        } else {
            assert(back.fault == READER_MEMORY);
        }
    }
    arena_free(&own);
    arena_free(&arena);
    assert(mem.used_bytes == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t count;

    if (size < 3 || size > INPUT_MAX) return 0;
    const struct wire_message *const *messages = wire_messages(&count);
    const struct wire_message *message = messages[(data[0] << 8 | data[1]) % count];
    int16_t span = (int16_t)(message->version_max - message->version_min + 1);
    const struct wire_form *form =
        wire_form(message, (int16_t)(message->version_min + data[2] % span));
    uint8_t *copy = malloc(size - 2);
    memcpy(copy, data + 3, size - 3);
    check(message, form, view_of(copy, (uint32_t)size - 3));
    free(copy);
    return 0;
}
