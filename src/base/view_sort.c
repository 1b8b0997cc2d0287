/* view_sort.c - heapsort: no memory, no bad case that a client could choose. */
#include "base/view_sort.h"

static void sift(struct view *heap, uint32_t root, uint32_t count)
{
    struct view moving = heap[root];
    for (uint32_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && view_compare(heap[child], heap[child + 1]) < 0) child++;
        if (view_compare(moving, heap[child]) >= 0) break;
        heap[root] = heap[child];
    }
    heap[root] = moving;
}

void view_sort(struct view *views, uint32_t count)
{
    for (uint32_t i = count / 2; i > 0; i--)
        sift(views, i - 1, count);
    for (uint32_t end = count; end > 1; end--) {
        struct view last = views[end - 1];
        views[end - 1] = views[0];
        views[0] = last;
        sift(views, 0, end - 1);
    }
}
