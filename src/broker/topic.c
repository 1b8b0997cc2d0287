/* topic.c - topic names, and the effective settings of topics and of the broker. */
#include "broker/broker.h"
#include "core/config.h"

bool topic_is_internal(struct view name)
{
    return view_is(name, "__consumer_offsets") || view_is(name, "__transaction_state") ||
           view_is(name, "__share_group_state");
}

bool topic_name_valid(struct view name)
{
    if (name.null || name.size == 0 || name.size > TOPIC_NAME_MAX || view_is(name, ".") ||
        view_is(name, ".."))
        return false;
    for (uint32_t i = 0; i < name.size; i++) {
        uint8_t c = name.data[i];
        bool legal = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '.' || c == '_' || c == '-';
        if (!legal) return false;
    }
    return true;
}

static struct cluster_config_value setting_of(const struct node *node,
                                              enum config_scope scope,
                                              struct view topic,
                                              struct view name)
{
    const struct config_def *def = config_find(scope, name);
    assert(def != NULL); /* Only names that the program itself asks for. */
    struct cluster_config_context context = {
        .image = node->image,
        .node_id = node->options.node_id,
        .static_config = node->options.setting,
        .static_context = node->options.setting_context,
    };
    return cluster_config_value(&context, topic, def);
}

struct view topic_setting(const struct node *node, struct view topic, struct view name)
{
    return setting_of(node, CONFIG_TOPIC, topic, name).value;
}

struct view broker_setting(const struct node *node, struct view name)
{
    return setting_of(node, CONFIG_BROKER, VIEW_NULL, name).value;
}

int64_t topic_setting_number(const struct node *node, struct view topic, const char *name)
{
    struct cluster_config_value value = setting_of(node, CONFIG_TOPIC, topic, view_of_string(name));
    return cluster_config_number(&value);
}

int64_t broker_setting_number(const struct node *node, const char *name)
{
    struct cluster_config_value value =
        setting_of(node, CONFIG_BROKER, VIEW_NULL, view_of_string(name));
    return cluster_config_number(&value);
}

int64_t broker_setting_kept(const struct node *node, struct setting_number *setting)
{
    assert(node->config_changes > 0);
    if (setting->seen != node->config_changes) {
        setting->value = broker_setting_number(node, setting->name);
        setting->seen = node->config_changes;
    }
    return setting->value;
}

static int16_t compression_of(struct view name)
{
    static const char *const codecs[] = {"uncompressed", "gzip", "snappy", "lz4", "zstd"};
    for (size_t i = 0; i < ARRAY_SIZE(codecs); i++)
        if (view_is(name, codecs[i])) return (int16_t)i;
    return LOG_COMPRESSION_PRODUCER;
}

static bool flag_of(const struct node *node, struct view topic, const char *name)
{
    bool value = false;
    return config_parse_bool(topic_setting(node, topic, view_of_string(name)), &value) && value;
}

void topic_log_config(const struct node *node, struct view topic, struct log_config *out)
{
    double ratio = 0.5;
    struct view cleanup = topic_setting(node, topic, VIEW("cleanup.policy"));
    *out = LOG_CONFIG_DEFAULT;
    out->segment_ms = topic_setting_number(node, topic, "segment.ms");
    out->segment_jitter_ms = topic_setting_number(node, topic, "segment.jitter.ms");
    out->retention_ms = topic_setting_number(node, topic, "retention.ms");
    out->retention_bytes = topic_setting_number(node, topic, "retention.bytes");
    out->delete_retention_ms = topic_setting_number(node, topic, "delete.retention.ms");
    out->file_delete_delay_ms = topic_setting_number(node, topic, "file.delete.delay.ms");
    out->min_compaction_lag_ms = topic_setting_number(node, topic, "min.compaction.lag.ms");
    out->max_compaction_lag_ms = topic_setting_number(node, topic, "max.compaction.lag.ms");
    out->timestamp_before_max_ms =
        topic_setting_number(node, topic, "message.timestamp.before.max.ms");
    out->timestamp_after_max_ms =
        topic_setting_number(node, topic, "message.timestamp.after.max.ms");
    out->producer_id_expiration_ms = broker_setting_number(node, "producer.id.expiration.ms");
    out->segment_bytes = (uint32_t)topic_setting_number(node, topic, "segment.bytes");
    struct view tiny = topic_setting(node, topic, VIEW("internal.segment.bytes"));
    int64_t bytes;
    if (!tiny.null && config_parse_int64(tiny, &bytes))
        out->segment_bytes = (uint32_t)MAX(bytes, 1);
    out->segment_index_bytes = (uint32_t)topic_setting_number(node, topic, "segment.index.bytes");
    out->index_interval_bytes = (uint32_t)topic_setting_number(node, topic, "index.interval.bytes");
    out->max_message_bytes = (uint32_t)topic_setting_number(node, topic, "max.message.bytes");
    if (config_parse_double(topic_setting(node, topic, VIEW("min.cleanable.dirty.ratio")), &ratio))
        out->min_cleanable_dirty_permil = (uint32_t)(ratio * 1000);
    out->compression = compression_of(topic_setting(node, topic, VIEW("compression.type")));
    out->compression_gzip_level =
        (int16_t)topic_setting_number(node, topic, "compression.gzip.level");
    out->compression_lz4_level =
        (int16_t)topic_setting_number(node, topic, "compression.lz4.level");
    out->compression_zstd_level =
        (int32_t)topic_setting_number(node, topic, "compression.zstd.level");
    out->log_append_time =
        view_is(topic_setting(node, topic, VIEW("message.timestamp.type")), "LogAppendTime");
    out->cleanup_compact = config_list_has(cleanup, VIEW("compact"));
    out->cleanup_delete = config_list_has(cleanup, VIEW("delete"));
    out->preallocate = flag_of(node, topic, "preallocate");
    out->header_only = view_is(broker_setting(node, VIEW("dohle.produce.validation")), "header");
}
