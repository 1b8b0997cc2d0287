/* frame.c - bytes of anybody as a frame: what the tools make of it.
 *
 * The first byte chooses: bit 0 a request that says what it is, else a response whose key and
 * version are in the next two bytes. Checked beside the sanitizers: a frame that reads whole has no
 * fault outside its records, one that does not has; JSON of a whole frame can be read back; all
 * memory is given back. */
#include "sys/memory.h"
#include "text/json.h"
#include "text/tree.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX 65536u

/* A fault that the walk of the message itself told, not that of a record batch in it. */
static bool has_own_fault(const struct node_list *list)
{
    for (uint32_t i = 0; i < list->problem_count; i++)
        if (list->problems[i].fault && !list->problems[i].in_records) return true;
    return false;
}

static bool choose(const uint8_t *data, size_t size, struct view frame, struct frame_kind *kind)
{
    if (data[0] & 1) return frame_request_kind(frame, kind) == FRAME_KNOWN;
    const struct wire_api *api = wire_api(data[1] % 95);
    int16_t span = (int16_t)(api->response->version_max - api->response->version_min + 1);
    *kind = frame_kind_of(api->response, (int16_t)(api->response->version_min + data[2] % span));
    return true;
}

static void show(struct mem *mem, const struct frame_kind *kind, struct view frame)
{
    struct arena arena;
    struct node_list list;
    struct out out;

    arena_init(&arena, mem, 0);
    node_list_init(&list, &arena);
    list.value_limit = 64;
    out_init(&out, mem);
    if (kind == NULL) {
        frame_unknown_nodes(&list, frame);
    } else {
        frame_nodes(&list, kind, frame);
        assert(list.failed || frame_is_whole(kind, frame) == !has_own_fault(&list));
        (void)json_frame(&out, kind, frame);
        out_reset(&out);
    }
    tree_print(&out, &list, &(struct tree_style){.color = true, .about_max = 20});
    tree_rows(&out, &list, frame, &(struct tree_style){0});
    tree_problems(&out, &list, "frame");
    out_free(&out);
    arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mem mem;
    struct frame_kind kind;

    if (size < 3 || size > INPUT_MAX) return 0;
    memory_init(&mem, 0);
    /* A block of its own, so that a byte read beyond is seen. */
    uint8_t *copy = malloc(size - 2);
    memcpy(copy, data + 3, size - 3);
    struct view frame = view_of(copy, (uint32_t)size - 3);
    bool known = choose(data, size, frame, &kind);
    show(&mem, known ? &kind : NULL, frame);
    free(copy);
    assert(mem.used_bytes == 0);
    return 0;
}
