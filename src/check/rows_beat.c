/* rows_beat.c - Heartbeat in a classic group: who beats, as whom, in which generation and state.
 *
 * The scene of every cell is the same: A, a dynamic member and the leader; F, static as "i2"; S,
 * static as "i1", who came back and has a new id, so that its former one is known; P, who was given
 * a member id and has not joined with it. J is the one whose join begins the rebalance. */
#include "check/classic.h"
#include "check/rows.h"

#include "gen/heartbeat_request.h"

enum state { PREPARING, COMPLETING, STABLE, STATES };
enum instance { NO_INSTANCE, UNREGISTERED, OF_F, OF_S };
enum member { NOBODY, EMPTY, A, F, PENDING, FORMER_S };
enum generation { SAME, OTHER, ANY };

struct cell {
    enum instance instance;
    enum member members[2]; /* Both are tried. */
    enum generation generation;
    enum kafka_error expected[STATES];
};

#define ALWAYS(error)                                                                              \
    {                                                                                              \
        error, error, error                                                                        \
    }
#define ALIVE                                                                                      \
    {                                                                                              \
        KAFKA_REBALANCE_IN_PROGRESS, KAFKA_NONE, KAFKA_NONE                                        \
    }

static const struct cell cells[] = {
    {UNREGISTERED, {A, NOBODY},          ANY,   ALWAYS(KAFKA_UNKNOWN_MEMBER_ID) }, /* C1 */
    {OF_F,         {A, A},               ANY,   ALWAYS(KAFKA_FENCED_INSTANCE_ID)},
    {OF_F,         {PENDING, PENDING},   ANY,   ALWAYS(KAFKA_FENCED_INSTANCE_ID)},
    {OF_F,         {NOBODY, EMPTY},      ANY,   ALWAYS(KAFKA_FENCED_INSTANCE_ID)},
    {OF_F,         {F, F},               OTHER, ALWAYS(KAFKA_ILLEGAL_GENERATION)},
    {OF_F,         {F, F},               SAME,  ALIVE                           }, /* C6 */
    {NO_INSTANCE,  {NOBODY, EMPTY},      ANY,   ALWAYS(KAFKA_UNKNOWN_MEMBER_ID) },
    {NO_INSTANCE,  {PENDING, PENDING},   ANY,   ALWAYS(KAFKA_UNKNOWN_MEMBER_ID) },
    {NO_INSTANCE,  {A, A},               OTHER, ALWAYS(KAFKA_ILLEGAL_GENERATION)},
    {NO_INSTANCE,  {A, A},               SAME,  ALIVE                           }, /* C10 */
    {NO_INSTANCE,  {F, F},               OTHER, ALWAYS(KAFKA_ILLEGAL_GENERATION)},
    {NO_INSTANCE,  {F, F},               SAME,  ALIVE                           },
    {NO_INSTANCE,  {FORMER_S, FORMER_S}, ANY,   ALWAYS(KAFKA_UNKNOWN_MEMBER_ID) },
    {OF_S,         {FORMER_S, FORMER_S}, ANY,   ALWAYS(KAFKA_FENCED_INSTANCE_ID)}, /* C14 */
};

struct scene {
    struct classic a, s, f, p, j;
    struct view former;
};

static void build(struct check_run *run, struct scene *scene, enum state state)
{
    struct classic *const all[] = {&scene->a, &scene->s, &scene->f};

    classic_init(&scene->a, run, NULL);
    classic_init(&scene->s, run, "i1");
    classic_init(&scene->f, run, "i2");
    classic_init(&scene->p, run, NULL);
    scene->p.join_version = CLASSIC_JOIN_NEWEST;
    classic_init(&scene->j, run, "i3");
    classic_stable(all, ARRAY_SIZE(all));
    scene->former = scene->s.id;
    scene->s.id = VIEW_EMPTY;
    run_need(run, "join of a static member that comes back", KAFKA_NONE, classic_join(&scene->s));
    run_need_true(run, "the static member has a new id",
                  run->over || !view_equal(scene->former, scene->s.id));
    if (state != STABLE) classic_enter(&scene->j);
    if (state == COMPLETING) {
        classic_rejoin(all, ARRAY_SIZE(all));
        classic_joined(&scene->j, "join of a fourth member");
    }
    run_need(run, "first join of the pending member", KAFKA_MEMBER_ID_REQUIRED,
             classic_join(&scene->p));
}

static struct view member_of(const struct scene *scene, enum member member)
{
    switch (member) {
    case NOBODY: return VIEW("nobody");
    case EMPTY: return VIEW_EMPTY;
    case A: return scene->a.id;
    case F: return scene->f.id;
    case PENDING: return scene->p.id;
    case FORMER_S: return scene->former;
    }
    return VIEW_EMPTY;
}

static struct view instance_of(enum instance instance)
{
    static const char *const names[] = {NULL, "nobody", "i2", "i1"};
    return view_of_string(names[instance]);
}

static void beat(struct check_run *run,
                 struct scene *scene,
                 const struct cell *cell,
                 enum state state,
                 int16_t version)
{
    static const int32_t steps[] = {0, 1, -1, 1000};
    int32_t generation = scene->a.generation;

    for (uint32_t i = 0; i < ARRAY_SIZE(cell->members); i++) {
        for (uint32_t j = 0; j < ARRAY_SIZE(steps); j++) {
            bool same = steps[j] == 0;
            if (cell->generation != ANY && same != (cell->generation == SAME)) continue;
            struct classic_beat as = {member_of(scene, cell->members[i]),
                                      instance_of(cell->instance), generation + steps[j]};
            int16_t got = classic_beat_as(&scene->a, version, &as);
            const char *what = run_text(run, "v%d, member \"%.*s\", generation %d of %d", version,
                                        (int)as.member.size, (const char *)as.member.data,
                                        as.generation, generation);
            run_need(run, what, cell->expected[state], got);
        }
    }
}

static void cell(struct check_run *run)
{
    uint32_t number = (uint32_t)(run->row - rows_beat.rows);
    const struct cell *cell = &cells[number / STATES];
    enum state state = number % STATES;
    int16_t version = cell->instance == NO_INSTANCE ? 0 : 3;
    struct scene scene;

    build(run, &scene, state);
    (void)run_version(run, &wire_heartbeat_request, version);
    for (; version <= 4; version++)
        if (run_serves(run, &wire_heartbeat_request, version))
            beat(run, &scene, cell, state, version);
    run_expect(run, "", cell->expected[state], (int16_t)cell->expected[state]);
}

#define CELL(id, what)                                                                             \
    CHECK_ROW(id " PreparingRebalance", what, cell),                                               \
        CHECK_ROW(id " CompletingRebalance", what, cell), CHECK_ROW(id " Stable", what, cell)

static const struct check_row rows[] = {
    CELL("C1", "an instance that is not registered"),
    CELL("C2", "another member's instance"),
    CELL("C3", "another member's instance, pending member"),
    CELL("C4", "another member's instance, unknown member"),
    CELL("C5", "own instance, another generation"),
    CELL("C6", "own instance, the generation"),
    CELL("C7", "unknown or empty member id"),
    CELL("C8", "pending member id"),
    CELL("C9", "dynamic member, another generation"),
    CELL("C10", "dynamic member, the generation"),
    CELL("C11", "static member without instance, another generation"),
    CELL("C12", "static member without instance, the generation"),
    CELL("C13", "a static member's former id"),
    CELL("C14", "a static member's former id with its instance"),
};

const struct check_table rows_beat = {
    "Heartbeat in a classic group (versions 0 to 4; with an instance 3 and 4)",
    rows,
    ARRAY_SIZE(rows),
};
