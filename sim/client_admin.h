/* client_admin.h - a client that creates the history's topics and looks at all of them. */
#pragma once

#include "sim/client.h"

extern const struct client_kind client_admin_kind;
