/* cluster_acl.c - CreateAcls, DeleteAcls, DescribeAcls: what an ACL may be, and which a filter
 * means.
 *
 * The entries are kept as their records. A request that needs them reads all of them once; a set of
 * their texts without the id says which exist already, so that cost is O(entries + request). */
#include "core/cluster_internal.h"

#include "core/names.h"
#include "gen/access_control_entry_record.h"
#include "gen/create_acls_request.h"
#include "gen/create_acls_response.h"
#include "gen/delete_acls_request.h"
#include "gen/delete_acls_response.h"
#include "gen/describe_acls_request.h"
#include "gen/describe_acls_response.h"
#include "gen/remove_access_control_entry_record.h"

/* Kafka's numbers: 1 is ANY in each, 0 and what is above is UNKNOWN. */
#define ACL_ANY              1
#define ACL_TYPE_CLUSTER     4
#define ACL_TYPE_MAX         7
#define ACL_PATTERN_MATCH    2
#define ACL_PATTERN_LITERAL  3
#define ACL_PATTERN_PREFIXED 4
#define ACL_OPERATION_MAX    15
#define ACL_PERMISSION_MAX   3
#define ACL_LISTED_MAX                                                                             \
    100000u /* Entries that one answer lists, those named twice counted twice.                     \
             */

static bool acl_managed(const struct cluster *cluster)
{
    struct view name = VIEW("authorizer.class.name");
    struct view given = cluster->options.static_config == NULL
                            ? VIEW_NULL
                            : cluster->options.static_config(cluster->options.static_context, name);
    return !given.null && given.size > 0;
}

/* NONE, or what is wrong for the whole request. */
static int16_t acl_check(const struct cluster *cluster, const struct step *step, int8_t operation)
{
    if (!cluster->active) return KAFKA_NOT_CONTROLLER;
    if (!cluster_allows(step, operation, CLUSTER_ON_CLUSTER, CLUSTER_ON_CLUSTER_NAME))
        return KAFKA_CLUSTER_AUTHORIZATION_FAILED;
    return acl_managed(cluster) ? KAFKA_NONE : KAFKA_SECURITY_DISABLED;
}

static struct view acl_check_words(int16_t error)
{
    return error == KAFKA_SECURITY_DISABLED
               ? VIEW("no authorizer.class.name is set on the controller")
               : VIEW_NULL;
}

/* All entries of an image, decoded into the arena. False: no memory. */
static bool acl_read_all(const struct image *image,
                         struct arena *arena,
                         struct access_control_entry_record **out,
                         uint32_t *count)
{
    *count = 0;
    *out = arena_get(arena, (image_count(image, IMAGE_ACL) + 1) * sizeof(**out));
    if (*out == NULL) return false;
    for (const struct image_object *object = NULL;
         (object = image_next(image, IMAGE_ACL, object)) != NULL;) {
        struct step_record record;
        if (!step_decode(((const struct image_raw *)object)->record, arena, &record)) return false;
        memcpy(&(*out)[(*count)++], record.value.value, sizeof(**out));
    }
    return true;
}

/* The entry without its id, as bytes. */
static struct view acl_text(struct arena *arena, const struct access_control_entry_record *entry)
{
    struct access_control_entry_record *bare = arena_get(arena, sizeof(*bare));
    if (bare == NULL) return VIEW_NULL;
    *bare = *entry;
    bare->id = (struct uuid){{0}};
    struct step_part part = {
        .message = &wire_access_control_entry_record, .version = 0, .value = bare};
    return step_encode(arena, &part);
}

/* ---- CreateAcls ------------------------------------------------------------------------------ */

/* An address and a number of its bits; IPv4 inside IPv6 is written as IPv4. */
static bool acl_range_valid(struct view host, uint32_t slash)
{
    struct view address = view_of(host.data, slash);
    uint32_t bits = cluster_address_bits(address), number = 0;
    uint32_t digits = host.size - slash - 1;
    if (bits == 0 || digits == 0 || digits > 3) return false;
    for (uint32_t i = slash + 1; i < host.size; i++) {
        if (host.data[i] < '0' || host.data[i] > '9') return false;
        number = number * 10 + host.data[i] - '0';
    }
    bool dotted = false;
    for (uint32_t i = 0; bits == 128 && i < slash; i++)
        dotted = dotted || host.data[i] == '.';
    return number <= bits && !dotted;
}

static int16_t acl_check_host(const struct cluster *cluster, struct view host, struct view *words)
{
    uint32_t slash = 0;
    *words = VIEW("a host must be given");
    if (host.null || host.size == 0) return KAFKA_INVALID_REQUEST;
    while (slash < host.size && host.data[slash] != '/')
        slash++;
    *words = VIEW_NULL;
    if (slash == host.size) return KAFKA_NONE;
    *words = VIEW("ranges of hosts need metadata.version 4.4-IV1");
    if (image_metadata_version(cluster->image) < FEATURE_METADATA_CIDR)
        return KAFKA_UNSUPPORTED_VERSION;
    *words = VIEW("the range of hosts is not ADDRESS/BITS");
    return acl_range_valid(host, slash) ? KAFKA_NONE : KAFKA_INVALID_REQUEST;
}

static bool acl_has_colon(struct view text)
{
    for (uint32_t i = 0; i < text.size; i++)
        if (text.data[i] == ':') return true;
    return false;
}

static bool acl_known(int8_t value, int8_t max)
{
    return value > ACL_ANY && value <= max;
}

static int16_t acl_check_new(const struct cluster *cluster,
                             const struct create_acls_request_acl_creation *in,
                             struct view *words)
{
    *words = VIEW_NULL;
    if (in->resource_type == ACL_TYPE_CLUSTER &&
        !view_equal(in->resource_name, CLUSTER_ON_CLUSTER_NAME))
        *words = VIEW("the cluster's only name is kafka-cluster");
    else if (in->resource_name.size == 0)
        *words = VIEW("the name of a resource is empty");
    else if (!acl_known(in->resource_type, ACL_TYPE_MAX))
        *words = VIEW("the type of the resource is unknown");
    else if (in->resource_pattern_type != ACL_PATTERN_LITERAL &&
             in->resource_pattern_type != ACL_PATTERN_PREFIXED)
        *words = VIEW("the pattern must be LITERAL or PREFIXED");
    else if (!acl_known(in->operation, ACL_OPERATION_MAX))
        *words = VIEW("the operation is unknown");
    else if (!acl_known(in->permission_type, ACL_PERMISSION_MAX))
        *words = VIEW("the permission must be ALLOW or DENY");
    else if (!acl_has_colon(in->principal))
        *words = VIEW("a principal is TYPE:NAME, and this one has no colon");
    return words->null ? acl_check_host(cluster, in->host, words) : KAFKA_INVALID_REQUEST;
}

/* The set of what exists. False: no memory. */
static bool acl_existing(struct cluster *cluster,
                         struct step *step,
                         struct names *names,
                         uint32_t more)
{
    struct access_control_entry_record *entries;
    uint32_t count;
    if (!acl_read_all(cluster->image, step->arena, &entries, &count) ||
        !names_init(names, step->arena, count + more, step_random(step)))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        struct view text = acl_text(step->arena, &entries[i]);
        if (text.null) return false;
        names_see(names, text);
    }
    return true;
}

static enum step_result acl_add(struct step *step,
                                struct names *names,
                                const struct create_acls_request_acl_creation *in)
{
    struct access_control_entry_record entry = {.resource_type = in->resource_type,
                                                .resource_name = in->resource_name,
                                                .pattern_type = in->resource_pattern_type,
                                                .principal = in->principal,
                                                .host = in->host,
                                                .operation = in->operation,
                                                .permission_type = in->permission_type,
                                                .tags = VIEW_EMPTY};
    struct view text = acl_text(step->arena, &entry);
    if (text.null) return STEP_E_MEMORY;
    if (names_see(names, text) > 1) return STEP_DONE;
    struct access_control_entry_record *record =
        step_add(step, &wire_access_control_entry_record, 0);
    if (record == NULL) return STEP_E_MEMORY;
    *record = entry;
    record->id = step_uuid(step);
    return STEP_DONE;
}

enum step_result cluster_create_acls(struct cluster *cluster,
                                     struct step *step,
                                     const struct create_acls_request *in,
                                     struct create_acls_response *out)
{
    uint32_t count = (uint32_t)MAX(in->creations.count, 0);
    struct names names;
    int16_t whole = acl_check(cluster, step, CLUSTER_OP_ALTER);
    out->results.items = step_get(step, (count + 1) * sizeof(out->results.items[0]));
    if (out->results.items == NULL) return STEP_E_MEMORY;
    if (whole == KAFKA_NONE && !acl_existing(cluster, step, &names, count)) return STEP_E_MEMORY;
    if (whole == KAFKA_NONE && count > step_room(step)) whole = KAFKA_POLICY_VIOLATION;
    out->results.count = (int32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        struct create_acls_response_acl_creation_result *result = &out->results.items[i];
        wire_struct_defaults(&wire_create_acls_response_acl_creation_result_shape, result);
        result->error_code = whole;
        result->error_message = acl_check_words(whole);
        if (whole != KAFKA_NONE) continue;
        result->error_code =
            acl_check_new(cluster, &in->creations.items[i], &result->error_message);
        if (result->error_code == KAFKA_NONE &&
            acl_add(step, &names, &in->creations.items[i]) != STEP_DONE)
            return STEP_E_MEMORY;
    }
    step->atomic = true;
    return cluster_done(step);
}

/* ---- filters --------------------------------------------------------------------------------- */

/* The entry's name as a filter's pattern means it. */
static bool filter_name(const struct delete_acls_request_delete_acls_filter *filter,
                        const struct access_control_entry_record *entry)
{
    struct view name = filter->resource_name_filter;
    if (filter->pattern_type_filter == ACL_PATTERN_LITERAL ||
        filter->pattern_type_filter == ACL_PATTERN_PREFIXED)
        if (entry->pattern_type != filter->pattern_type_filter) return false;
    if (name.null) return true;
    if (filter->pattern_type_filter != ACL_PATTERN_MATCH)
        return view_equal(name, entry->resource_name);
    if (entry->pattern_type == ACL_PATTERN_PREFIXED)
        return name.size >= entry->resource_name.size &&
               memcmp(name.data, entry->resource_name.data, entry->resource_name.size) == 0;
    return view_is(entry->resource_name, "*") || view_equal(name, entry->resource_name);
}

static bool filter_matches(const struct delete_acls_request_delete_acls_filter *filter,
                           const struct access_control_entry_record *entry)
{
    return (filter->resource_type_filter == ACL_ANY ||
            filter->resource_type_filter == entry->resource_type) &&
           (filter->operation == ACL_ANY || filter->operation == entry->operation) &&
           (filter->permission_type == ACL_ANY ||
            filter->permission_type == entry->permission_type) &&
           (filter->principal_filter.null ||
            view_equal(filter->principal_filter, entry->principal)) &&
           (filter->host_filter.null || view_equal(filter->host_filter, entry->host)) &&
           filter_name(filter, entry);
}

/* What a filter has that no entry can have, in words; null: nothing. */
static struct view filter_unknown(const struct delete_acls_request_delete_acls_filter *filter)
{
    bool pattern =
        filter->resource_type_filter < ACL_ANY || filter->resource_type_filter > ACL_TYPE_MAX ||
        filter->pattern_type_filter < ACL_ANY || filter->pattern_type_filter > ACL_PATTERN_PREFIXED;
    bool entry = filter->operation < ACL_ANY || filter->operation > ACL_OPERATION_MAX ||
                 filter->permission_type < ACL_ANY || filter->permission_type > ACL_PERMISSION_MAX;
    if (pattern) return VIEW("the filter's resource is unknown");
    return entry ? VIEW("the filter's operation or permission is unknown") : VIEW_NULL;
}

/* ---- DeleteAcls ------------------------------------------------------------------------------ */

struct deleting {
    struct step *step;
    struct access_control_entry_record *entries;
    bool *gone; /* By entry. */
    uint32_t count;
    uint32_t listed;
    uint32_t removed;
};

static bool deleting_list(struct deleting *deleting,
                          const struct delete_acls_request_delete_acls_filter *filter,
                          struct delete_acls_response_delete_acls_filter_result *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < deleting->count; i++)
        count += filter_matches(filter, &deleting->entries[i]);
    deleting->listed += count;
    if (deleting->listed > ACL_LISTED_MAX) return true; /* Refused as a whole. */
    out->matching_acls.items =
        step_get(deleting->step, (count + 1) * sizeof(out->matching_acls.items[0]));
    if (out->matching_acls.items == NULL) return false;
    for (uint32_t i = 0; i < deleting->count; i++) {
        const struct access_control_entry_record *entry = &deleting->entries[i];
        if (!filter_matches(filter, entry)) continue;
        struct delete_acls_response_delete_acls_matching_acl *item =
            &out->matching_acls.items[out->matching_acls.count++];
        wire_struct_defaults(&wire_delete_acls_response_delete_acls_matching_acl_shape, item);
        item->resource_type = entry->resource_type;
        item->resource_name = entry->resource_name;
        item->pattern_type = entry->pattern_type;
        item->principal = entry->principal;
        item->host = entry->host;
        item->operation = entry->operation;
        item->permission_type = entry->permission_type;
        deleting->removed += !deleting->gone[i];
        deleting->gone[i] = true;
    }
    return true;
}

/* The whole request gets one error, and removes nothing. */
static void deleting_refuse(struct delete_acls_response *out, int16_t error, struct view words)
{
    for (int32_t i = 0; i < out->filter_results.count; i++) {
        struct delete_acls_response_delete_acls_filter_result *result =
            &out->filter_results.items[i];
        wire_struct_defaults(&wire_delete_acls_response_delete_acls_filter_result_shape, result);
        result->error_code = error;
        result->error_message = words;
    }
}

static enum step_result deleting_run(struct deleting *deleting,
                                     const struct delete_acls_request *in,
                                     struct delete_acls_response *out)
{
    for (int32_t i = 0; i < out->filter_results.count; i++) {
        struct delete_acls_response_delete_acls_filter_result *result =
            &out->filter_results.items[i];
        wire_struct_defaults(&wire_delete_acls_response_delete_acls_filter_result_shape, result);
        result->error_message = filter_unknown(&in->filters.items[i]);
        if (!result->error_message.null)
            result->error_code = KAFKA_INVALID_REQUEST;
        else if (!deleting_list(deleting, &in->filters.items[i], result))
            return STEP_E_MEMORY;
    }
    if (deleting->removed > step_room(deleting->step) || deleting->listed > ACL_LISTED_MAX) {
        deleting_refuse(out, KAFKA_INVALID_REQUEST,
                        VIEW("one request can remove at most 10000 entries"));
        return STEP_DONE;
    }
    for (uint32_t i = 0; i < deleting->count; i++) {
        if (!deleting->gone[i]) continue;
        struct remove_access_control_entry_record *record =
            step_add(deleting->step, &wire_remove_access_control_entry_record, 0);
        if (record == NULL) return STEP_E_MEMORY;
        record->id = deleting->entries[i].id;
    }
    return STEP_DONE;
}

enum step_result cluster_delete_acls(struct cluster *cluster,
                                     struct step *step,
                                     const struct delete_acls_request *in,
                                     struct delete_acls_response *out)
{
    struct deleting deleting = {.step = step};
    int16_t whole = acl_check(cluster, step, CLUSTER_OP_ALTER);
    uint32_t count = (uint32_t)MAX(in->filters.count, 0);
    out->filter_results.items = step_get(step, (count + 1) * sizeof(out->filter_results.items[0]));
    if (out->filter_results.items == NULL) return STEP_E_MEMORY;
    out->filter_results.count = (int32_t)count;
    if (whole != KAFKA_NONE) {
        deleting_refuse(out, whole, acl_check_words(whole));
        return cluster_done(step);
    }
    if (!acl_read_all(cluster->image, step->arena, &deleting.entries, &deleting.count))
        return STEP_E_MEMORY;
    deleting.gone = step_get(step, deleting.count + 1);
    if (deleting.gone == NULL) return STEP_E_MEMORY;
    step->atomic = true;
    enum step_result result = deleting_run(&deleting, in, out);
    return result == STEP_DONE ? cluster_done(step) : result;
}

/* ---- DescribeAcls ---------------------------------------------------------------------------- */

static int acl_compare(const struct access_control_entry_record *a,
                       const struct access_control_entry_record *b)
{
    if (a->resource_type != b->resource_type) return a->resource_type - b->resource_type;
    if (a->pattern_type != b->pattern_type) return a->pattern_type - b->pattern_type;
    return view_compare(a->resource_name, b->resource_name);
}

/* By resource: a heap sort, for which no caller can choose a bad order. */
static void acl_sift(struct access_control_entry_record *entries, uint32_t at, uint32_t count)
{
    for (uint32_t child = 2 * at + 1; child < count; at = child, child = 2 * at + 1) {
        if (child + 1 < count && acl_compare(&entries[child], &entries[child + 1]) < 0) child++;
        if (acl_compare(&entries[at], &entries[child]) >= 0) return;
        struct access_control_entry_record swap = entries[at];
        entries[at] = entries[child];
        entries[child] = swap;
    }
}

static void acl_sort(struct access_control_entry_record *entries, uint32_t count)
{
    for (uint32_t i = count / 2; i > 0; i--)
        acl_sift(entries, i - 1, count);
    for (uint32_t i = count; i > 1; i--) {
        struct access_control_entry_record swap = entries[0];
        entries[0] = entries[i - 1];
        entries[i - 1] = swap;
        acl_sift(entries, 0, i - 1);
    }
}

static bool describe_fill(struct step *step,
                          const struct access_control_entry_record *entries,
                          uint32_t count,
                          struct describe_acls_response *out)
{
    out->resources.items = step_get(step, (count + 1) * sizeof(out->resources.items[0]));
    struct describe_acls_response_acl_description *items =
        step_get(step, (count + 1) * sizeof(*items));
    if (out->resources.items == NULL || items == NULL) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || acl_compare(&entries[i - 1], &entries[i]) != 0) {
            struct describe_acls_response_describe_acls_resource *resource =
                &out->resources.items[out->resources.count++];
            wire_struct_defaults(&wire_describe_acls_response_describe_acls_resource_shape,
                                 resource);
            resource->resource_type = entries[i].resource_type;
            resource->resource_name = entries[i].resource_name;
            resource->pattern_type = entries[i].pattern_type;
            resource->acls.items = &items[i];
        }
        out->resources.items[out->resources.count - 1].acls.count++;
        wire_struct_defaults(&wire_describe_acls_response_acl_description_shape, &items[i]);
        items[i].principal = entries[i].principal;
        items[i].host = entries[i].host;
        items[i].operation = entries[i].operation;
        items[i].permission_type = entries[i].permission_type;
    }
    return true;
}

enum step_result cluster_describe_acls(const struct cluster *cluster,
                                       const struct image *image,
                                       struct step *step,
                                       const struct describe_acls_request *in,
                                       struct describe_acls_response *out)
{
    const struct delete_acls_request_delete_acls_filter filter = {
        .resource_type_filter = in->resource_type_filter,
        .resource_name_filter = in->resource_name_filter,
        .pattern_type_filter = in->pattern_type_filter,
        .principal_filter = in->principal_filter,
        .host_filter = in->host_filter,
        .operation = in->operation,
        .permission_type = in->permission_type,
    };
    struct access_control_entry_record *entries;
    uint32_t count, kept = 0;
    out->error_code = acl_check(cluster, step, CLUSTER_OP_DESCRIBE);
    out->error_message = acl_check_words(out->error_code);
    if (out->error_code != KAFKA_NONE || !filter_unknown(&filter).null) return cluster_done(step);
    if (!acl_read_all(image, step->arena, &entries, &count)) return STEP_E_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        if (filter_matches(&filter, &entries[i])) entries[kept++] = entries[i];
    acl_sort(entries, kept);
    return describe_fill(step, entries, kept, out) ? cluster_done(step) : STEP_E_MEMORY;
}
