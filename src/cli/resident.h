/* resident.h - what of the program's and its libraries' files stays mapped into the process.
 *
 * Code and constants are pages of files in the page cache. The kernel maps them as they are
 * touched, sixteen at once, and counts each for the process until memory is short; a start
 * touches most of libc and half of the program once. */
#pragma once

#include <stddef.h>

/* Let go of the pages of code and constants of all loaded objects, as the kernel does with those
 * that nobody uses: they stay in the page cache, and the next touch maps them again (a fault
 * without I/O, about a microsecond for sixteen pages). Pages that were changed in memory (a
 * debugger's breakpoints, what a library patches) are kept, as is all that can be written.
 *
 * Returns the bytes that were mapped until now; 0 also where /proc/self/pagemap cannot be read, or
 * the kernel refuses (locked memory): then nothing is let go of. Any thread; others may run.
 * Cost: one read for each 2 MiB of code, one madvise for each segment: tens of microseconds. */
size_t resident_let_go(void);
