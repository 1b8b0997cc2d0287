/* log_fault_test.c - every disk call and every allocation of the scripts fails once, or from then
 * on for good.
 *
 * What must hold: the program goes on (no assertion, nothing in flight for ever); what was told
 * durable is there when the log is opened again on the same disk, after a kill and after a power
 * cut. A full disk or exhausted memory, once healed, leaves a log that goes on in the same process.
 */
#include "log/script_rig_test.h"

struct trouble {
    const char *name;
    enum sim_fault_kind kind;
    int error;      /* 0: memory. */
    uint32_t calls; /* Set of enum sim_call; 0: any. */
    bool for_good;
    bool heals; /* After healing, the process itself must go on. */
};

struct script {
    const char *name;
    void (*run)(struct crash_run *run);
};

static const struct script scripts[] = {
    {"append_and_roll", script_append_and_roll},
    {"stop_and_start",  script_stop_and_start },
    {"truncate",        script_truncate       },
    {"restart",         script_restart        },
    {"delete_records",  script_delete_records },
    {"delete_log",      script_delete_log     },
    {"transactions",    script_transactions   },
    {"compact",         script_compact        },
    {"retain",          script_retain         },
    {"expire",          script_expire         },
    {"lookups",         script_lookups        },
    {"resume",          script_resume         },
    {"move",            script_move           },
};

/* Let what is in flight come to an end, whatever it is. */
static bool run_out(struct crash_run *run)
{
    struct rig *rig = run->rig;
    if (rig->logs == NULL) return true;
    for (int i = 0; i < 20000; i++) {
        if (logs_idle(rig->logs)) return true;
        rig_turn(rig);
    }
    return false;
}

static void judge_disk(const struct crash_run *of, enum sim_crash kind, struct verdict *verdict)
{
    struct sim_world *world = rig_world(99);
    struct sim_node *node = sim_node_fork(world, of->node, kind, 1);
    struct model *model = malloc(sizeof(*model));
    *model = *of->model;
    struct rig *rig = rig_on(node);
    struct crash_run run = {.rig = rig, .node = node, .model = model};
    verdict->outcomes++;
    (void)judge(&run, verdict);
    sim_world_free(world);
    free(model);
    free(rig);
}

/* The same process goes on after the trouble is over. */
static bool judge_healed(struct crash_run *run, struct verdict *verdict)
{
    struct log_dir_info info;
    if (run->rig->logs == NULL) return true; /* It did not start, which is an answer. */
    logs_dir_info(run->rig->logs, 0, &info);
    if (info.error != 0) return wrong(verdict, "offline: %s", run->rig->said);
    if (run->model->may_be_gone) return true;
    /* The trouble of the last try is told once. */
    bool opened = open_log(run, run->model->durable == 0);
    if (!opened) opened = open_log(run, run->model->durable == 0);
    if (!opened) return wrong(verdict, "does not open: %s", run->rig->said);
    int64_t until_ms = io_now_ms(run->rig->io) + 10000;
    while (info.full && io_now_ms(run->rig->io) < until_ms) {
        rig_turn(run->rig);
        logs_dir_info(run->rig->logs, 0, &info);
    }
    if (info.full) return wrong(verdict, "still full");
    run->model->end = log_end_assigned(run->log);
    if (!append(run, &(struct rig_batch){.count = 1, .value_bytes = 50}))
        return wrong(verdict, "an append is refused");
    for (int i = 0; i < 2000 && !logs_idle(run->rig->logs); i++)
        rig_turn(run->rig);
    if (log_end_durable(run->log) != run->model->end) return wrong(verdict, "not durable");
    run->model->durable = run->model->end;
    return judge_records(run, verdict);
}

/* One run of the script with the trouble at its nth chance. False: it never came. */
static bool trouble_at(const struct script *script,
                       const struct trouble *trouble,
                       uint64_t nth,
                       struct verdict *verdict)
{
    struct sim_world *world = rig_world(nth);
    struct sim_node *node = sim_node_new(world, "n");
    struct model *model = calloc(1, sizeof(*model));
    struct rig *rig = rig_on(node);
    struct crash_run run = {.rig = rig, .node = node, .model = model, .trouble = true};
    format(rig);
    uint64_t calls = sim_node_io_count(node);
    uint64_t allocations = sim_node_allocations(node);
    struct sim_fault fault = {.kind = trouble->kind,
                              .calls = trouble->calls,
                              .nth = nth,
                              .for_good = trouble->for_good,
                              .error = trouble->error};
    if (trouble->error == 0)
        sim_node_fail_memory(node, nth, trouble->for_good);
    else
        sim_node_fault(node, &fault);
    if (start(&run) && open_log(&run, true)) script->run(&run);
    sim_node_heal(node);
    bool came = trouble->error == 0 ? sim_node_allocations(node) - allocations >= nth
                                    : sim_node_io_count(node) - calls >= nth;
    if (!run_out(&run)) (void)wrong(verdict, "something is in flight for ever");
    if (verdict->text[0] == '\0' && trouble->heals) (void)judge_healed(&run, verdict);
    const enum sim_crash kinds[] = {SIM_CRASH_KILL, SIM_CRASH_WORST, SIM_CRASH_ALL};
    for (size_t i = 0; i < ARRAY_SIZE(kinds) && verdict->text[0] == '\0'; i++)
        judge_disk(&run, kinds[i], verdict);
    if (rig->logs != NULL && verdict->text[0] == '\0') {
        logs_stop(rig->logs);
        if (!run_out(&run))
            (void)wrong(verdict, "it does not come to rest");
        else
            logs_close(rig->logs, -1); /* Nothing leaks: the node's memory is counted. */
        if (io_mem(rig->io)->used_bytes != 0) (void)wrong(verdict, "memory is left over");
    }
    sim_world_free(world);
    free(model);
    free(rig);
    return came;
}

static void trouble_everywhere(const struct trouble *trouble)
{
    uint64_t bad = 0;
    uint64_t runs = 0;
    struct verdict verdict = {0};
    for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
        const char *only = getenv("FAULT_ONLY"); /* script:nth */
        uint64_t first = 1;
        if (only != NULL) {
            size_t size = strlen(scripts[i].name);
            if (strncmp(only, scripts[i].name, size) != 0 || only[size] != ':') continue;
            first = strtoull(only + size + 1, NULL, 10);
        }
        for (uint64_t nth = first;; nth++) {
            verdict.text[0] = '\0';
            bool came = trouble_at(&scripts[i], trouble, nth, &verdict);
            runs++;
            if (verdict.text[0] != '\0') {
                print_message("%s, %s at %llu: %s\n", scripts[i].name, trouble->name,
                              (unsigned long long)nth, verdict.text);
                if (++bad > 8) break;
            }
            if (!came || only != NULL) break;
        }
    }
    print_message("%s: %llu runs, %llu disks judged, %llu wrong\n", trouble->name,
                  (unsigned long long)runs, (unsigned long long)verdict.outcomes,
                  (unsigned long long)bad);
    assert_int_equal(bad, 0);
}

#define WRITING                                                                                    \
    (SIM_CALL_WRITE | SIM_CALL_MKDIR | SIM_CALL_RENAME | SIM_CALL_RESERVE | SIM_CALL_TRUNCATE |    \
     SIM_CALL_OPEN)

static void call_fails_once(void **state)
{
    (void)state;
    trouble_everywhere(&(struct trouble){"EIO once", SIM_FAULT_ERROR, .error = -EIO});
}

static void calls_fail_for_good(void **state)
{
    (void)state;
    trouble_everywhere(
        &(struct trouble){"EIO for good", SIM_FAULT_ERROR, .error = -EIO, .for_good = true});
}

static void disk_is_full_once(void **state)
{
    (void)state;
    trouble_everywhere(&(struct trouble){"ENOSPC once", SIM_FAULT_TORN, .error = -ENOSPC,
                                         .calls = WRITING, .heals = true});
}

static void disk_is_full_until_healed(void **state)
{
    (void)state;
    trouble_everywhere(&(struct trouble){"ENOSPC until healed", SIM_FAULT_TORN, .error = -ENOSPC,
                                         .calls = WRITING, .for_good = true, .heals = true});
}

static void memory_fails_once(void **state)
{
    (void)state;
    trouble_everywhere(&(struct trouble){"no memory once", .heals = true});
}

static void memory_fails_until_healed(void **state)
{
    (void)state;
    trouble_everywhere(
        &(struct trouble){"no memory until healed", .for_good = true, .heals = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_fails_once),   cmocka_unit_test(calls_fail_for_good),
        cmocka_unit_test(disk_is_full_once), cmocka_unit_test(disk_is_full_until_healed),
        cmocka_unit_test(memory_fails_once), cmocka_unit_test(memory_fails_until_healed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
