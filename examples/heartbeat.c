/* heartbeat.c - a heartbeat into bytes and back, by its struct and without a heap allocation.
 *
 *     cc heartbeat.c $(pkg-config --cflags --libs dohle-wire) -o heartbeat */
#include <dohle-wire.h>

#include <stdio.h>

int main(void)
{
    const struct wire_form *form = wire_form(&wire_heartbeat_request, 4);
    struct heartbeat_request beat, back;
    struct mem mem;
    struct arena arena; /* For arrays; a heartbeat has none. */
    uint8_t bytes[64];

    wire_defaults(&wire_heartbeat_request, &beat);
    beat.group_id = VIEW("orders");
    beat.generation_id = 7;
    beat.member_id = VIEW("consumer-1");
    if (wire_size(form, &beat) > sizeof(bytes)) return 1;
    size_t size = wire_encode(form, &beat, bytes, NULL, 0, NULL);

    memory_init(&mem, 0);
    arena_init(&arena, &mem, 0);
    struct reader in = reader_of(view_of(bytes, (uint32_t)size));
    if (!wire_decode(&in, form, &arena, &back) || reader_left(&in) != 0) return 1;
    printf("%zu bytes, member %.*s of %.*s in generation %d\n", size, (int)back.member_id.size,
           back.member_id.data, (int)back.group_id.size, back.group_id.data, back.generation_id);
    arena_free(&arena);
    return 0;
}
