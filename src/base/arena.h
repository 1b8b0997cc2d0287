/* arena.h - memory with one lifetime: grows by chunks, is reset as a whole, frees nothing singly.
 *
 * The argument that carries an arena is named for its lifetime (`request`, `step`). Chunks come
 * from a struct mem and are kept over a reset up to ARENA_KEEP_BYTES, so a steady load allocates
 * nothing. Not for blocks that outlive the reset. */
#pragma once

#include "base/mem.h"
#include "base/view.h"

struct arena_chunk;

struct arena {
    struct mem *mem;
    struct arena_chunk *first; /* The newest chunk; allocation is from it. */
    uint8_t *at;               /* Next free byte of it. */
    uint8_t *end;
    size_t used_bytes;  /* Given out since the last reset. */
    size_t limit_bytes; /* Allocation beyond this fails. 0: only the mem's limit. */
    bool failed;        /* An allocation failed since the last reset. */
};

void arena_init(struct arena *arena, struct mem *mem, size_t limit_bytes);

/* Zeroed, 8-aligned memory that lives until the reset; NULL (and `failed`) when there is none. */
MUST_USE void *arena_get(struct arena *arena, size_t size_bytes);

/* A copy of the view's bytes in the arena; a null view stays null. On failure the null view, and
 * `failed` is set. */
MUST_USE struct view arena_copy(struct arena *arena, struct view bytes);

/* Forget all that was given out. Keeps at most ARENA_KEEP_BYTES of chunks. */
void arena_reset(struct arena *arena);

/* Give every chunk back. The arena may be used again. */
void arena_free(struct arena *arena);

/* arena_take where the newest chunk is too small, or the limit is near. */
MUST_USE void *arena_take_slow(struct arena *arena, size_t size_bytes);

/* As arena_get but not zeroed, for who writes every byte that is read later. */
MUST_USE static inline void *arena_take(struct arena *arena, size_t size_bytes)
{
    size_t size = (size_bytes + 7) & ~(size_t)7;
    bool fits = arena->limit_bytes == 0 || arena->used_bytes + size <= arena->limit_bytes;
    if (UNLIKELY(size_bytes > (size_t)(arena->end - arena->at) || !fits))
        return arena_take_slow(arena, size_bytes);
    void *block = arena->at;
    arena->at += size;
    arena->used_bytes += size;
    return block;
}
