/* feature.c - tables of Apache Kafka 4.4: ranges, defaults, dependencies. */
#include "core/feature.h"

static const struct feature features[] = {
    {FEATURE_ELR,           0,                    1                   },
    {"group.version",       0,                    1                   },
    {FEATURE_KRAFT,         0,                    1                   },
    {FEATURE_METADATA,      FEATURE_METADATA_MIN, FEATURE_METADATA_MAX},
    {"share.version",       0,                    2                   },
    {"streams.version",     0,                    1                   },
    {"transaction.version", 0,                    2                   },
};

/* From this metadata.version on, a format run picks this level. */
static const struct {
    const char *name;
    int16_t metadata_version;
    int16_t level;
} feature_defaults[] = {
    {"group.version",       22, 1},
    {"transaction.version", 24, 2},
    {FEATURE_ELR,           26, 1},
    {"share.version",       28, 1},
    {"streams.version",     29, 1},
    {"share.version",       31, 2},
};

static const int8_t feature_changes[] = {7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33};

static const char *const feature_names[] = {
    "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1",
    "3.6-IV2", "3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0",
    "3.9-IV0", "4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1",
    "4.2-IV0", "4.2-IV1", "4.3-IV0", "4.4-IV0", "4.4-IV1", "4.4-IV2",
};
_Static_assert(ARRAY_SIZE(feature_names) == FEATURE_METADATA_MAX - FEATURE_METADATA_MIN + 1,
               "one name for each level");

const struct feature *feature_all(uint32_t *count)
{
    *count = ARRAY_SIZE(features);
    return features;
}

const struct feature *feature_find(struct view name)
{
    for (uint32_t i = 0; i < ARRAY_SIZE(features); i++)
        if (view_is(name, features[i].name)) return &features[i];
    return NULL;
}

int16_t feature_default_level(const struct feature *feature, int16_t metadata_version)
{
    int16_t level = 0;
    for (uint32_t i = 0; i < ARRAY_SIZE(feature_defaults); i++)
        if (metadata_version >= feature_defaults[i].metadata_version &&
            view_is(view_of_string(feature_defaults[i].name), feature->name))
            level = feature_defaults[i].level;
    return level;
}

int16_t feature_needs(const struct feature *feature, int16_t level)
{
    if (level <= 0) return 0;
    if (view_is(view_of_string(feature->name), FEATURE_ELR)) return FEATURE_METADATA_ELR;
    return FEATURE_METADATA_MIN;
}

bool feature_metadata_changes(int16_t from, int16_t to)
{
    for (uint32_t i = 0; i < ARRAY_SIZE(feature_changes); i++)
        if (feature_changes[i] > from && feature_changes[i] <= to) return true;
    return false;
}

int16_t feature_register_broker_version(int16_t metadata_version)
{
    if (metadata_version >= FEATURE_METADATA_CORDON) return 4;
    if (metadata_version >= FEATURE_METADATA_DIRECTORIES) return 3;
    return metadata_version >= FEATURE_METADATA_REGISTER_V2 ? 2 : 1;
}

int16_t feature_partition_version(int16_t metadata_version)
{
    if (metadata_version >= FEATURE_METADATA_ELR) return 2;
    return metadata_version >= FEATURE_METADATA_DIRECTORIES ? 1 : 0;
}

const char *feature_metadata_name(int16_t metadata_version)
{
    if (metadata_version < FEATURE_METADATA_MIN || metadata_version > FEATURE_METADATA_MAX)
        return NULL;
    return feature_names[metadata_version - FEATURE_METADATA_MIN];
}

int16_t feature_metadata_level(struct view name)
{
    for (uint32_t i = ARRAY_SIZE(feature_names); i > 0; i--) {
        struct view level = view_of_string(feature_names[i - 1]), release = level;
        release.size = 3; /* "4.2" */
        if (view_equal(name, level) || view_equal(name, release))
            return (int16_t)(FEATURE_METADATA_MIN + i - 1);
    }
    return 0;
}
