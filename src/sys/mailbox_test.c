/* mailbox_test.c - order, waking, and posting from several threads at once. */
#include "sys/mailbox.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct note {
    struct letter letter;
    int sender;
    int number;
};

struct owner {
    struct mailbox box;
    int last[4];
    int opened;
    int wakes;
};

static void opened(void *context, struct letter *letter)
{
    struct owner *owner = context;
    struct note *note = container_of(letter, struct note, letter);
    assert_int_equal(note->number, owner->last[note->sender] + 1);
    owner->last[note->sender] = note->number;
    owner->opened++;
}

static void woken(void *context)
{
    ((struct owner *)context)->wakes++;
}

static void order(void **state)
{
    (void)state;
    struct owner owner = {0};
    struct note notes[3];
    mailbox_init(&owner.box, woken, &owner);
    assert_true(mailbox_empty(&owner.box));
    for (int i = 0; i < 3; i++) {
        notes[i] = (struct note){{.open = opened}, 0, i + 1};
        mailbox_post(&owner.box, &notes[i].letter);
    }
    assert_int_equal(owner.wakes, 1);
    assert_int_equal(mailbox_open(&owner.box, &owner), 3);
    assert_int_equal(mailbox_open(&owner.box, &owner), 0);
    assert_int_equal(owner.last[0], 3);
}

enum { SENDERS = 3, LETTERS = 20000 };

struct sender {
    struct owner *owner;
    struct note *notes;
};

static void *send_all(void *argument)
{
    struct sender *sender = argument;
    for (int i = 0; i < LETTERS; i++)
        mailbox_post(&sender->owner->box, &sender->notes[i].letter);
    return NULL;
}

static void threads(void **state)
{
    (void)state;
    static struct note notes[SENDERS][LETTERS];
    struct owner owner = {0};
    mailbox_init(&owner.box, NULL, NULL);
    pthread_t ids[SENDERS];
    struct sender senders[SENDERS];
    for (int s = 0; s < SENDERS; s++) {
        for (int i = 0; i < LETTERS; i++)
            notes[s][i] = (struct note){{.open = opened}, s, i + 1};
        senders[s] = (struct sender){&owner, notes[s]};
        assert_int_equal(pthread_create(&ids[s], NULL, send_all, &senders[s]), 0);
    }
    while (owner.opened < SENDERS * LETTERS)
        (void)mailbox_open(&owner.box, &owner);
    for (int s = 0; s < SENDERS; s++)
        pthread_join(ids[s], NULL);
    assert_true(mailbox_empty(&owner.box));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(order), cmocka_unit_test(threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
