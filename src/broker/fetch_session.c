/* fetch_session.c - see fetch_session.h. */
#include "broker/fetch_session.h"

void fetch_sessions_init(struct fetch_sessions *sessions,
                         struct mem *mem,
                         uint32_t slots,
                         uint64_t seed)
{
    *sessions = (struct fetch_sessions){
        .mem = mem, .seed = seed, .shard_max = slots / FETCH_SESSION_SHARDS, .owners = 1};
    map_init(&sessions->by_id, mem, seed);
    for (uint32_t i = 0; i < FETCH_SESSION_SHARDS; i++)
        list_init(&sessions->shards[i]);
}

void fetch_sessions_free(struct fetch_sessions *sessions)
{
    for (uint32_t i = 0; i < FETCH_SESSION_SHARDS; i++)
        list_foreach (link, &sessions->shards[i])
            fetch_session_drop(sessions, container_of(link, struct fetch_session, link));
    map_free(&sessions->by_id);
}

static struct view id_key(const int32_t *id)
{
    return view_of(id, sizeof(*id));
}

struct fetch_session *fetch_session_find(struct fetch_sessions *sessions, int32_t id)
{
    struct map_node *node = map_find(&sessions->by_id, id_key(&id));
    return node == NULL ? NULL : container_of(node, struct fetch_session, node);
}

static void partition_drop(struct fetch_sessions *sessions,
                           struct fetch_session *session,
                           struct fetch_partition *p)
{
    map_remove(&session->by_key, &p->node);
    list_remove(&p->link);
    mem_put(sessions->mem, p, p->size_bytes);
}

void fetch_session_drop(struct fetch_sessions *sessions, struct fetch_session *session)
{
    list_foreach (link, &session->partitions)
        partition_drop(sessions, session, container_of(link, struct fetch_partition, link));
    map_free(&session->by_key);
    map_remove(&sessions->by_id, &session->node);
    list_remove(&session->link);
    sessions->counts[session->shard]--;
    mem_put(sessions->mem, session, sizeof(*session));
}

void fetch_session_touch(struct fetch_sessions *sessions,
                         struct fetch_session *session,
                         int64_t now_ms)
{
    session->used_ms = now_ms;
    list_remove(&session->link);
    list_append(&sessions->shards[session->shard], &session->link);
}

/* (privileged, partitions, id): the smallest goes first. */
static bool smaller(const struct fetch_session *a, const struct fetch_session *b)
{
    if (a->privileged != b->privileged) return b->privileged;
    if (a->by_key.count != b->by_key.count) return a->by_key.count < b->by_key.count;
    return a->id < b->id;
}

static struct fetch_session *evictable(struct fetch_sessions *sessions,
                                       uint32_t shard,
                                       int64_t now_ms,
                                       bool privileged)
{
    struct fetch_session *best = NULL;
    list_foreach (link, &sessions->shards[shard]) {
        struct fetch_session *session = container_of(link, struct fetch_session, link);
        if (session->busy) continue;
        if (best == NULL && now_ms - session->used_ms > FETCH_SESSION_EVICT_MS)
            return session; /* Idle. */
        bool old = now_ms - session->created_ms > FETCH_SESSION_EVICT_MS;
        if (!old && !(privileged && !session->privileged)) continue;
        if (best == NULL || smaller(session, best)) best = session;
    }
    return best;
}

/* Room for one more in the shard? */
static bool make_room(struct fetch_sessions *sessions,
                      uint32_t shard,
                      int64_t now_ms,
                      uint32_t count,
                      bool privileged)
{
    if (sessions->counts[shard] < sessions->shard_max) return true;
    struct fetch_session *victim = evictable(sessions, shard, now_ms, privileged);
    if (victim == NULL) return false;
    bool idle = now_ms - victim->used_ms > FETCH_SESSION_EVICT_MS;
    bool loses = privileged != victim->privileged ? privileged : count >= victim->by_key.count;
    if (!idle && !loses) return false;
    fetch_session_drop(sessions, victim);
    sessions->evictions++;
    return true;
}

struct fetch_session *fetch_session_new(struct fetch_sessions *sessions,
                                        uint64_t random,
                                        int64_t now_ms,
                                        uint32_t partition_count,
                                        bool privileged)
{
    if (sessions->shard_max == 0) return NULL;
    uint32_t shard = sessions->next_shard;
    sessions->next_shard = (shard + 1) % FETCH_SESSION_SHARDS;
    if (!make_room(sessions, shard, now_ms, partition_count, privileged)) return NULL;
    struct fetch_session *session = mem_get(sessions->mem, sizeof(*session));
    if (session == NULL) return NULL;
    *session = (struct fetch_session){.epoch = 1,
                                      .privileged = privileged,
                                      .created_ms = now_ms,
                                      .used_ms = now_ms,
                                      .shard = shard};
    uint64_t low = MAX((uint64_t)shard * FETCH_SESSION_SHARD_IDS, 1);
    do {
        session->id = (int32_t)(low + random % (FETCH_SESSION_SHARD_IDS - 1));
        random = random * 6364136223846793005u + 1442695040888963407u;
    } while ((uint32_t)session->id % sessions->owners != sessions->owner ||
             fetch_session_find(sessions, session->id) != NULL);
    map_init(&session->by_key, sessions->mem, sessions->seed);
    list_init(&session->partitions);
    session->node.key = id_key(&session->id);
    if (!map_insert(&sessions->by_id, &session->node))
        return mem_put(sessions->mem, session, sizeof(*session));
    list_append(&sessions->shards[shard], &session->link);
    sessions->counts[shard]++;
    return session;
}

static uint32_t partition_key(uint8_t *out,
                              struct uuid topic_id,
                              struct view name,
                              int32_t partition)
{
    uint32_t size =
        name.size > 0 ? MIN(name.size, TOPIC_NAME_MAX) : (uint32_t)sizeof(topic_id.bytes);
    memcpy(out, name.size > 0 ? name.data : topic_id.bytes, size);
    memcpy(out + size, &partition, sizeof(partition));
    return size + (uint32_t)sizeof(partition);
}

static struct fetch_partition *partition_find(const struct fetch_session *session,
                                              struct uuid topic_id,
                                              struct view name,
                                              int32_t partition)
{
    uint8_t key[TOPIC_NAME_MAX + 4];
    struct map_node *node =
        map_find(&session->by_key, view_of(key, partition_key(key, topic_id, name, partition)));
    return node == NULL ? NULL : container_of(node, struct fetch_partition, node);
}

bool fetch_session_put(struct fetch_sessions *sessions,
                       struct fetch_session *session,
                       const struct fetch_wanted *wanted)
{
    struct fetch_partition *p =
        partition_find(session, wanted->topic_id, wanted->name, wanted->partition);
    if (p == NULL) {
        uint32_t size = (uint32_t)sizeof(*p) + wanted->name.size;
        p = mem_get(sessions->mem, size);
        if (p == NULL) return false;
        p->size_bytes = size;
        p->topic_id = wanted->topic_id;
        p->partition = wanted->partition;
        if (wanted->name.size > 0) memcpy(p + 1, wanted->name.data, wanted->name.size);
        p->name = view_of(p + 1, wanted->name.size);
        p->sent_high_watermark = -1;
        p->sent_log_start = -1;
        p->node.key = view_of(
            p->key, partition_key(p->key, wanted->topic_id, wanted->name, wanted->partition));
        list_init(&p->link);
        if (!map_insert(&session->by_key, &p->node)) {
            mem_put(sessions->mem, p, size);
            return false;
        }
        list_append(&session->partitions, &p->link);
    }
    p->max_bytes = wanted->max_bytes;
    p->fetch_offset = wanted->fetch_offset;
    p->log_start_offset = wanted->log_start_offset;
    p->leader_epoch = wanted->leader_epoch;
    p->last_fetched_epoch = wanted->last_fetched_epoch;
    return true;
}

void fetch_session_forget(struct fetch_sessions *sessions,
                          struct fetch_session *session,
                          struct uuid topic_id,
                          struct view name,
                          int32_t partition)
{
    struct fetch_partition *p = partition_find(session, topic_id, name, partition);
    if (p != NULL) partition_drop(sessions, session, p);
}

int32_t fetch_session_epoch_next(int32_t epoch)
{
    if (epoch < 0) return -1;
    return epoch == INT32_MAX ? 1 : epoch + 1;
}
