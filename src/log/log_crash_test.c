/* log_crash_test.c - a crash at every disk call of scripted workloads, with many of the outcomes
 * that a power cut may leave, and what must hold after each.
 *
 * A script drives one log and keeps a model beside it: what was appended at which offset, up to
 * where it was told to be durable, what it asked to be cut or deleted. After the crash the disk is
 * forked once for each outcome, the log is opened on it and judged:
 *   - it opens; no offset below what was told durable is missing;
 *   - every record is the one that was appended at its offset, whole, with its CRC;
 *   - offsets follow one another without a hole;
 *   - the last durable idempotent batch is still known as a duplicate;
 *   - it can be appended to, stopped, and opened again with the same contents.
 * The environment variable CRASH_SEEDS (1) says how many seeds; CRASH_ONLY=script:nth shows one;
 * CRASH_TEST=crash_x runs one script. */
#include "log/script_rig_test.h"

/* ---- the matrix ------------------------------------------------------------------------------ */

struct outcome {
    enum sim_crash kind;
    uint64_t choice;
};

static void judge_outcome(const struct crash_run *of,
                          const struct outcome *outcome,
                          struct verdict *verdict)
{
    struct sim_world *world = rig_world(outcome->choice + 7);
    struct sim_node *node = sim_node_fork(world, of->node, outcome->kind, outcome->choice);
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

/* Up to so many unsynced changes, every set of them is tried as what a power cut keeps. */
#define EVERY_CHOICE_MAX 4u

struct script {
    const char *name;
    void (*run)(struct crash_run *run);
};

/* Run the script with a crash in its nth disk call. False: it came to its end before. */
static bool crash_at(const struct script *script,
                     uint64_t seed,
                     uint64_t nth,
                     struct verdict *verdict)
{
    struct sim_world *world = rig_world(seed);
    struct sim_node *node = sim_node_new(world, "n");
    struct model *model = calloc(1, sizeof(*model));
    struct rig *rig = rig_on(node);
    struct crash_run run = {.rig = rig, .node = node, .model = model};
    format(rig);
    sim_node_fault(node, &(struct sim_fault){.kind = SIM_FAULT_CRASH, .nth = nth});
    if (start(&run) && open_log(&run, true)) script->run(&run);
    bool crashed = dead(&run);
    for (int kind = 0; kind < SIM_CRASH_KINDS && verdict->text[0] == '\0'; kind++) {
        uint64_t choices = kind <= SIM_CRASH_ALL ? 1 : kind == SIM_CRASH_RANDOM ? 6 : 4;
        uint32_t unsynced = sim_node_unsynced(node);
        bool every = kind == SIM_CRASH_CHOSEN && unsynced <= EVERY_CHOICE_MAX;
        if (every) choices = UINT64_C(1) << unsynced; /* Each set of changes that may be kept. */
        for (uint64_t choice = 0; choice < choices && verdict->text[0] == '\0'; choice++) {
            struct outcome outcome = {(enum sim_crash)kind, every ? choice : nth + choice * 1000};
            judge_outcome(&run, &outcome, verdict);
            if (verdict->text[0] != '\0')
                print_message("%s, seed %llu, crash in call %llu, outcome %d choice %llu: %s\n",
                              script->name, (unsigned long long)seed, (unsigned long long)nth, kind,
                              (unsigned long long)outcome.choice, verdict->text);
        }
    }
    sim_world_free(world);
    free(model);
    free(rig);
    return crashed;
}

static uint64_t setting(const char *name, uint64_t usual)
{
    const char *text = getenv(name);
    return text == NULL ? usual : strtoull(text, NULL, 10);
}

static void crash_everywhere(const struct script *script)
{
    struct verdict verdict = {0};
    uint64_t points = 0;
    uint64_t bad = 0;
    uint64_t seeds = setting("CRASH_SEEDS", 1);
    for (uint64_t seed = 0; seed < seeds; seed++) {
        const char *only = getenv("CRASH_ONLY"); /* script:nth */
        uint64_t first = 1;
        if (only != NULL) {
            size_t size = strlen(script->name);
            if (strncmp(only, script->name, size) != 0 || only[size] != ':') return;
            first = strtoull(only + size + 1, NULL, 10);
        }
        for (uint64_t nth = first;; nth++) {
            verdict.text[0] = '\0';
            bool crashed = crash_at(script, seed, nth, &verdict);
            points++;
            bad += verdict.text[0] != '\0';
            if (!crashed || bad > 5 || only != NULL) break;
        }
    }
    print_message("%s: %llu crash points, %llu outcomes, %llu wrong\n", script->name,
                  (unsigned long long)points, (unsigned long long)verdict.outcomes,
                  (unsigned long long)bad);
    assert_int_equal(bad, 0);
}

#define CRASH_TEST(name)                                                                           \
    static void crash_##name(void **state)                                                         \
    {                                                                                              \
        (void)state;                                                                               \
        crash_everywhere(&(struct script){#name, script_##name});                                  \
    }
CRASH_TEST(append_and_roll)
CRASH_TEST(stop_and_start)
CRASH_TEST(truncate)
CRASH_TEST(restart)
CRASH_TEST(delete_records)
CRASH_TEST(delete_log)
CRASH_TEST(transactions)
CRASH_TEST(compact)
CRASH_TEST(retain)
CRASH_TEST(expire)
CRASH_TEST(lookups)
CRASH_TEST(move)
CRASH_TEST(resume)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crash_append_and_roll),
        cmocka_unit_test(crash_stop_and_start),
        cmocka_unit_test(crash_truncate),
        cmocka_unit_test(crash_restart),
        cmocka_unit_test(crash_delete_records),
        cmocka_unit_test(crash_delete_log),
        cmocka_unit_test(crash_transactions),
        cmocka_unit_test(crash_compact),
        cmocka_unit_test(crash_retain),
        cmocka_unit_test(crash_lookups),
        cmocka_unit_test(crash_expire),
        cmocka_unit_test(crash_resume),
        cmocka_unit_test(crash_move),
    };
    if (getenv("CRASH_TEST") != NULL) cmocka_set_test_filter(getenv("CRASH_TEST"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
