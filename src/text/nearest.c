/* nearest.c - see nearest.h. */
#include "text/nearest.h"

enum { LENGTH_MAX = 96 };

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 'a' - 'A') : c;
}

uint32_t nearest_distance(struct view a, struct view b)
{
    uint32_t rows[3][LENGTH_MAX + 1];
    uint32_t *before = rows[0], *above = rows[1], *row = rows[2];
    uint32_t a_size = MIN(a.size, (uint32_t)LENGTH_MAX), b_size = MIN(b.size, (uint32_t)LENGTH_MAX);

    memset(rows, 0, sizeof(rows));
    for (uint32_t j = 0; j <= b_size; j++)
        above[j] = j;
    for (uint32_t i = 1; i <= a_size; i++) {
        row[0] = i;
        for (uint32_t j = 1; j <= b_size; j++) {
            uint8_t x = lower(a.data[i - 1]), y = lower(b.data[j - 1]);
            row[j] = MIN(MIN(above[j] + 1, row[j - 1] + 1), above[j - 1] + (x != y));
            bool swapped = i > 1 && j > 1 && x == lower(b.data[j - 2]) && lower(a.data[i - 2]) == y;
            if (swapped) row[j] = MIN(row[j], before[j - 2] + 1);
        }
        uint32_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[b_size];
}

struct nearest nearest_to(struct view wanted)
{
    return (struct nearest){.wanted = wanted, .distance = UINT32_MAX};
}

void nearest_offer(struct nearest *nearest, const char *name)
{
    struct view known = view_of_string(name);
    struct view wanted = nearest->wanted;
    uint32_t distance = nearest_distance(wanted, known);
    struct view beginning = view_of(known.data, MIN(known.size, wanted.size));
    bool begins = wanted.size >= 3 && nearest_distance(wanted, beginning) == 0;

    if (!begins && distance > MAX(known.size / 3, 1u)) return;
    if (begins) distance = MIN(distance, 1u);
    if (distance >= nearest->distance) return;
    nearest->best = name;
    nearest->distance = distance;
}
