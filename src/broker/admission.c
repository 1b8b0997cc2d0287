/* admission.c - see admission.h.
 *
 * The line is a moment in the future: when the next connection may come in. Each that comes is
 * recorded at that moment, and what the rates say it has to wait moves the moment on, so that a
 * burst is let in evenly, as by an acceptor that sleeps. A line that is longer than a connection
 * can be expected to wait closes what comes. */
#include "broker/admission.h"

#include <errno.h>

#include "broker/broker.h"
#include "broker/dynamic.h"
#include "broker/quotas.h"
#include "core/quota_rate.h"

#define LINE_MAX_MS 10000 /* Who would have to wait longer is closed. */
#define UNLIMITED   INT32_MAX

struct gate {
    int64_t limit; /* Connections a second; UNLIMITED: nothing is recorded. */
    struct quota_rate *rate;
};

struct admission {
    struct quota_window window;
    int64_t next_ms; /* When the next one may come in; in the past: at once. */
    struct gate node;
    struct gate listeners[NODE_LISTENERS_MAX];
};

static size_t rate_size(const struct admission *admission)
{
    return sizeof(struct quota_rate) + (admission->window.count + 1) * sizeof(struct quota_sample);
}

static bool gate_open(struct node *node, struct gate *gate)
{
    gate->limit = UNLIMITED;
    gate->rate = mem_get(node->mem, rate_size(node->admission));
    return gate->rate != NULL;
}

int admission_open(struct node *node)
{
    struct admission *admission = mem_get(node->mem, sizeof(*admission));
    if (admission == NULL) return -ENOMEM;
    node->admission = admission;
    int64_t count = broker_setting_number(node, "quota.window.num");
    admission->window = (struct quota_window){
        .count = (uint32_t)MIN(count, (int64_t)QUOTA_SAMPLES_MAX),
        .sample_ms = broker_setting_number(node, "quota.window.size.seconds") * 1000,
    };
    bool opened = gate_open(node, &admission->node);
    for (uint32_t i = 0; i < NODE_LISTENERS_MAX; i++)
        opened = gate_open(node, &admission->listeners[i]) && opened;
    return opened ? 0 : -ENOMEM;
}

void admission_close(struct node *node)
{
    struct admission *admission = node->admission;
    if (admission == NULL) return;
    mem_put(node->mem, admission->node.rate, rate_size(admission));
    for (uint32_t i = 0; i < NODE_LISTENERS_MAX; i++)
        mem_put(node->mem, admission->listeners[i].rate, rate_size(admission));
    node->admission = mem_put(node->mem, admission, sizeof(*admission));
}

void admission_configure(struct node *node)
{
    static const char name[] = "max.connection.creation.rate";
    struct admission *admission = node->admission;
    admission->node.limit = broker_setting_number(node, name);
    for (uint32_t i = 0; i < node->options.listener_count; i++) {
        struct gate *gate = &admission->listeners[i];
        gate->limit = UNLIMITED;
        if (node->listeners[i] != NULL)
            (void)!dynamic_listener_number(node, node->listeners[i]->name, name, &gate->limit);
    }
}

/* One more at `at_ms`: how long until the rate is what it may be. */
static int64_t gate_pass(const struct admission *admission, struct gate *gate, int64_t at_ms)
{
    int64_t elapsed_ms;
    if (gate->limit >= UNLIMITED) return 0;
    quota_rate_record(gate->rate, &admission->window, 1, at_ms);
    double rate = quota_rate_measure(gate->rate, &admission->window, at_ms, &elapsed_ms);
    int64_t wait_ms = quota_rate_throttle_ms(rate, (double)gate->limit, elapsed_ms);
    return MIN(wait_ms, admission->window.sample_ms);
}

static struct gate *gate_of(struct node *node, const struct listener *listener)
{
    for (uint32_t i = 0; i < node->options.listener_count; i++)
        if (node->listeners[i] == listener) return &node->admission->listeners[i];
    return NULL;
}

struct shard_admission admission_admit(struct shard *shard,
                                       const struct listener *listener,
                                       const struct io_address *peer)
{
    struct node *node = node_of(shard);
    struct admission *admission = node->admission;
    int64_t now_ms = io_now_ms(node->io);
    int64_t peer_ms = quotas_admit(node, peer);
    if (peer_ms > 0) return (struct shard_admission){peer_ms, true};
    int64_t at_ms = MAX(admission->next_ms, now_ms);
    if (at_ms - now_ms > LINE_MAX_MS) return (struct shard_admission){1, true};
    struct gate *own = gate_of(node, listener);
    int64_t wait_ms = own == NULL ? 0 : gate_pass(admission, own, at_ms);
    /* Brokers come in whatever clients do, if they have a listener of their own. */
    bool exempt = listener->inter_broker && node->options.listener_count > 1;
    if (!exempt) wait_ms = MAX(wait_ms, gate_pass(admission, &admission->node, at_ms));
    if (wait_ms == 0 && at_ms == now_ms) return (struct shard_admission){0, false};
    admission->next_ms = at_ms + wait_ms;
    return (struct shard_admission){admission->next_ms - now_ms, false};
}
