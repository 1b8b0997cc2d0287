/* quorum.c - life, roles, epochs and the high watermark; see quorum.h for the diagram.
 *
 * Run with one voter: from any state the node becomes leader of the next epoch at its first tick
 * (or of the stored one, if it was stopped between vote and victory). Its vote is victory at once,
 * so one write of quorum-state tells both: before it is durable nobody hears of the epoch and
 * nothing is appended in it. With more voters it stays where its quorum-state says and waits:
 * elections among several are not run by this build.
 *
 *   what holds   epoch never falls; a role change that quorum-state must know of leaves
 * QUORUM_PERSIST first, and nothing after it is taken before quorum_persisted(); the high watermark
 * is unknown (-1) until this epoch's first record is durable, and never falls. */
#include "core/quorum.h"

#include "core/quorum_internal.h"
#include "gen/k_raft_version_record.h"
#include "gen/leader_change_message.h"
#include "gen/snapshot_footer_record.h"
#include "gen/snapshot_header_record.h"

const struct uuid quorum_topic_id = {{[15] = 1}};

static void effect_push(struct quorum *q, struct quorum_effect effect)
{
    assert(q->effect_count < QUORUM_EFFECTS_MAX);
    q->effects[q->effect_count++] = effect;
}

static void effect_persist(struct quorum *q)
{
    effect_push(q, (struct quorum_effect){
                       .kind = QUORUM_PERSIST,
                       .epoch = q->epoch,
                       .stored = {q->leader_id, q->epoch, q->voted_id, q->voted_directory},
    });
}

static bool sole_voter(const struct quorum *q)
{
    const struct voter_set *set = quorum_set(q);
    return q->is_voter && set->count == 1 && set->voters[0].id == q->self->voters[0].id;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* The first row that fits. */
static void start_from(struct quorum *q,
                       const struct quorum_stored *stored,
                       const struct quorum_log *log)
{
    const struct quorum_voter *self = &q->self->voters[0];
    q->role = QUORUM_UNATTACHED;
    q->epoch = log->last_epoch;
    if (stored == NULL || stored->leader_epoch < log->last_epoch) return;
    q->epoch = stored->leader_epoch;
    q->leader_id = stored->leader_id;
    q->voted_id = stored->voted_id;
    q->voted_directory = stored->voted_directory;
    if (stored->leader_id == self->id) {
        q->role = QUORUM_RESIGNED;
    } else if (stored->voted_id == self->id &&
               (uuid_is_zero(stored->voted_directory) ||
                uuid_equal(stored->voted_directory, self->directory))) {
        q->role = QUORUM_CANDIDATE;
        q->leader_id = -1;
    }
}

struct quorum *quorum_new(struct mem *mem,
                          const struct quorum_options *options,
                          const struct quorum_stored *stored,
                          const struct quorum_log *log)
{
    struct quorum *q = mem_get(mem, sizeof(*q));
    if (q == NULL) return NULL;
    *q = (struct quorum){
        .mem = mem,
        .leader_id = -1,
        .voted_id = -1,
        .epoch_start = -1,
        .high_watermark = -1,
        .kraft_version = options->kraft_version,
        .is_voter = options->is_voter,
        .voters_from_checkpoint = options->voters_from_checkpoint,
    };
    list_init(&q->sets);
    list_init(&q->observers);
    uint8_t *cluster_id = mem_get(mem, options->cluster_id.size + 1);
    if (cluster_id != NULL && options->cluster_id.size > 0)
        memcpy(cluster_id, options->cluster_id.data, options->cluster_id.size);
    q->cluster_id = view_of(cluster_id, options->cluster_id.size);
    q->self = quorum_voters_copy(mem, &options->self, 1, -1);
    struct voter_set *set = quorum_voters_copy(mem, options->voters, options->voter_count, -1);
    if (set != NULL) list_append(&q->sets, &set->link);
    if (q->self == NULL || set == NULL || cluster_id == NULL) return quorum_free(q);
    start_from(q, stored, log);
    return q;
}

struct quorum *quorum_free(struct quorum *quorum)
{
    if (quorum == NULL) return NULL;
    list_foreach (link, &quorum->sets)
        quorum_voters_free(quorum->mem, container_of(link, struct voter_set, link));
    quorum_voters_free(quorum->mem, quorum->self);
    quorum_observers_free(quorum);
    if (quorum->cluster_id.data != NULL)
        mem_put(quorum->mem, (void *)(uintptr_t)quorum->cluster_id.data,
                quorum->cluster_id.size + 1);
    return mem_put(quorum->mem, quorum, sizeof(*quorum));
}

bool quorum_effect(struct quorum *quorum, struct quorum_effect *out)
{
    if (quorum->persisting || quorum->effect_count == 0) return false;
    *out = quorum->effects[0];
    quorum->effect_count--;
    memmove(quorum->effects, quorum->effects + 1,
            quorum->effect_count * sizeof(quorum->effects[0]));
    quorum->persisting = out->kind == QUORUM_PERSIST;
    return true;
}

/* ---- elections of one ------------------------------------------------------------------------ */

static void become_leader(struct quorum *q)
{
    assert(q->role == QUORUM_CANDIDATE);
    q->role = QUORUM_LEADER;
    q->leader_id = q->self->voters[0].id;
    q->voted_id = -1;
    q->voted_directory = (struct uuid){{0}};
    q->high_watermark = -1;
    effect_persist(q);
    effect_push(q, (struct quorum_effect){.kind = QUORUM_LEAD, .epoch = q->epoch});
}

void quorum_persisted(struct quorum *quorum)
{
    assert(quorum->persisting);
    quorum->persisting = false;
}

static bool tick_is_due(const struct quorum *q)
{
    bool waits =
        q->role == QUORUM_UNATTACHED || q->role == QUORUM_FOLLOWER || q->role == QUORUM_RESIGNED;
    if (q->role == QUORUM_CANDIDATE) return !q->persisting && q->effect_count == 0 && sole_voter(q);
    return waits && sole_voter(q);
}

void quorum_tick(struct quorum *quorum, const struct quorum_event *event)
{
    if (!tick_is_due(quorum)) return;
    quorum->epoch_start =
        event->log->end; /* Nothing is appended before this epoch's first record. */
    if (quorum->role != QUORUM_CANDIDATE) quorum->epoch++;
    quorum->role = QUORUM_CANDIDATE; /* Stopped between vote and victory it is one already. */
    become_leader(quorum);
}

int64_t quorum_deadline(const struct quorum *quorum)
{
    return tick_is_due(quorum) ? 0 : INT64_MAX;
}

void quorum_durable(struct quorum *quorum, const struct quorum_event *event)
{
    if (quorum->role != QUORUM_LEADER || !sole_voter(quorum)) return;
    int64_t durable = event->log->durable;
    if (durable <= quorum->epoch_start || durable <= quorum->high_watermark) return;
    quorum->high_watermark = durable;
    effect_push(quorum, (struct quorum_effect){.kind = QUORUM_COMMIT,
                                               .epoch = quorum->epoch,
                                               .high_watermark = durable});
}

void quorum_resign(struct quorum *quorum, const struct quorum_event *event)
{
    (void)event;
    if (quorum->role != QUORUM_LEADER) return;
    quorum->role = QUORUM_RESIGNED;
    effect_push(quorum, (struct quorum_effect){.kind = QUORUM_DROP, .epoch = quorum->epoch});
}

/* ---- records --------------------------------------------------------------------------------- */

static struct leader_change_message_voter *change_voters(struct step *step,
                                                         const struct voter_set *set)
{
    struct leader_change_message_voter *out = step_get(step, (set->count + 1) * sizeof(*out));
    for (uint32_t i = 0; out != NULL && i < set->count; i++) {
        wire_struct_defaults(&wire_leader_change_message_voter_shape, &out[i]);
        out[i].voter_id = set->voters[i].id;
        out[i].voter_directory_id = set->voters[i].directory;
    }
    return out;
}

static bool version_add(struct step *step, int16_t kraft_version)
{
    struct k_raft_version_record *record = step_get(step, sizeof(*record));
    if (record == NULL) return false;
    wire_defaults(&wire_k_raft_version_record, record);
    record->k_raft_version = kraft_version;
    return quorum_control_add(step, QUORUM_KRAFT_VERSION, &wire_k_raft_version_record, 0, record);
}

/* Is the leader's own entry in the voter set what it is now? */
static bool own_entry_current(const struct quorum *q)
{
    const struct voter_set *set = quorum_set(q);
    for (uint32_t i = 0; i < set->count; i++)
        if (set->voters[i].id == q->self->voters[0].id)
            return quorum_voter_equal(&set->voters[i], &q->self->voters[0]);
    return true; /* Not a voter any more: nothing to mend. */
}

enum step_result quorum_begin_records(const struct quorum *quorum, struct step *step)
{
    const struct voter_set *set = quorum_set(quorum);
    struct leader_change_message *change = step_get(step, sizeof(*change));
    if (change == NULL) return STEP_E_MEMORY;
    wire_defaults(&wire_leader_change_message, change);
    change->version = 0; /* Also at kraft.version 1, as Apache Kafka 4.4 writes and reads it. */
    change->leader_id = quorum->leader_id;
    change->voters.items = change_voters(step, set);
    change->granting_voters.items = change_voters(step, set);
    if (change->voters.items == NULL || change->granting_voters.items == NULL) return STEP_E_MEMORY;
    change->voters.count = change->granting_voters.count = (int32_t)set->count;
    if (!quorum_control_add(step, QUORUM_LEADER_CHANGE, &wire_leader_change_message, 0, change))
        return STEP_E_MEMORY;
    if (quorum->kraft_version == 0 ||
        (!quorum->voters_from_checkpoint && own_entry_current(quorum)))
        return STEP_DONE;
    /* The set with the own entry as it is now. */
    struct quorum_voter *voters = step_get(step, (set->count + 1) * sizeof(*voters));
    if (voters == NULL) return STEP_E_MEMORY;
    for (uint32_t i = 0; i < set->count; i++)
        voters[i] = set->voters[i].id == quorum->self->voters[0].id ? quorum->self->voters[0]
                                                                    : set->voters[i];
    return version_add(step, quorum->kraft_version) && quorum_voters_add(step, voters, set->count)
               ? STEP_DONE
               : STEP_E_MEMORY;
}

static enum step_result snapshot_head(struct step *step,
                                      int64_t last_contained_ms,
                                      int16_t kraft_version,
                                      const struct quorum_voter *voters,
                                      uint32_t count)
{
    struct snapshot_header_record *header = step_get(step, sizeof(*header));
    if (header == NULL) return STEP_E_MEMORY;
    wire_defaults(&wire_snapshot_header_record, header);
    header->last_contained_log_timestamp = last_contained_ms;
    if (!quorum_control_add(step, QUORUM_SNAPSHOT_HEADER, &wire_snapshot_header_record, 0, header))
        return STEP_E_MEMORY;
    if (kraft_version == 0) return STEP_DONE;
    return version_add(step, kraft_version) && quorum_voters_add(step, voters, count)
               ? STEP_DONE
               : STEP_E_MEMORY;
}

enum step_result quorum_snapshot_head(const struct quorum *quorum,
                                      struct step *step,
                                      int64_t last_contained_ms)
{
    const struct voter_set *set = quorum_set(quorum);
    return snapshot_head(step, last_contained_ms, quorum->kraft_version, set->voters, set->count);
}

enum step_result quorum_format_head(struct step *step,
                                    int64_t wall_ms,
                                    const struct quorum_voter *voters,
                                    uint32_t voter_count)
{
    return snapshot_head(step, wall_ms, 1, voters, voter_count);
}

enum step_result quorum_snapshot_foot(struct step *step)
{
    struct snapshot_footer_record *footer = step_get(step, sizeof(*footer));
    if (footer == NULL) return STEP_E_MEMORY;
    wire_defaults(&wire_snapshot_footer_record, footer);
    return quorum_control_add(step, QUORUM_SNAPSHOT_FOOTER, &wire_snapshot_footer_record, 0, footer)
               ? STEP_DONE
               : STEP_E_MEMORY;
}

static bool control_version(struct quorum *q, struct view value)
{
    struct arena arena;
    struct k_raft_version_record record;
    struct reader in = reader_of(value);
    arena_init(&arena, q->mem, 0);
    bool good = wire_decode(&in, wire_form(&wire_k_raft_version_record, 0), &arena, &record);
    arena_free(&arena);
    if (good) q->kraft_version = record.k_raft_version;
    return good;
}

bool quorum_control(struct quorum *quorum, struct view key, struct view value, int64_t offset)
{
    if (key.null || key.size < 4 || value.null) return false;
    int16_t type = (int16_t)load_be16(key.data + 2);
    if (type == QUORUM_KRAFT_VERSION) return control_version(quorum, value);
    if (type != QUORUM_KRAFT_VOTERS) return true;
    struct voter_set *set = quorum_voters_decode(quorum->mem, value, offset);
    if (set == NULL) return false;
    if (offset >= 0) quorum->voters_from_checkpoint = false;
    list_append(&quorum->sets, &set->link);
    return true;
}

void quorum_truncated(struct quorum *quorum, int64_t offset)
{
    for (;;) {
        struct voter_set *set = container_of(quorum->sets.previous, struct voter_set, link);
        if (set->offset < offset || set->offset < 0) return;
        list_remove(&set->link);
        quorum_voters_free(quorum->mem, set);
    }
}

/* ---- queries --------------------------------------------------------------------------------- */

enum quorum_role quorum_role(const struct quorum *quorum)
{
    return quorum->role;
}

bool quorum_leads(const struct quorum *quorum)
{
    return quorum->role == QUORUM_LEADER;
}

int32_t quorum_epoch(const struct quorum *quorum)
{
    return quorum->epoch;
}

int32_t quorum_leader(const struct quorum *quorum)
{
    return quorum->leader_id;
}

int64_t quorum_epoch_start(const struct quorum *quorum)
{
    return quorum->epoch_start;
}

int64_t quorum_high_watermark(const struct quorum *quorum)
{
    return quorum->high_watermark;
}

int16_t quorum_kraft_version(const struct quorum *quorum)
{
    return quorum->kraft_version;
}

const struct quorum_voter *quorum_voters(const struct quorum *quorum, uint32_t *count)
{
    const struct voter_set *set = quorum_set(quorum);
    *count = set->count;
    return set->voters;
}
