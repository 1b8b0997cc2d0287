/* arena.c - a list of chunks, newest first; a large request gets a chunk of its own. */
#include "base/arena.h"

#include "base/limits.h"

struct arena_chunk {
    struct arena_chunk *next;
    size_t size_bytes; /* Of the whole block, this header included. */
    uint8_t bytes[] __attribute__((aligned(16)));
};

void arena_init(struct arena *arena, struct mem *mem, size_t limit_bytes)
{
    assert(mem != NULL);
    *arena = (struct arena){.mem = mem, .limit_bytes = limit_bytes};
}

static bool arena_grow(struct arena *arena, size_t size_bytes)
{
    size_t want = sizeof(struct arena_chunk) + size_bytes;
    if (want < ARENA_CHUNK_BYTES) want = ARENA_CHUNK_BYTES;
    /* Chunks double, so that a large decode takes few of them. */
    if (arena->first != NULL && want < 2 * arena->first->size_bytes &&
        2 * arena->first->size_bytes <= ARENA_KEEP_BYTES)
        want = 2 * arena->first->size_bytes;

    struct arena_chunk *chunk = mem_take(arena->mem, want);
    if (chunk == NULL) return false;
    chunk->next = arena->first;
    chunk->size_bytes = want;
    arena->first = chunk;
    arena->at = chunk->bytes;
    arena->end = (uint8_t *)chunk + want;
    return true;
}

void *arena_take_slow(struct arena *arena, size_t size_bytes)
{
    size_t size = (size_bytes + 7) & ~(size_t)7;
    if (size < size_bytes ||
        (arena->limit_bytes != 0 && size > arena->limit_bytes - arena->used_bytes)) {
        arena->failed = true;
        return NULL;
    }
    if (size > (size_t)(arena->end - arena->at) && !arena_grow(arena, size)) {
        arena->failed = true;
        return NULL;
    }
    void *block = arena->at;
    arena->at += size;
    arena->used_bytes += size;
    return block;
}

void *arena_get(struct arena *arena, size_t size_bytes)
{
    void *block = arena_take(arena, size_bytes);
    if (block != NULL) memset(block, 0, size_bytes);
    return block;
}

struct view arena_copy(struct arena *arena, struct view bytes)
{
    if (bytes.null || bytes.size == 0) return bytes;
    uint8_t *copy = arena_get(arena, bytes.size);
    if (copy == NULL) return VIEW_NULL;
    memcpy(copy, bytes.data, bytes.size);
    return view_of(copy, bytes.size);
}

void arena_reset(struct arena *arena)
{
    if (arena->used_bytes == 0 && !arena->failed) return;
    /* The newest chunk is the largest usual one: keep it alone, if it is not too large. */
    struct arena_chunk *keep = arena->first;
    if (keep != NULL && keep->size_bytes > ARENA_KEEP_BYTES) keep = NULL;
    struct arena_chunk *chunk = keep != NULL ? keep->next : arena->first;
    while (chunk != NULL) {
        struct arena_chunk *next = chunk->next;
        mem_put(arena->mem, chunk, chunk->size_bytes);
        chunk = next;
    }
    if (keep != NULL) keep->next = NULL;
    arena->first = keep;
    arena->at = keep != NULL ? keep->bytes : NULL;
    arena->end = keep != NULL ? (uint8_t *)keep + keep->size_bytes : NULL;
    arena->used_bytes = 0;
    arena->failed = false;
}

void arena_free(struct arena *arena)
{
    arena_reset(arena);
    if (arena->first != NULL) mem_put(arena->mem, arena->first, arena->first->size_bytes);
    arena->first = NULL;
    arena->at = arena->end = NULL;
}
