/* feature.h - the features of a cluster: which levels this build can run, and how they hang
 * together.
 *
 * A feature's *finalized* level is in the metadata log (kraft.version's in control records); a
 * node's *supported* range is what it registers with. Level 0 is "absent", but metadata.version
 * has no level 0: absent means unknown. Pure: constant tables. */
#pragma once

#include "base/view.h"

/* Levels of metadata.version at which something starts that this build asks for. */
enum feature_metadata {
    FEATURE_METADATA_MIN = 7,             /* 3.3-IV3, the lowest that 4.x runs. */
    FEATURE_METADATA_REGISTER_V2 = 8,     /* RegisterBrokerRecord 2 */
    FEATURE_METADATA_SCRAM = 11,          /* SCRAM records */
    FEATURE_METADATA_NO_SHRINK_BUMP = 12, /* An ISR that shrinks leaves the leader epoch alone. */
    FEATURE_METADATA_TRANSACTIONS = 13,   /* Begin, End, Abort */
    FEATURE_METADATA_TOKENS = 14,
    FEATURE_METADATA_CONTROLLERS = 15, /* RegisterControllerRecord */
    FEATURE_METADATA_DIRECTORIES = 17, /* Log directories in records */
    FEATURE_METADATA_ELR = 23,         /* PartitionRecord 2, ClearElrRecord */
    FEATURE_METADATA_CORDON = 30,      /* Cordoned log directories */
    FEATURE_METADATA_CIDR = 32,        /* CIDR ranges as ACL host */
    FEATURE_METADATA_UNREGISTER_CONTROLLER = 33,
    FEATURE_METADATA_MAX = 33 /* 4.4-IV2, that of 4.4.0 */
};

#define FEATURE_METADATA "metadata.version"
#define FEATURE_KRAFT    "kraft.version"
#define FEATURE_ELR      "eligible.leader.replicas.version"

struct feature {
    const char *name;
    int16_t min; /* What a node of this build registers with. */
    int16_t max;
};

/* All features of 4.4, by name. */
const struct feature *feature_all(uint32_t *count);

/* The feature, or NULL. */
const struct feature *feature_find(struct view name);

/* The level that a format run at this metadata.version picks for a feature, 0: none. */
int16_t feature_default_level(const struct feature *feature, int16_t metadata_version);

/* The lowest metadata.version at which the feature may have this level. */
int16_t feature_needs(const struct feature *feature, int16_t level);

/* Does the metadata itself change its form at one of the levels in (from, to]? Then there is no way
 * back past it. */
bool feature_metadata_changes(int16_t from, int16_t to);

/* Versions of records at a metadata.version. */
int16_t feature_register_broker_version(int16_t metadata_version);
int16_t feature_partition_version(int16_t metadata_version);

/* The name of a metadata.version ("4.4-IV2"), or NULL. */
const char *feature_metadata_name(int16_t metadata_version);

/* The level of a name ("4.2-IV1"), or the highest of a release ("4.2"); 0: there is none. */
int16_t feature_metadata_level(struct view name);
