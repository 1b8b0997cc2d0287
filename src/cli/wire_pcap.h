/* wire_pcap.h - the frames of a packet capture (pcap or pcapng), for `dohle wire decode --pcap`. */
#pragma once

#include "cli/wire_print.h"

/* Print every frame of the capture at `path` ("-" for standard input). `port` 0: of every port.
 *   CLI_OK      printed; what is damaged was counted in the printer.
 *   CLI_FAILED  no capture, or no output: said on standard error. */
MUST_USE enum cli_exit wire_pcap(struct wire_printer *printer, const char *path, uint16_t port);
