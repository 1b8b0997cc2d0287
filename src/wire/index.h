/* index.h - the generated lists of all messages and APIs; use the functions of wire.h. */
#pragma once

#include "wire/form.h"

extern const struct wire_message *const wire_index_messages[];
extern const uint32_t wire_index_message_count;
extern const struct wire_facts wire_index_facts[]; /* In the order of the messages. */
extern const struct wire_api wire_index_apis[];
extern const uint32_t wire_index_api_count;
