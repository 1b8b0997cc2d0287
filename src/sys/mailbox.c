/* mailbox.c - a stack that posters push onto and the owner takes as a whole, then turns round.
 *
 * Release on the push and acquire on the take: what the poster wrote before is seen by the opener.
 */
#include "sys/mailbox.h"

#include <stdatomic.h>

void mailbox_init(struct mailbox *mailbox, void (*wake)(void *context), void *wake_context)
{
    atomic_init(&mailbox->newest, NULL);
    mailbox->wake = wake;
    mailbox->wake_context = wake_context;
}

void mailbox_post(struct mailbox *mailbox, struct letter *letter)
{
    assert(letter->open != NULL);
    struct letter *newest = atomic_load_explicit(&mailbox->newest, memory_order_relaxed);
    do {
        letter->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(&mailbox->newest, &newest, letter,
                                                    memory_order_release, memory_order_relaxed));
    /* Whoever found it empty wakes; the others came before the owner had looked. */
    if (newest == NULL && mailbox->wake != NULL) mailbox->wake(mailbox->wake_context);
}

uint32_t mailbox_open(struct mailbox *mailbox, void *owner)
{
    if (mailbox_empty(mailbox)) return 0;
    struct letter *stack = atomic_exchange_explicit(&mailbox->newest, NULL, memory_order_acquire);
    struct letter *oldest = NULL;
    while (stack != NULL) {
        struct letter *next = stack->next;
        stack->next = oldest;
        oldest = stack;
        stack = next;
    }
    uint32_t count = 0;
    while (oldest != NULL) {
        struct letter *letter = oldest;
        oldest = letter->next; /* Opening may free the letter, or post it again. */
        letter->open(owner, letter);
        count++;
    }
    return count;
}

bool mailbox_empty(struct mailbox *mailbox)
{
    return atomic_load_explicit(&mailbox->newest, memory_order_relaxed) == NULL;
}
