/* json.c - text of anybody as the JSON of the message and version that the first three bytes
 * choose.
 *
 * Checked beside the sanitizers: what is taken encodes, its bytes give JSON, and that JSON gives
 * the same bytes again; what is refused has a reason; all memory is given back. */
#include "text/json.h"
#include "sys/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX 65536u

static struct view encode(const struct wire_form *form, const void *value, struct arena *arena)
{
    size_t size = wire_size(form, value);
    uint8_t *bytes = arena_get(arena, size + 1);
    size_t written = wire_encode(form, value, bytes, NULL, 0, NULL);
    assert(written == size);
    return view_of(bytes, (uint32_t)size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mem mem;
    struct arena arena;
    struct json_fault fault;
    struct out json;
    uint32_t count;

    if (size < 3 || size > INPUT_MAX) return 0;
    const struct wire_message *const *messages = wire_messages(&count);
    const struct wire_message *message = messages[(data[0] << 8 | data[1]) % count];
    int16_t span = (int16_t)(message->version_max - message->version_min + 1);
    int16_t version = (int16_t)(message->version_min + data[2] % span);
    const struct wire_form *form = wire_form(message, version);

    memory_init(&mem, 0);
    arena_init(&arena, &mem, 0);
    void *value =
        json_read(view_of(data + 3, (uint32_t)size - 3), message, version, &arena, &fault);
    if (value == NULL) {
        assert(fault.text[0] != '\0');
    } else {
        struct view first = encode(form, value, &arena);
        out_init(&json, &mem);
        struct json_written written = json_write(&json, form, first);
        assert(!written.damaged && written.size_bytes == first.size);
        void *again = json_read(out_so_far(&json), message, version, &arena, &fault);
        assert(again != NULL);
        /* Strings that are no UTF-8 come back as U+FFFD, which is longer. */
        if (out_is_utf8(view_of(data + 3, (uint32_t)size - 3)))
            assert(view_equal(encode(form, again, &arena), first));
        struct out pretty;
        out_init(&pretty, &mem);
        json_pretty(&pretty, out_so_far(&json));
        out_free(&pretty);
        out_free(&json);
    }
    arena_free(&arena);
    assert(mem.used_bytes == 0);
    return 0;
}
