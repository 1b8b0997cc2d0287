/* decode.c - print a Kafka request from standard input, size and all, as an object tree.
 *
 *     cc decode.c $(pkg-config --cflags --libs dohle-wire) -o decode */
#include <dohle-wire.h>

#include <stdio.h>

int main(void)
{
    static uint8_t frame[1 << 20];
    struct view bytes = view_of(frame, (uint32_t)fread(frame, 1, sizeof(frame), stdin));
    struct frame_kind kind;
    if (frame_request_kind(bytes, &kind) != FRAME_KNOWN) {
        fputs("decode: no request of a known API and version\n", stderr);
        return 1;
    }
    struct mem mem; /* Over malloc, without a limit. */
    struct arena arena;
    struct node_list nodes;
    struct out text;
    memory_init(&mem, 0);
    arena_init(&arena, &mem, 0);
    node_list_init(&nodes, &arena);
    frame_nodes(&nodes, &kind, bytes);
    out_init(&text, &mem);
    tree_print(&text, &nodes, &(struct tree_style){0});
    tree_problems(&text, &nodes, "request");
    fwrite(text.text, 1, text.size_bytes, stdout);
    bool damaged = node_list_faulty(&nodes);
    out_free(&text);
    arena_free(&arena);
    return damaged;
}
