/* output.h - a generated file, which is only replaced when it differs, so that make does not
 * rebuild the rest. */
#pragma once

#include <stdio.h>

struct output {
    FILE *file; /* Write here. */
    char path[4096];
    char fresh[4100]; /* What is written, until it is closed. */
};

/* Begin to write the file of that name. What cannot be done ends the program, with the reason. */
struct output output_open(const char *format, ...) __attribute__((format(printf, 1, 2)));
void output_close(struct output *output);
