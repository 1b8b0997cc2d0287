/* list.h - intrusive doubly linked lists. The node lives in the element; the list owns nothing. */
#pragma once

#include "base/base.h"

struct list {
    struct list *next;
    struct list *previous;
};

/* An empty head, or a node that is on no list: points at itself. */
static inline void list_init(struct list *node)
{
    node->next = node->previous = node;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

static inline void list_add_before(struct list *place, struct list *node)
{
    node->next = place;
    node->previous = place->previous;
    place->previous->next = node;
    place->previous = node;
}

static inline void list_append(struct list *head, struct list *node)
{
    list_add_before(head, node);
}

static inline void list_prepend(struct list *head, struct list *node)
{
    list_add_before(head->next, node);
}

/* Take the node off its list; harmless for a node that is on none (but was initialised). */
static inline void list_remove(struct list *node)
{
    node->previous->next = node->next;
    node->next->previous = node->previous;
    list_init(node);
}

/* The first node of a list, taken off it, or NULL. */
static inline struct list *list_pop(struct list *head)
{
    if (list_empty(head)) return NULL;
    struct list *node = head->next;
    list_remove(node);
    return node;
}

/* Every node; the body may remove the one it is at. */
#define list_foreach(node, head)                                                                   \
    for (struct list *node = (head)->next, *node##_next = node->next; node != (head);              \
         node = node##_next, node##_next = node->next)
