/* population.c - see population.h. */
#include "sim/population.h"

#include "broker/broker.h"
#include "broker/controller.h"

#define POPULATION_LATE_US 5000000 /* A fencing is seen within, or not judged. */

/* ---- its shape ------------------------------------------------------------------------------- */

/* The clock may have jumped since, or the process that read it is gone: then nobody knows. */
static int64_t population_world_us(void *context, int64_t wall_ms)
{
    const struct population *population = context;
    const struct cluster *cluster = population->cluster;
    int64_t now_us = sim_now_us(cluster->world);
    if (cluster->node == NULL || now_us < population->jumped_us + POPULATION_LATE_US) return -1;
    int64_t late_us = (io_wall_ms(cluster->io) - wall_ms) * 1000;
    return late_us < 0 || late_us > POPULATION_LATE_US ? -1 : now_us - late_us;
}

void population_shape(struct population *population,
                      struct cluster *cluster,
                      struct history *history,
                      struct chance *shape)
{
    static const int16_t versions[] = {0, 0, 0, 17, 25};
    population->cluster = cluster;
    population->session_ms = 3000 + chance_below(shape, 6000);
    population->broker_count = 3 + chance_below(shape, POPULATION_BROKERS_MAX - 2);
    quorum_check_init(&population->check, history, population->session_ms * 1000ll);
    population->jumped_us = -POPULATION_LATE_US;
    population->check.world_us = population_world_us;
    population->check.context = population;
    cluster->shape.controller = true;
    cluster->shape.alone = chance_percent(shape, 70);
    cluster->shape.metadata_version = versions[chance_below(shape, ARRAY_SIZE(versions))];
    cluster_set(cluster, "broker.session.timeout.ms",
                population->session_ms / (cluster->shape.lax ? 4 : 1));
    cluster_set(cluster, "metadata.log.max.record.bytes.between.snapshots",
                1024u << chance_below(shape, 8));
    cluster_set(cluster, "metadata.log.max.snapshot.interval.ms",
                chance_percent(shape, 50) ? 5000 : 3600000);
    cluster_set(cluster, "metadata.max.idle.interval.ms", chance_below(shape, 2) * 500);
    cluster_set(cluster, "leader.imbalance.check.interval.seconds", 5 + chance_below(shape, 300));
    cluster_set(cluster, "unclean.leader.election.interval.ms", 3000 + chance_below(shape, 60000));
}

void population_fill(struct population *population,
                     struct client_seat seat,
                     void (*add)(void *context, struct client *client),
                     void *context)
{
    const struct view cluster_id = view_of_string(CLUSTER_ID);
    seat.port = CLUSTER_CONTROLLER_PORT;
    population->operator= client_operator_new(&seat, &population->check, cluster_id);
    population->operator->broker_count = population->broker_count;
    population->operator->broker_first = 2; /* The node is 1. */
    add(context, &population->operator->client);
    for (uint32_t i = 0; i < population->broker_count; i++) {
        seat.index++;
        struct client_broker_seat place = {seat, &population->check, cluster_id, 2 + (int32_t)i,
                                           population->session_ms};
        population->brokers[i] = client_broker_new(&place);
        add(context, &population->brokers[i]->client);
    }
}

/* ---- comparing ------------------------------------------------------------------------------- */

void population_compare(struct population *population)
{
    const struct node *node = population->cluster->node;
    const struct follower *follower = &population->operator->follower;
    if (node == NULL || follower->applied == population->compared ||
        node->image_offset != follower->applied || controller_failure(node) != NULL)
        return;
    population->compared = follower->applied;
    population->comparisons++;
    quorum_check_equal(&population->check, node->image, follower->image, "the node's image");
}

void population_audits(struct population *population)
{
    population->compared = -1; /* It may have begun anew. */
    client_operator_audits(population->operator);
}

void population_audited(struct population *population)
{
    const struct node *node = population->cluster->node;
    const struct follower *follower = &population->operator->follower;
    population_compare(population);
    int64_t end;
    const struct image *image = controller_image(node, &end);
    if (end == follower->applied)
        quorum_check_equal(&population->check, image, follower->image, "the controller's image");
    for (uint32_t i = 0; i < population->broker_count; i++) {
        const struct follower *other = &population->brokers[i]->follower;
        if (other->applied != follower->applied) continue;
        population->comparisons++;
        quorum_check_equal(&population->check, other->image, follower->image, "a broker's image");
    }
}

/* ---- its end --------------------------------------------------------------------------------- */

void population_tell(const struct population *population, struct population_told *out)
{
    *out = (struct population_told){
        .records = (uint64_t)population->check.end,
        .batches = population->check.batches,
        .elections = population->check.elections,
        .fencings = population->check.fencings,
        .silences = population->check.silences,
        .comparisons = population->comparisons,
    };
    for (uint32_t i = 0; i < population->broker_count; i++) {
        const struct client_broker *broker = population->brokers[i];
        out->registrations += broker->registrations;
        out->beats += broker->beats;
        out->stops += broker->stops;
        out->alterations += broker->alterations;
        out->snapshots += broker->follower.snapshots;
    }
}

void population_free(struct population *population)
{
    quorum_check_free(&population->check);
}
