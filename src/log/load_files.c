/* load_files.c - what lies in a partition's folder, and what an interrupted change left there.
 *
 *   NAME.deleted   was being deleted: unlinked
 *   NAME.cleaned   a compaction's output that never counted: unlinked
 *   NAME.swap      a compaction's output that counts: it replaces every file whose base lies in the
 *                  range it covers, then loses its suffix. If a .cleaned with a base at or below
 *                  is there too, it was a split that did not finish: unlinked as well
 *   NAME.tmp       a small file that was never put in place: unlinked */
#include "log/load.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define METADATA_NAME "partition.metadata"

/* A file name of the folder: "%020d.KIND" with perhaps a suffix. */
struct load_name {
    int64_t base;
    int kind;
    enum { NAME_OTHER, NAME_PLAIN, NAME_DELETED, NAME_CLEANED, NAME_SWAP, NAME_TMP } state;
};

static bool name_ends(const char *name, const char *suffix)
{
    size_t size = strlen(name);
    size_t suffix_size = strlen(suffix);
    return size >= suffix_size && memcmp(name + size - suffix_size, suffix, suffix_size) == 0;
}

static int name_kind(const char *rest, size_t size)
{
    static const struct {
        const char *text;
        int kind;
    } kinds[] = {
        {".log",       LOAD_LOG     },
        {".index",     LOAD_OFFSETS },
        {".timeindex", LOAD_TIMES   },
        {".txnindex",  LOAD_TXNS    },
        {".snapshot",  LOAD_SNAPSHOT},
    };
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (strlen(kinds[i].text) == size && memcmp(rest, kinds[i].text, size) == 0)
            return kinds[i].kind;
    return 0;
}

static struct load_name name_parse(const char *name)
{
    struct load_name out = {.state = NAME_OTHER};
    if (name_ends(name, ".tmp")) out.state = NAME_TMP;
    int64_t base;
    const char *rest = segment_name_read(name, &base);
    if (rest == NULL) return out;
    size_t size = strlen(rest);
    int state = NAME_PLAIN;
    if (name_ends(rest, ".deleted")) {
        state = NAME_DELETED;
        size -= strlen(".deleted");
    } else if (name_ends(rest, ".cleaned")) {
        state = NAME_CLEANED;
        size -= strlen(".cleaned");
    } else if (name_ends(rest, ".swap")) {
        state = NAME_SWAP;
        size -= strlen(".swap");
    }
    out.kind = name_kind(rest, size);
    if (out.kind == 0) return out;
    out.base = base;
    out.state = state;
    return out;
}

/* ---- the folder as it is ----------------------------------------------------------------------
 */

static struct load_base *base_get(struct load *load, int64_t base)
{
    /* Names come sorted, so a base that is there is among the last; kinds of one base are
     * neighbours. */
    for (uint32_t i = load->base_count; i > 0; i--)
        if (load->bases[i - 1].base == base) return &load->bases[i - 1];
    if (load->base_count == load->base_capacity) {
        uint32_t capacity = MAX(load->base_capacity * 2, 8u);
        struct load_base *bases = mem_get(load->mem, capacity * sizeof(bases[0]));
        if (bases == NULL) return NULL;
        if (load->base_count > 0) memcpy(bases, load->bases, load->base_count * sizeof(bases[0]));
        mem_put(load->mem, load->bases, load->base_capacity * sizeof(bases[0]));
        load->bases = bases;
        load->base_capacity = capacity;
    }
    uint32_t at = load->base_count++;
    for (; at > 0 && load->bases[at - 1].base > base; at--)
        load->bases[at] = load->bases[at - 1];
    load->bases[at] = (struct load_base){.base = base};
    return &load->bases[at];
}

struct load_listing {
    struct load *load;
    int error;
};

static bool list_name(void *context, const char *name)
{
    struct load_listing *listing = context;
    struct load_name parsed = name_parse(name);
    if (parsed.state != NAME_PLAIN) return true;
    struct load_base *base = base_get(listing->load, parsed.base);
    if (base == NULL) {
        listing->error = -ENOMEM;
        return false;
    }
    base->kinds |= parsed.kind;
    return true;
}

int load_list(struct load *load)
{
    struct load_listing listing = {.load = load};
    load->base_count = 0;
    struct disk_path folder = log_folder(load->log);
    int error = io_disk_list(load->io, folder.text, list_name, &listing);
    return error < 0 ? error : listing.error;
}

/* ---- leftovers ------------------------------------------------------------------------------- */

struct settle {
    struct load *load;
    int error;
    int64_t cleaned_min; /* Smallest base of a .cleaned file. */
    int64_t swap_min;    /* Smallest base of a .swap log, */
    int64_t swap_end;    /* and where the last of them ends. */
};

static bool settle_look(void *context, const char *name)
{
    struct settle *settle = context;
    struct load_name parsed = name_parse(name);
    if (parsed.state == NAME_CLEANED) settle->cleaned_min = MIN(settle->cleaned_min, parsed.base);
    if (parsed.state == NAME_SWAP && parsed.kind == LOAD_LOG)
        settle->swap_min = MIN(settle->swap_min, parsed.base);
    return true;
}

/* Pass one: unlink what does not count. */
static bool settle_unlink(void *context, const char *name)
{
    struct settle *settle = context;
    struct load_name parsed = name_parse(name);
    bool split = parsed.state == NAME_SWAP && parsed.base >= settle->cleaned_min;
    bool gone = parsed.state == NAME_DELETED || parsed.state == NAME_CLEANED ||
                parsed.state == NAME_TMP || split;
    if (!gone) return true;
    settle->error = io_disk_unlink(settle->load->io, log_path(settle->load->log, name).text);
    return settle->error == 0;
}

/* Pass two: how far do the swapped logs reach? */
static bool settle_measure(void *context, const char *name)
{
    struct settle *settle = context;
    struct load *load = settle->load;
    struct load_name parsed = name_parse(name);
    if (parsed.state != NAME_SWAP || parsed.kind != LOAD_LOG) return true;
    struct io_file *file;
    settle->error = io_disk_open(load->io, log_path(load->log, name).text, IO_OPEN_READ, &file);
    if (settle->error < 0) return false;
    int64_t size = io_disk_size(load->io, file);
    settle->swap_end = MAX(settle->swap_end, parsed.base);
    if (size > 0) {
        scan_seek(&load->scan, file, 0, (uint64_t)size);
        while (scan_next(&load->scan) == SCAN_BATCH)
            settle->swap_end = MAX(settle->swap_end, batch_last_offset(&load->scan.header) + 1);
        settle->error = (int)MIN(load->scan.error, 0);
    }
    load->scan.file = NULL;
    io_disk_close(load->io, file);
    return settle->error == 0;
}

/* Pass three: what they replace goes. */
static bool settle_replace(void *context, const char *name)
{
    struct settle *settle = context;
    struct load_name parsed = name_parse(name);
    if (parsed.state != NAME_PLAIN || parsed.kind == LOAD_SNAPSHOT) return true;
    if (parsed.base < settle->swap_min || parsed.base >= settle->swap_end) return true;
    settle->error = io_disk_unlink(settle->load->io, log_path(settle->load->log, name).text);
    return settle->error == 0;
}

/* Pass four: they get their names. */
static bool settle_rename(void *context, const char *name)
{
    struct settle *settle = context;
    struct load *load = settle->load;
    if (name_parse(name).state != NAME_SWAP) return true;
    struct disk_path from = log_path(load->log, name);
    struct disk_path to = from;
    to.text[strlen(to.text) - strlen(".swap")] = '\0';
    settle->error = io_disk_rename(load->io, from.text, to.text);
    return settle->error == 0;
}

int load_settle_swaps(struct load *load)
{
    struct settle settle = {
        .load = load, .cleaned_min = INT64_MAX, .swap_min = INT64_MAX, .swap_end = -1};
    struct disk_path folder = log_folder(load->log);
    bool (*const passes[])(void *, const char *) = {settle_look, settle_unlink, settle_measure,
                                                    settle_replace, settle_rename};
    for (size_t i = 0; i < ARRAY_SIZE(passes); i++) {
        if (i == 2 && settle.swap_min == INT64_MAX) return 0;
        int error = io_disk_list(load->io, folder.text, passes[i], &settle);
        if (error == 0) error = settle.error;
        if (error < 0) return error;
    }
    return io_disk_sync_dir(load->io, folder.text);
}

int load_delete_segment(struct load *load, int64_t base)
{
    static const char *const suffixes[] = {".log", ".index", ".timeindex", ".txnindex",
                                           ".snapshot"};
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        struct segment_name name = segment_file_name(base, suffixes[i]);
        int error = disk_unlink_if_there(load->io, log_path(load->log, name.text).text);
        if (error < 0) return error;
    }
    return 0;
}

/* ---- partition.metadata -----------------------------------------------------------------------
 */

/* The id in "version: 0\ntopic_id: XXXXXXXXXXXXXXXXXXXXXX", or false. */
static bool metadata_parse(struct view text, struct uuid *out)
{
    static const char head[] = "version: 0\ntopic_id: ";
    uint32_t size = sizeof(head) - 1;
    if (text.size < size + 22 || memcmp(text.data, head, size) != 0) return false;
    for (uint32_t i = size + 22; i < text.size; i++)
        if (text.data[i] != '\n' && text.data[i] != '\r') return false;
    return log_uuid_parse(view_of(text.data + size, 22), out) && !uuid_is_zero(*out);
}

bool load_ids_near(struct uuid a, struct uuid b)
{
    char texts[2][LOG_METADATA_BYTES];
    uint32_t size = log_metadata_print(a, texts[0]);
    uint32_t differing = 0;
    if (log_metadata_print(b, texts[1]) != size) return false;
    for (uint32_t i = 0; i < size; i++)
        differing += texts[0][i] != texts[1][i];
    return differing <= 1;
}

/* It is missing, or was torn before anything was acknowledged: write it, if the id is known. */
static int metadata_again(struct load *load)
{
    struct log *log = load->log;
    load->topic_id = load->asked;
    if (uuid_is_zero(load->asked) || log->unlisted) return 0;
    char text[LOG_METADATA_BYTES];
    uint32_t size = log_metadata_print(load->asked, text);
    return disk_replace(load->io, log_folder(log).text, METADATA_NAME, view_of(text, size));
}

int load_metadata(struct load *load, bool *stray)
{
    struct log *log = load->log;
    struct disk_bytes bytes;
    *stray = false;
    int error =
        disk_read_whole(load->io, load->mem, log_path(log, METADATA_NAME).text, 4096, &bytes);
    if (error == -ENOENT || error == -EFBIG) return metadata_again(load);
    if (error < 0) return error;
    bool valid = metadata_parse(view_of(bytes.data, bytes.size_bytes), &load->topic_id);
    disk_free(load->mem, &bytes);
    if (!valid) return metadata_again(load);
    if (uuid_is_zero(load->asked) || uuid_equal(load->asked, load->topic_id)) return 0;
    if (load_ids_near(load->asked, load->topic_id)) return metadata_again(load);
    *stray = true; /* Another topic's of the same name: out of the way, for the operator. */
    struct log_put_aside aside;
    log_put_aside_fill(&aside, log, true);
    return log_put_aside_run(load->io, &aside);
}
