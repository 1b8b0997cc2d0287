/* resident.c - letting go of clean file pages.
 *
 * madvise(MADV_DONTNEED) would also drop a page that was changed privately, and the change with it.
 * So /proc/self/pagemap is asked for each page first: a range that is let go of holds only pages
 * that are the file's and pages that are not there. Of its 64 bits a page's entry has 63 (in
 * memory), 62 (swapped out) and 61 (a page of a file or shared; clear: private to the process) for
 * everybody to read. */
#include "cli/resident.h"

#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"

#define PAGE_IN_MEMORY (UINT64_C(1) << 63)
#define PAGE_SWAPPED   (UINT64_C(1) << 62)
#define PAGE_OF_FILE   (UINT64_C(1) << 61)

#define ENTRIES 512u /* Read at once: 4 KiB of stack. */

struct walk {
    int pagemap;
    uintptr_t page_bytes;
    size_t let_go_bytes;
};

static bool is_private(uint64_t entry)
{
    return (entry & PAGE_SWAPPED) != 0 ||
           ((entry & PAGE_IN_MEMORY) != 0 && (entry & PAGE_OF_FILE) == 0);
}

/* The pages [first, end) hold nothing of the process's own; `mapped` of them are in memory. */
static void let_go(struct walk *walk, uintptr_t first, uintptr_t end, size_t mapped)
{
    if (mapped == 0) return;
    void *from = (void *)(first * walk->page_bytes);
    if (madvise(from, (end - first) * walk->page_bytes, MADV_DONTNEED) == 0)
        walk->let_go_bytes += mapped * walk->page_bytes;
}

/* The pages [first, end), at most ENTRIES. */
static void walk_pages(struct walk *walk, uintptr_t first, uintptr_t end)
{
    uint64_t entries[ENTRIES];
    size_t size = (end - first) * sizeof entries[0], mapped = 0;
    assert(end - first <= ENTRIES);
    off_t at = (off_t)(first * sizeof entries[0]);
    if (pread(walk->pagemap, entries, size, at) != (ssize_t)size) return;
    uintptr_t from = first;
    for (uintptr_t page = first; page < end; page++) {
        if (!is_private(entries[page - first])) {
            mapped += (entries[page - first] & PAGE_IN_MEMORY) != 0;
            continue;
        }
        let_go(walk, from, page, mapped);
        from = page + 1;
        mapped = 0;
    }
    let_go(walk, from, end, mapped);
}

static int walk_object(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    struct walk *walk = context;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) != 0) continue;
        uintptr_t address = object->dlpi_addr + segment->p_vaddr;
        uintptr_t page = address / walk->page_bytes;
        uintptr_t end = (address + segment->p_memsz + walk->page_bytes - 1) / walk->page_bytes;
        for (; page < end; page += ENTRIES)
            walk_pages(walk, page, MIN(page + ENTRIES, end));
    }
    return 0;
}

size_t resident_let_go(void)
{
    struct walk walk = {.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
                        .page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE)};
    if (walk.pagemap < 0) return 0;
    dl_iterate_phdr(walk_object, &walk);
    close(walk.pagemap);
    return walk.let_go_bytes;
}
