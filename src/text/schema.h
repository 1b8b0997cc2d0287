/* schema.h - a message's schema as JSON, as it stood when version N was the newest: later fields
 * and notes are left out, `validVersions` ends at N, and a field that went later is still open.
 *
 * Keys come in one fixed order: name, type, versions, nullableVersions, default, taggedVersions,
 * tag, entityType, mapKey, ignorable, zeroCopy, flexibleVersions, about, fields. */
#pragma once

#include "text/out.h"
#include "wire/form.h"

/* Print it with `//` notes on what each version changed, as Kafka's own files are laid out. */
void schema_print(struct out *out, const struct wire_message *message, int16_t version);

/* The note on what this version changed, without "Version N", or the empty text if there is none:
 * "adds GroupInstanceId (KIP-345)." */
void schema_note(struct out *out, const struct wire_message *message, int16_t version);
