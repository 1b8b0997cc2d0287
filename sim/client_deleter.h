/* client_deleter.h - a client that deletes records below offsets that are known to be kept. */
#pragma once

#include "sim/client.h"

extern const struct client_kind client_deleter_kind;
