/* mailbox.h - the one way from thread to thread: post a letter, the owner opens it in its turn.
 *
 * A letter is embedded in what it carries and belongs to the mailbox from posting until it is
 * opened. Letters of one sender are opened in the order in which they were posted. All that the
 * sender wrote before posting is seen by the opener.
 *
 * Thread: any may post; one opens. Lock-free: posting is one exchange on an atomic pointer. */
#pragma once

#include "base/base.h"

struct letter {
    struct letter *next;
    void (*open)(void *owner, struct letter *letter); /* Called on the owner's thread, once. */
};

struct mailbox {
    struct letter *_Atomic newest;
    void (*wake)(void *context); /* Called by the poster when the box was empty. Any thread. */
    void *wake_context;
};

void mailbox_init(struct mailbox *mailbox, void (*wake)(void *context), void *wake_context);

/* Give a letter; wakes the owner if the box was empty. */
void mailbox_post(struct mailbox *mailbox, struct letter *letter);

/* Open what is there now, oldest first. Returns the number of letters. */
uint32_t mailbox_open(struct mailbox *mailbox, void *owner);

/* Whether a letter lies there. */
bool mailbox_empty(struct mailbox *mailbox);
