/* ask.c - a question to the shard: a letter that both sides hold until both have let go.
 *
 * The asker waits on the question's own lock, so that the shard touches nothing of the console's,
 * which may be gone when a late letter is opened (at the latest when the shard is closed). */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "console/inside.h"

#define ASK_SLICE_MS 50 /* How soon a stopping console is noticed. */

struct ask {
    struct letter letter;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    void (*fill)(struct shard *shard, void *argument);
    void (*drop)(void *argument);
    void *argument;
    bool done;     /* The shard has answered and let go. */
    bool given_up; /* The asker has let go. */
};

static void ask_free(struct ask *ask, bool drop)
{
    if (drop) ask->drop(ask->argument);
    pthread_cond_destroy(&ask->answered);
    pthread_mutex_destroy(&ask->lock);
    free(ask);
}

static void opened(void *owner, struct letter *letter)
{
    struct ask *ask = container_of(letter, struct ask, letter);
    pthread_mutex_lock(&ask->lock);
    bool given_up = ask->given_up;
    if (!given_up) {
        ask->fill(owner, ask->argument); /* The asker only waits: nobody is held up. */
        ask->done = true;
        pthread_cond_signal(&ask->answered);
    }
    pthread_mutex_unlock(&ask->lock);
    if (given_up) ask_free(ask, true);
}

static struct timespec in_ms(int ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += (long)ms * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static struct ask *ask_new(void (*fill)(struct shard *, void *),
                           void *argument,
                           void (*drop)(void *))
{
    struct ask *ask = calloc(1, sizeof(*ask));
    if (ask == NULL) return NULL;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&ask->answered, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&ask->lock, NULL);
    ask->letter.open = opened;
    ask->fill = fill;
    ask->argument = argument;
    ask->drop = drop;
    return ask;
}

static bool gone(struct console *console)
{
    pthread_mutex_lock(&console->lock);
    bool is = console->shard == NULL;
    pthread_mutex_unlock(&console->lock);
    return is;
}

/* Give the letter while the shard cannot be detached. */
static bool posted(struct console *console, uint32_t index, struct ask *ask)
{
    pthread_mutex_lock(&console->lock);
    bool is = console->shard != NULL && index < console->shard->count;
    if (is) shard_post(console->shard->peers[index], &ask->letter);
    pthread_mutex_unlock(&console->lock);
    return is;
}

enum ask_result ask_shard(struct console *console,
                          uint32_t index,
                          void (*fill)(struct shard *, void *argument),
                          void *argument,
                          void (*drop)(void *argument))
{
    struct ask *ask = ask_new(fill, argument, drop);
    if (ask == NULL) return ASK_NONE;
    if (!posted(console, index, ask)) {
        ask_free(ask, false);
        return ASK_NONE;
    }
    pthread_mutex_lock(&ask->lock);
    for (int waited_ms = 0; !ask->done && waited_ms < CONSOLE_ASK_MS; waited_ms += ASK_SLICE_MS) {
        struct timespec until = in_ms(ASK_SLICE_MS);
        int result = pthread_cond_timedwait(&ask->answered, &ask->lock, &until);
        if (result == ETIMEDOUT && gone(console)) break;
    }
    bool done = ask->done;
    ask->given_up = !done;
    pthread_mutex_unlock(&ask->lock);
    if (done) ask_free(ask, false);
    return done ? ASK_DONE : ASK_SILENT;
}
