/* pcap.c - a file of anybody as a packet capture. Checked beside the sanitizers: all memory is
 * given back, however the connections in it are cut, crossed and mixed up. */
#include "cli/wire_pcap.h"
#include "sys/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX (1u << 20)

/* What is printed goes nowhere. */
static FILE *nowhere(void)
{
    static FILE *file;
    if (file != NULL) return file;
    file = fopen("/dev/null", "w");
    if (dup2(fileno(file), STDOUT_FILENO) < 0) __builtin_trap();
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct cli_command command = {.name = "wire decode"};
    struct mem mem;
    char path[40];

    if (size < 1 || size > INPUT_MAX) return 0;
    int fd = memfd_create("capture", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)size - 1) __builtin_trap();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    memory_init(&mem, 1u << 30);
    struct cli cli = {.command = &command, .mem = &mem, .errors = nowhere()};
    out_init(&cli.out, &mem);
    struct wire_printer printer = {.cli = &cli, .style = (enum wire_print_style)(data[0] % 3)};
    (void)!wire_pcap(&printer, path, 0);
    out_free(&cli.out);
    close(fd);
    assert(mem.used_bytes == 0);
    return 0;
}
