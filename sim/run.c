/* run.c - see run.h. */
#include "sim/run.h"

#include <stdio.h>
#include <stdlib.h>

#include "broker/controller.h"
#include "sim/client_admin.h"
#include "sim/client_deleter.h"
#include "sim/client_keeper.h"
#include "sim/client_lister.h"
#include "sim/client_member.h"
#include "sim/client_producer.h"
#include "sim/client_reader.h"
#include "sim/client_remaker.h"
#include "sim/client_watcher.h"
#include "sim/cluster.h"

#define RUN_CLIENTS_MAX 24u
#define RUN_DRAIN_MS    120000
#define RUN_REST_MS     5000
#define RUN_STORM_MS    20000
#define RUN_DISK_BYTES  (1u << 30)
#define RUN_TURNS_MAX   3000000u /* Of one run: a loop that never ends is a violation. */

struct run {
    uint64_t seed;
    struct sim_world *world;
    struct cluster cluster;
    struct history history;
    struct client *clients[RUN_CLIENTS_MAX];
    uint32_t client_count;
    struct client_admin *admin; /* One of them, as the next three. */
    struct client_reader *auditor;
    struct client_watcher *watcher;
    struct client_lister *lister;
    struct places places;
    struct client_keeper *keeper;   /* NULL: none. */
    struct client_remaker *remaker; /* NULL: none. */
    struct membership groups[HISTORY_GROUPS_MAX];
    struct commits commits[HISTORY_GROUPS_MAX];
    uint32_t group_count;
    enum run_world kind;
    struct population population; /* Of RUN_CONTROLLER, all above of RUN_CLIENTS. */
    int64_t slack_us;             /* From the sending of a request to its arrival, at most. */
    struct chance faults;
    bool wants[RUN_FAULTS];
    int64_t next_fault_us;
    int64_t start_us; /* When the node that is down starts again. */
    int64_t wall_ms;  /* How far the machine's clock has jumped. */
    int64_t mend_us;  /* When somebody sees to the machine's trouble; 0: it has
                         none. */
    bool replaced;    /* Then the process is started anew. */
    uint32_t turns;
    bool trace;
    struct run_result *result;
};

const char *run_fault_name(enum run_fault fault)
{
    static const char *const names[] = {"kill",       "power cut",  "crash point", "stop",
                                        "pause",      "reset",      "half open",   "wall jump",
                                        "stall",      "read error", "write error", "sync error",
                                        "name error", "disk full",  "slow disk",   "no memory"};
    return names[fault];
}

static void run_trace(void *context, const struct sim_trace *trace)
{
    struct run *run = context;
    run->result->events++;
    if (trace->kind[0] == 't' && strcmp(trace->kind, "turn") == 0) cluster_waits(&run->cluster);
    if (!run->trace) return;
    printf("%10lld us %-8s %-9s %-10s %8llu %6llu -> %lld\n", (long long)trace->at_us, trace->node,
           trace->kind, trace->name, (unsigned long long)trace->offset,
           (unsigned long long)trace->size, (long long)trace->result);
}

/* ---- the shape
 * -------------------------------------------------------------------------------
 */

static struct client_seat run_seat(struct run *run)
{
    return (struct client_seat){.world = run->world,
                                .history = &run->history,
                                .seed = run->seed,
                                .index = run->client_count,
                                .host = sim_node_host(run->cluster.machine)};
}

static void run_add(void *context, struct client *client)
{
    struct run *run = context;
    assert(run->client_count < RUN_CLIENTS_MAX);
    run->clients[run->client_count++] = client;
}

static void run_clients(struct run *run, struct chance *shape)
{
    uint32_t producers = 1 + chance_below(shape, 4), readers = 1 + chance_below(shape, 3);
    struct client_seat seat = run_seat(run);
    run->admin = client_admin_new(&seat);
    run_add(run, &run->admin->client);
    for (uint32_t i = 0; i < producers; i++) {
        seat = run_seat(run);
        struct client_producer *producer = client_producer_new(&seat, i);
        producer->idempotent = chance_percent(shape, 60);
        producer->acks = producer->idempotent || chance_percent(shape, 40) ? -1 : 1;
        producer->quota = 50 + chance_below(shape, 600);
        run->history.idempotent[i] = producer->idempotent;
        run_add(run, &producer->client);
    }
    for (uint32_t i = 0; i < readers; i++) {
        seat = run_seat(run);
        run->auditor = client_reader_new(&seat);
        run_add(run, &run->auditor->client);
    }
}

static void run_deleter(struct run *run, struct chance *shape)
{
    struct client_seat seat = run_seat(run);
    if (chance_percent(shape, 40)) run_add(run, client_new(&client_deleter_kind, &seat));
}

static void run_keeper(struct run *run, struct chance *shape)
{
    struct client_seat seat = run_seat(run);
    if (!chance_percent(shape, 50)) return;
    run->keeper = client_keeper_new(&seat, (enum client_keeper_rule)chance_below(shape, 3));
    run_add(run, client_keeper_base(run->keeper));
}

static void run_remaker(struct run *run, struct chance *shape)
{
    struct client_seat seat = run_seat(run);
    if (!chance_percent(shape, 50)) return;
    run->remaker = client_remaker_new(&seat);
    run_add(run, client_remaker_base(run->remaker));
}

static void run_lister(struct run *run)
{
    struct client_seat seat = run_seat(run);
    run->places.history = &run->history;
    run->lister = client_lister_new(&seat, &run->places);
    run_add(run, &run->lister->client);
}

/* Groups of classic members, of consumer members, and of both. */
static void run_groups(struct run *run, struct chance *shape)
{
    struct client_seat seat = run_seat(run);
    run->watcher = client_watcher_new(&seat);
    run_add(run, &run->watcher->client);
    run->group_count = chance_below(shape, HISTORY_GROUPS_MAX + 1);
    for (uint32_t i = 0; i < run->group_count; i++) {
        struct membership *group = &run->groups[i];
        uint32_t members = 1 + chance_below(shape, 4),
                 classic_percent = chance_below(shape, 3) * 50;
        (void)snprintf(group->name, sizeof(group->name), "group%u", i);
        group->history = run->commits[i].history = &run->history;
        group->slack_us = run->slack_us;
        group->mixed = classic_percent == 50;
        run->commits[i].group = group->name;
        for (uint32_t k = 0; k < members; k++) {
            bool classic = chance_percent(shape, classic_percent);
            seat = run_seat(run);
            struct client_member *member =
                classic ? client_classic_new(&seat, group, &run->commits[i])
                        : client_consumer_new(&seat, group, &run->commits[i]);
            run_add(run, &member->client);
        }
        client_watcher_watches(run->watcher, group);
    }
}

/* In a quarter of the seeds members use more of the processor than they may: each of their answers
 * is followed by a silence of a second, or of less. */
static void run_quotas(struct run *run)
{
    struct chance quotas = chance_of(run->seed, 3);
    static const double percentages[] = {1e-6, 1e-3, 4e-3};
    if (run->group_count == 0 || !chance_percent(&quotas, 25)) return;
    run->admin->request_percentage = percentages[chance_below(&quotas, ARRAY_SIZE(percentages))];
    for (uint32_t i = 0; i < run->group_count; i++)
        run->groups[i].limited = true;
}

static void run_settings(struct run *run, struct chance *shape)
{
    struct cluster *cluster = &run->cluster;
    cluster_set(cluster, "log.segment.bytes", 4096u << chance_below(shape, 5));
    cluster_set(cluster, "log.index.interval.bytes", 64u << chance_below(shape, 7));
    cluster_set(cluster, "offsets.topic.num.partitions", 1 + chance_below(shape, 4));
    cluster_set(cluster, "offsets.topic.replication.factor", 1);
    cluster_set(cluster, "offsets.topic.segment.bytes", 1048576); /* The least there is. */
    cluster_set(cluster, "log.retention.check.interval.ms", 400);
    cluster_set(cluster, "log.cleaner.backoff.ms", 300);
    cluster_set(cluster, "group.min.session.timeout.ms", 1000);
    cluster_set(cluster, "group.initial.rebalance.delay.ms", chance_below(shape, 2) * 300);
    cluster_set(cluster, "group.consumer.min.session.timeout.ms", 1000);
    cluster_set(cluster, "group.consumer.session.timeout.ms", MEMBERSHIP_CONSUMER_SESSION_MS);
    cluster_set(cluster, "group.consumer.min.heartbeat.interval.ms", 100);
    cluster_set(cluster, "group.consumer.heartbeat.interval.ms", 500);
    cluster_set(cluster, "group.consumer.assignment.interval.ms", chance_below(shape, 2) * 200);
    cluster_set(cluster, "group.consumer.regex.refresh.interval.ms", 10000);
}

/* The world of clients: topics, and who uses them. */
static void run_shape_clients(struct run *run, struct chance *shape)
{
    run->history.topic_count = 1 + chance_below(shape, HISTORY_TOPICS_MAX - 1);
    for (uint32_t i = 0; i < run->history.topic_count; i++) {
        struct history_topic *topic = &run->history.topics[i];
        (void)snprintf(topic->name, sizeof(topic->name), "topic%u", i);
        topic->partitions = 1 + (int32_t)chance_below(shape, HISTORY_PARTITIONS_MAX);
    }
    run_clients(run, shape);
    run_groups(run, shape);
    run_deleter(run, shape);
    run_keeper(run, shape);
    run_remaker(run, shape);
    run_lister(run);
    run_quotas(run);
}

static void run_shape(struct run *run)
{
    struct chance shape = chance_of(run->seed, 1);
    struct sim_options options = {
        .forbid_blocking = true, .trace = run_trace, .trace_context = run, .break_after_ms = 5000};
    cluster_options(&run->cluster, &options);
    for (uint32_t i = 0; i < RUN_FAULTS; i++)
        run->wants[i] = chance_percent(&shape, 50);
    if (chance_percent(&shape, 50)) options.disk_stall_per_million = 3000;
    if (chance_percent(&shape, 50)) options.net_stall_per_million = 3000;
    run->slack_us = options.net_stall_per_million > 0 ? MEMBERSHIP_SLACK_US : MEMBERSHIP_QUICK_US;
    if (run->wants[RUN_RESET]) options.net_reset_per_million = 1000;
    run->world = sim_world_new(run->seed, &options);
    if (run->kind == RUN_CONTROLLER)
        population_shape(&run->population, &run->cluster, &run->history, &shape);
    else
        run_settings(run, &shape);
    cluster_init(&run->cluster, run->world, &run->history);
    if (run->kind == RUN_CONTROLLER)
        population_fill(&run->population, run_seat(run), run_add, run);
    else
        run_shape_clients(run, &shape);
    run->faults = chance_of(run->seed, 2);
}

/* ---- faults
 * ----------------------------------------------------------------------------------
 */

static void run_note(struct run *run, enum run_fault fault)
{
    run->result->faults[fault]++;
    if (run->trace)
        printf("%10lld us fault %s\n", (long long)sim_now_us(run->world), run_fault_name(fault));
}

/* The process has ended; it starts again after a while. What was acknowledged
 * with acks=1 may have been kept by a failing disk, or not. */
static void run_down(struct run *run)
{
    quorum_check_ends(&run->population.check, sim_now_us(run->world));
    if (run->history.trouble_us == INT64_MAX) history_power_cut(&run->history);
    run->start_us = sim_now_us(run->world) + chance_below(&run->faults, 500000);
}

static enum sim_crash run_cut_kind(struct run *run)
{
    enum sim_crash kind;
    do
        kind = (enum sim_crash)(SIM_CRASH_WORST + chance_below(&run->faults, SIM_CRASH_KINDS - 1));
    while (kind == SIM_CRASH_CHOSEN);
    return kind;
}

static void run_power_cut(struct run *run)
{
    run_note(run, RUN_POWER_CUT);
    enum sim_crash kind = run_cut_kind(run); /* Drawn first, whatever the compiler's order. */
    cluster_crash(&run->cluster, kind, chance_next(&run->faults));
    run_down(run);
}

/* A crash point was reached: a power cut in the middle of a call, or a kill. */
static void run_crashed(struct run *run)
{
    run_note(run, RUN_CRASH_POINT);
    enum sim_crash kind = chance_percent(&run->faults, 30) ? SIM_CRASH_KILL : run_cut_kind(run);
    cluster_crash(&run->cluster, kind, chance_next(&run->faults));
    run_down(run);
}

/* The machine has all again: disk, space, memory. */
static void run_heal(struct run *run)
{
    sim_node_heal(run->cluster.machine);
    sim_node_space(run->cluster.machine, RUN_DISK_BYTES);
    if (run->mend_us != 0) run->history.trouble_us = sim_now_us(run->world);
    run->history.troubles++;
    run->mend_us = 0;
}

/* A node may refuse to start on a machine in trouble; it says so and is started
 * again later. */
static void run_start(struct run *run)
{
    if (cluster_start(&run->cluster)) return;
    if (!run->cluster.refused) {
        run_crashed(run);
        return;
    }
    if (run->mend_us == 0)
        history_violation(&run->history, "the node could not be opened; %s",
                          cluster_last_words(&run->cluster));
    cluster_crash(&run->cluster, SIM_CRASH_KILL, 0);
    run_heal(run);
    run_down(run);
}

static void run_stop(struct run *run)
{
    if (cluster_stop(&run->cluster))
        run_down(run);
    else
        run_crashed(run);
}

/* A stopped thread, a page fault that takes seconds: the other shards go on. */
static bool run_stall(struct run *run)
{
    uint32_t shards = run->cluster.shape.shards;
    if (shards == 1) return false;
    uint32_t shard = chance_below(&run->faults, shards);
    sim_shard_pause(run->cluster.ios[shard], chance_below(&run->faults, 3000));
    return true;
}

/* Half an hour at most from the clients' clocks: a leader refuses records from
 * an hour ahead. */
static void run_wall_jump(struct run *run)
{
    int64_t to_ms = (int64_t)chance_below(&run->faults, 3600000) - 1800000;
    sim_node_wall_jump(run->cluster.machine, to_ms - run->wall_ms);
    run->wall_ms = to_ms;
    run->population.jumped_us = sim_now_us(run->world);
}

/* A directory that failed stays offline: the process is started anew, on a disk
 * that works. */
static void run_disk_error(struct run *run, enum run_fault fault)
{
    static const char *const under[] = {NULL, "/data/topic", "/data/__cluster", "/data/__consumer"};
    const uint32_t calls = fault == RUN_READ_ERROR    ? SIM_CALL_READ
                           : fault == RUN_WRITE_ERROR ? SIM_CALL_WRITE | SIM_CALL_TRUNCATE
                           : fault == RUN_SYNC_ERROR
                               ? SIM_CALL_SYNC | SIM_CALL_SYNC_DIR
                               : SIM_CALL_RENAME | SIM_CALL_UNLINK | SIM_CALL_MKDIR | SIM_CALL_OPEN;
    struct sim_fault how = {.calls = calls};
    how.kind = chance_percent(&run->faults, 50) ? SIM_FAULT_ERROR : SIM_FAULT_TORN;
    how.under = under[chance_below(&run->faults, ARRAY_SIZE(under))];
    how.nth = 1 + chance_below(&run->faults, 20);
    how.for_good = chance_percent(&run->faults, 50);
    sim_node_fault(run->cluster.machine, &how);
    run->history.trouble_us = INT64_MAX;
    run->history.troubles++;
    run->mend_us = sim_now_us(run->world) + 100000 + chance_below(&run->faults, 3000000);
    run->replaced = true;
}

static void run_trouble(struct run *run, enum run_fault fault)
{
    struct sim_node *machine = run->cluster.machine;
    struct chance *faults = &run->faults;
    run->mend_us = sim_now_us(run->world) + chance_below(faults, 2000000);
    run->history.trouble_us = INT64_MAX;
    run->history.troubles++;
    run->replaced = fault == RUN_NO_MEMORY; /* Some parts stop for good without it, and say so. */
    if (fault == RUN_DISK_FULL) {
        sim_node_space(machine, chance_below(faults, 3) * 65536);
    } else if (fault == RUN_SLOW_DISK) {
        uint32_t count = 1 + chance_below(faults, 4);
        for (uint32_t i = 0; i < count; i++) {
            struct sim_fault how = {.kind = SIM_FAULT_STALL};
            how.nth = 1 + chance_below(faults, 10);
            how.stall_ms = chance_below(faults, 2500);
            sim_node_fault(machine, &how);
        }
    } else {
        uint32_t nth = 1 + chance_below(faults, 200);
        sim_node_fail_memory(machine, nth, chance_percent(faults, 30));
    }
}

/* Somebody sees to a machine in trouble, or to a node that has said that it must be started anew.
 */
static void run_maybe_mend(struct run *run)
{
    if (run->mend_us == 0 && run->cluster.node != NULL &&
        controller_failure(run->cluster.node) != NULL && run->history.troubles > 0) {
        run->mend_us = 1;
        run->replaced = true;
    }
    if (run->mend_us == 0 || sim_now_us(run->world) < run->mend_us) return;
    run_heal(run);
    if (!run->replaced || run->cluster.node == NULL) return;
    history_power_cut(&run->history);
    if (chance_percent(&run->faults, 50)) {
        run_stop(run);
    } else {
        cluster_crash(&run->cluster, SIM_CRASH_KILL, 0);
        run_down(run);
    }
}

/* The machine stands still; a controller's for longer than a session, at times. */
static void run_pause(struct run *run)
{
    uint32_t longest_ms = 3000;
    if (run->kind == RUN_CONTROLLER) longest_ms = run->population.session_ms * 2;
    uint32_t pause_ms = chance_below(&run->faults, longest_ms);
    int64_t now_us = sim_now_us(run->world);
    sim_node_pause(run->cluster.machine, pause_ms);
    if (run->kind == RUN_CONTROLLER)
        quorum_check_stands(&run->population.check, now_us, now_us + pause_ms * 1000ll);
}

static void run_strike(struct run *run, enum run_fault fault)
{
    struct sim_node *machine = run->cluster.machine;
    struct chance *faults = &run->faults;
    switch (fault) {
    case RUN_KILL:
        cluster_crash(&run->cluster, SIM_CRASH_KILL, 0);
        run_down(run);
        break;
    case RUN_POWER_CUT: run_power_cut(run); return;
    case RUN_CRASH_POINT:
        sim_node_fault(machine, &(struct sim_fault){.kind = SIM_FAULT_CRASH,
                                                    .nth = 1 + chance_below(faults, 60)});
        return; /* Noted when it strikes. */
    case RUN_STOP: run_stop(run); break;
    case RUN_PAUSE: run_pause(run); break;
    case RUN_RESET:
        if (!sim_node_reset_stream(machine)) return;
        break;
    case RUN_SEVER:
        if (!sim_node_sever_stream(machine)) return;
        break;
    case RUN_WALL_JUMP: run_wall_jump(run); break;
    case RUN_STALL:
        if (!run_stall(run)) return;
        break;
    case RUN_READ_ERROR:
    case RUN_WRITE_ERROR:
    case RUN_SYNC_ERROR:
    case RUN_NAME_ERROR: run_disk_error(run, fault); break;
    case RUN_DISK_FULL:
    case RUN_SLOW_DISK:
    case RUN_NO_MEMORY: run_trouble(run, fault); break;
    case RUN_FAULTS: break;
    }
    run_note(run, fault);
}

static void run_maybe_strike(struct run *run)
{
    if (sim_now_us(run->world) < run->next_fault_us) return;
    run->next_fault_us = sim_now_us(run->world) + 1000 + chance_below(&run->faults, 1500000);
    enum run_fault fault = (enum run_fault)chance_below(&run->faults, RUN_FAULTS);
    if (fault >= RUN_READ_ERROR && run->mend_us != 0) return; /* One trouble at a time. */
    if (run->wants[fault] && run->cluster.node != NULL) run_strike(run, fault);
}

/* ---- the loop
 * --------------------------------------------------------------------------------
 */

static bool run_finished(const struct run *run)
{
    for (uint32_t i = 0; i < run->client_count; i++)
        if (!client_finished(run->clients[i])) return false;
    return run->cluster.node != NULL;
}

/* One step of the world, up to `until_us`. */
static void run_step(struct run *run, int64_t until_us)
{
    struct io *who = NULL;
    if (run->cluster.io == NULL) {
        if (sim_now_us(run->world) >= run->start_us) run_start(run);
        until_us = MIN(until_us, MAX(run->start_us, sim_now_us(run->world)));
    }
    if (history_violated(&run->history)) return;
    switch (sim_step(run->world, until_us, &who)) {
    case SIM_TURN:
        if (sim_tag_of(who) == &run->cluster)
            cluster_turn(&run->cluster, who);
        else
            client_turn(sim_tag_of(who));
        if (run->kind == RUN_CONTROLLER) population_compare(&run->population);
        break;
    case SIM_CRASHED: run_crashed(run); break;
    case SIM_NOTHING: sim_pass(run->world, until_us); break;
    case SIM_UNTIL: break;
    }
    if (++run->turns > RUN_TURNS_MAX)
        history_violation(&run->history, "I23: %u turns and no end", RUN_TURNS_MAX);
}

static bool run_goes_on(const struct run *run, int64_t until_us)
{
    return !history_violated(&run->history) && sim_now_us(run->world) < until_us &&
           !run_finished(run);
}

static void run_storm(struct run *run)
{
    int64_t end_us = sim_now_us(run->world) + RUN_STORM_MS * 1000ll;
    while (run_goes_on(run, end_us)) {
        run_maybe_mend(run);
        if (run->cluster.node != NULL) run_maybe_strike(run);
        int64_t until_us = MIN(end_us, run->next_fault_us);
        if (run->mend_us != 0) until_us = MIN(until_us, run->mend_us);
        if (!history_violated(&run->history)) run_step(run, until_us);
        if (sim_now_us(run->world) >= run->next_fault_us && run->cluster.node == NULL)
            run->next_fault_us = sim_now_us(run->world) + 1000;
    }
    for (uint32_t i = 0; i < run->client_count; i++)
        run->clients[i]->storm = false;
    run->mend_us = run->mend_us == 0 ? 0 : 1;
    run_maybe_mend(run);
    run_heal(run);
}

static void run_settle(struct run *run, const char *phase)
{
    int64_t end_us = sim_now_us(run->world) + RUN_DRAIN_MS * 1000ll;
    while (run_goes_on(run, end_us)) {
        run_maybe_mend(run);
        run_step(run, end_us);
    }
    for (uint32_t i = 0; i < run->client_count; i++)
        if (!client_finished(run->clients[i]))
            history_violation(&run->history, "I23: the %s has not ended after %d s: %s %s", phase,
                              RUN_DRAIN_MS / 1000, run->clients[i]->kind->name,
                              sim_node_name(run->clients[i]->node));
    if (run->cluster.node == NULL) history_violation(&run->history, "I23: the node is down");
}

/* Let the world go on for a while: what was acknowledged with acks=1 becomes
 * durable. */
static void run_rest(struct run *run)
{
    int64_t end_us = sim_now_us(run->world) + RUN_REST_MS * 1000ll;
    while (!history_violated(&run->history) &&
           (sim_now_us(run->world) < end_us || run->cluster.node == NULL))
        run_step(run, MAX(end_us, run->start_us));
}

/* Read everything anew, with one of the readers. */
static void run_audit(struct run *run, const char *phase)
{
    run_rest(run);
    if (history_violated(&run->history)) return;
    if (run->kind == RUN_CONTROLLER) {
        population_audits(&run->population);
        run_settle(run, phase);
        if (!history_violated(&run->history)) population_audited(&run->population);
        return;
    }
    run->history.quiet = true;
    client_reader_audits(run->auditor);
    client_lister_audits(run->lister);
    client_watcher_audits(run->watcher);
    if (run->keeper != NULL) client_keeper_audits(run->keeper);
    if (run->remaker != NULL) client_remaker_audits(run->remaker);
    history_audit_begin(&run->history);
    run_settle(run, phase);
    if (history_violated(&run->history)) return;
    history_audit_end(&run->history);
    places_audited(&run->places);
}

static void run_phases(struct run *run)
{
    run_start(run);
    run->next_fault_us = sim_now_us(run->world) + chance_below(&run->faults, 1000000);
    run_storm(run);
    run_settle(run, "drain");
    run_audit(run, "audit after the storm");
    if (history_violated(&run->history)) return;
    cluster_crash(&run->cluster, SIM_CRASH_WORST, 0);
    run_down(run);
    run_audit(run, "audit after a power cut");
    if (history_violated(&run->history)) return;
    run_stop(run);
    run_audit(run, "audit after a stop");
}

void run_seed(const struct run_options *options, struct run_result *result)
{
    struct run *run = calloc(1, sizeof(*run));
    if (run == NULL) abort();
    memset(result, 0, sizeof(*result));
    run->seed = options->seed;
    run->kind = options->world;
    run->trace = run->cluster.print = run->history.print = options->trace;
    run->cluster.shape.lax = options->lax;
    run->cluster.shape.shards = options->shards != 0     ? options->shards
                                : options->seed % 2 == 0 ? CLUSTER_SHARDS_MAX
                                                         : 1;
    assert(run->cluster.shape.shards <= CLUSTER_SHARDS_MAX);
    run->result = result;
    run_shape(run);
    run_phases(run);
    result->trace_hash = sim_trace_hash(run->world);
    result->simulated_us = sim_now_us(run->world);
    result->acknowledged = run->history.acknowledged;
    result->read = run->history.read;
    for (uint32_t i = 0; i < run->group_count; i++) {
        result->commits += run->commits[i].kept;
        result->removals += run->groups[i].removals;
        result->held_ms += run->groups[i].held_ms;
    }
    result->deletes = run->history.deletes;
    result->places = run->places.asked;
    result->places_exact = run->places.exact;
    if (run->remaker != NULL) result->made = client_remaker_made(run->remaker);
    if (run->keeper != NULL) {
        result->kept = client_keeper_written(run->keeper);
        result->gone = client_keeper_gone(run->keeper);
    }
    if (run->kind == RUN_CONTROLLER) {
        population_tell(&run->population, &result->population);
    } else {
        result->tales = run->watcher->matched;
        result->tales_compared = run->watcher->compared;
    }
    (void)snprintf(result->violation, sizeof(result->violation), "%s", run->history.violation);
    for (uint32_t i = 0; i < run->client_count; i++)
        client_free(run->clients[i]);
    population_free(&run->population);
    sim_world_free(run->world);
    history_free(&run->history);
    free(run);
}
