/* sim_node.c - a node: its memory, its processes, its faults, its end. */
#include "io/sim_inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define WALL_BASE_MS 1790000000000 /* September 2026. */

/* ---- memory ---------------------------------------------------------------------------------- */

struct block {
    struct list link;
    size_t size_bytes;
    size_t unused; /* Blocks stay 16-aligned. */
};

_Static_assert(sizeof(struct block) % 16 == 0, "what follows a block's head is aligned");

static void *memory_get(struct mem *mem, size_t size_bytes)
{
    struct sim_memory *memory = container_of(mem, struct sim_memory, mem);
    memory->count++;
    if (memory->failing) return NULL;
    if (memory->fail_in > 0 && --memory->fail_in == 0) {
        memory->failing = memory->fail_for_good;
        return NULL;
    }
    struct block *block = sim_heap(sizeof(*block) + size_bytes);
    block->size_bytes = size_bytes;
    list_append(&memory->blocks, &block->link);
    return block + 1;
}

static void memory_put(struct mem *mem, void *bytes, size_t size_bytes)
{
    (void)mem;
    struct block *block = (struct block *)bytes - 1;
    assert(block->size_bytes == size_bytes);
    list_remove(&block->link);
    free(block);
}

static void memory_drop(struct sim_memory *memory)
{
    struct list *node;
    while ((node = list_pop(&memory->blocks)) != NULL)
        free(container_of(node, struct block, link));
    memory->mem.used_bytes = 0;
}

void sim_node_fail_memory(struct sim_node *node, uint64_t nth, bool for_good)
{
    node->memory.fail_in = MAX(nth, 1u);
    node->memory.fail_for_good = for_good;
    node->memory.failing = false;
}

uint64_t sim_node_allocations(const struct sim_node *node)
{
    return node->memory.count;
}

/* ---- nodes and processes --------------------------------------------------------------------- */

static struct sim_node *node_new(struct sim_world *world, const char *name, struct sim_disk *disk)
{
    assert(world->node_count < SIM_NODES_MAX);
    struct sim_node *node = sim_heap(sizeof(*node));
    node->world = world;
    node->id = world->node_count;
    node->name = sim_heap_text(name);
    node->disk = disk;
    (void)snprintf(node->host, sizeof(node->host), "10.0.0.%u", node->id + 1);
    list_init(&node->shards);
    list_init(&node->faults);
    list_init(&node->memory.blocks);
    node->memory.mem = (struct mem){.get = memory_get, .put = memory_put};
    node->clock_ms = 1000 + (int64_t)sim_draw_below(node, SIM_SITE_CLOCK, 1000000);
    node->wall_clock_ms = WALL_BASE_MS + (int64_t)sim_draw_below(node, SIM_SITE_CLOCK, 1000);
    world->node_by_id[world->node_count++] = node;
    list_append(&world->nodes, &node->link);
    return node;
}

struct sim_node *sim_node_new(struct sim_world *world, const char *name)
{
    struct sim_disk *disk = sim_disk_new(world->options.disk_bytes);
    struct sim_inode *tmp = sim_inode_new(disk, true);
    tmp->parent = disk->root;
    sim_names_set(&disk->root->names, "tmp", tmp);
    sim_names_set(&disk->root->stable_names, "tmp", tmp);
    return node_new(world, name, disk);
}

struct sim_node *sim_node_fork(struct sim_world *into,
                               const struct sim_node *of,
                               enum sim_crash kind,
                               uint64_t choice)
{
    struct sim_disk *disk = sim_disk_copy(of->disk);
    if (kind != SIM_CRASH_KILL) sim_disk_settle(disk, kind, choice);
    return node_new(into, of->name, disk);
}

const char *sim_node_name(const struct sim_node *node)
{
    return node->name;
}

const char *sim_node_host(const struct sim_node *node)
{
    return node->host;
}

struct io *sim_node_start(struct sim_node *node)
{
    assert(!node->crashed);
    if (list_empty(&node->shards)) {
        node->incarnation++;
        node->shards_started = 0;
        if (node->off) /* A monotonic clock begins anew with the machine. */
            node->clock_ms = 1000 + (int64_t)sim_draw_below(node, SIM_SITE_CLOCK, 1000) -
                             node->world->now_us / 1000;
        node->off = false;
    }
    struct sim_shard *shard = sim_heap(sizeof(*shard));
    shard->io = (struct io){.backend = &sim_backend, .mem = &node->memory.mem};
    shard->node = node;
    shard->number = node->shards_started++;
    shard->incarnation = node->incarnation;
    shard->turn_us = shard->wake_us = node->world->now_us;
    shard->turn_wall_ms = sim_node_wall_ms(node);
    list_init(&shard->ops);
    list_init(&shard->done);
    list_init(&shard->files);
    list_init(&shard->streams);
    list_init(&shard->listeners);
    list_append(&node->shards, &shard->link);
    sim_note(node, &(struct sim_trace){.kind = "start", .name = "", .offset = shard->number});
    return &shard->io;
}

static void shard_drop(struct sim_shard *shard, bool peers_told)
{
    sim_streams_drop(shard, peers_told);
    sim_ops_drop(shard);
    sim_forget_shard(shard->node->world, shard);
    struct list *file;
    while (!list_empty(&shard->files)) {
        file = shard->files.next;
        sim_file_put(container_of(file, struct io_file, link));
    }
    list_remove(&shard->link);
    free(shard);
}

void sim_shard_end(struct io *io)
{
    struct sim_shard *shard = sim_shard_of(io);
    assert(!shard->in_turn);
    if (!shard->node->crashed) {
        sim_ops_finish(shard);
        assert(list_empty(&shard->files));
        assert(list_empty(&shard->streams));
        assert(list_empty(&shard->listeners));
        sim_note(shard->node,
                 &(struct sim_trace){.kind = "stop", .name = "", .offset = shard->number});
    }
    shard_drop(shard, !shard->node->crashed);
}

static void process_drop(struct sim_node *node, bool peers_told)
{
    while (!list_empty(&node->shards)) {
        struct sim_shard *shard = container_of(node->shards.next, struct sim_shard, link);
        assert(!shard->in_turn);
        assert(!shard->in_job);
        shard_drop(shard, peers_told);
    }
    memory_drop(&node->memory);
}

void sim_node_crash(struct sim_node *node, enum sim_crash kind, uint64_t choice)
{
    sim_note(node, &(struct sim_trace){.kind = "crash",
                                       .name = "",
                                       .offset = choice,
                                       .size = sim_disk_unsynced(node->disk),
                                       .result = (int64_t)kind});
    process_drop(node, kind == SIM_CRASH_KILL);
    if (kind != SIM_CRASH_KILL) {
        sim_disk_settle(node->disk, kind, choice);
        node->off = true;
    }
    node->crashed = node->dying = false;
}

bool sim_node_crashed(const struct sim_node *node)
{
    return node->crashed;
}

uint32_t sim_node_unsynced(const struct sim_node *node)
{
    return sim_disk_unsynced(node->disk);
}

uint64_t sim_node_io_count(const struct sim_node *node)
{
    return node->io_count;
}

void sim_node_pause(struct sim_node *node, uint32_t pause_ms)
{
    int64_t until_us = node->world->now_us + (int64_t)pause_ms * 1000;
    node->paused_until_us = MAX(node->paused_until_us, until_us);
}

void sim_shard_pause(struct io *io, uint32_t pause_ms)
{
    struct sim_shard *shard = sim_shard_of(io);
    int64_t until_us = shard->node->world->now_us + (int64_t)pause_ms * 1000;
    shard->paused_until_us = MAX(shard->paused_until_us, until_us);
}

void sim_node_wall_jump(struct sim_node *node, int64_t by_ms)
{
    node->wall_clock_ms += by_ms;
}

void sim_node_space(struct sim_node *node, uint64_t disk_bytes)
{
    node->disk->space_bytes = disk_bytes;
}

bool sim_node_rot(struct sim_node *node, const char *path, uint64_t bit)
{
    struct sim_inode *inode = sim_disk_file(node->disk, path);
    if (inode == NULL || bit / 8 >= inode->now.size) return false;
    inode->now.data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    if (bit / 8 < inode->stable.size) inode->stable.data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    return true;
}

void sim_link(struct sim_node *from, struct sim_node *to, bool up)
{
    assert(from->world == to->world);
    uint32_t bit = 1u << to->id;
    from->world->cut[from->id] =
        up ? from->world->cut[from->id] & ~bit : from->world->cut[from->id] | bit;
    sim_note(from, &(struct sim_trace){.kind = "link", .name = to->name, .result = up});
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void arranged_drop(struct sim_arranged *arranged)
{
    list_remove(&arranged->link);
    free(arranged->under);
    free(arranged);
}

void sim_node_fault(struct sim_node *node, const struct sim_fault *fault)
{
    struct sim_arranged *arranged = sim_heap(sizeof(*arranged));
    arranged->fault = *fault;
    if (fault->under != NULL) arranged->under = sim_heap_text(fault->under);
    arranged->fault.under = arranged->under;
    if (fault->calls == 0) arranged->fault.calls = SIM_CALL_ANY;
    if (fault->error == 0) arranged->fault.error = -EIO;
    arranged->left = MAX(fault->nth, 1u);
    list_append(&node->faults, &arranged->link);
}

void sim_node_heal(struct sim_node *node)
{
    while (!list_empty(&node->faults))
        arranged_drop(container_of(node->faults.next, struct sim_arranged, link));
    node->memory.fail_in = 0;
    node->memory.failing = false;
}

/* Does it strike this call? Counts the call if it matches. */
static bool strikes(struct sim_arranged *arranged, enum sim_call call, const char *path)
{
    if ((arranged->fault.calls & (uint32_t)call) == 0) return false;
    if (arranged->under != NULL && strncmp(path, arranged->under, strlen(arranged->under)) != 0)
        return false;
    if (arranged->left > 1) {
        arranged->left--;
        return false;
    }
    return true;
}

static void strike(struct sim_visit *visit, struct sim_arranged *arranged)
{
    if (arranged->fault.kind == SIM_FAULT_CRASH) {
        visit->shard->node->dying = true;
    } else {
        visit->error = arranged->fault.error;
        visit->torn = arranged->fault.kind == SIM_FAULT_TORN;
    }
    if (!arranged->fault.for_good) arranged_drop(arranged);
}

/* Calls that the shard itself may not make while it serves. */
static bool may_block(enum sim_call call)
{
    return (call & (SIM_CALL_OPEN | SIM_CALL_STAT | SIM_CALL_READ)) == 0;
}

struct sim_visit sim_visit(struct sim_shard *shard, enum sim_call call, const char *path)
{
    struct sim_visit visit = {.shard = shard, .call = call, .path = path};
    struct sim_node *node = shard->node;
    if (node->crashed) {
        visit.error = -EIO;
        return visit;
    }
    assert(!(node->world->options.forbid_blocking && shard->in_turn && may_block(call)));
    node->io_count++;
    list_foreach (at, &node->faults) {
        struct sim_arranged *arranged = container_of(at, struct sim_arranged, link);
        if (arranged->fault.kind == SIM_FAULT_STALL || !strikes(arranged, call, path)) continue;
        strike(&visit, arranged);
        break;
    }
    return visit;
}

static const char *call_name(enum sim_call call)
{
    static const char *const names[] = {"open",    "stat", "read",     "write",  "truncate",
                                        "reserve", "sync", "sync-dir", "rename", "unlink",
                                        "mkdir",   "list", "lock"};
    return names[__builtin_ctz((unsigned)call)];
}

int64_t sim_visit_end(struct sim_visit *visit, int64_t result)
{
    struct sim_node *node = visit->shard->node;
    if (node->crashed) return -EIO;
    if (node->dying) {
        node->crashed = true;
        node->dying = false;
        result = -EIO;
    }
    sim_note(node, &(struct sim_trace){.kind = call_name(visit->call),
                                       .name = visit->path,
                                       .offset = visit->offset,
                                       .size = visit->size,
                                       .result = result});
    return result;
}

uint32_t sim_stall_ms(struct sim_node *node, enum sim_call call, const char *path)
{
    uint32_t stall_ms = 0;
    list_foreach (at, &node->faults) {
        struct sim_arranged *arranged = container_of(at, struct sim_arranged, link);
        if (arranged->fault.kind != SIM_FAULT_STALL || !strikes(arranged, call, path)) continue;
        stall_ms += arranged->fault.stall_ms;
        if (!arranged->fault.for_good) arranged_drop(arranged);
    }
    return stall_ms;
}

void sim_node_free(struct sim_node *node)
{
    process_drop(node, false);
    sim_node_heal(node);
    sim_disk_free(node->disk);
    free(node->name);
    free(node);
}
