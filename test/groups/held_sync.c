/* held_sync.c - a disk that takes its time: loaded before libc, it keeps every sync waiting for as
 * long as the file that HELD_SYNC names is there. For run-test. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_it(void)
{
    while (access(getenv("HELD_SYNC"), F_OK) == 0)
        usleep(1000);
}

int fdatasync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    wait_for_it();
    return real(fd);
}

int syncfs(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "syncfs");
    wait_for_it();
    return real(fd);
}
