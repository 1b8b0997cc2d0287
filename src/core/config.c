/* config.c - finding settings and judging values. Text in, verdict out; no locale, no libc. */
#include "core/config.h"

#include "gen/config_table.h"

#define CONFIG_VALUE_MAX 32767u /* Characters of a value, as in Kafka. */
#define CONFIG_NAME_MAX  80u    /* Names longer than this have no near neighbour. */

/* ---- the table ------------------------------------------------------------------------------- */

const struct config_def *config_all(enum config_scope scope, uint32_t *count)
{
    uint32_t first = 0;
    while (first < CONFIG_COUNT && config_table[first].scope != scope)
        first++;
    uint32_t end = first;
    while (end < CONFIG_COUNT && config_table[end].scope == scope)
        end++;
    *count = end - first;
    return &config_table[first];
}

const struct config_def *config_find(enum config_scope scope, struct view name)
{
    uint32_t low = 0;
    uint32_t high = CONFIG_COUNT;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct config_def *def = &config_table[middle];
        int order = (int)def->scope - (int)scope;
        if (order == 0) order = view_compare(view_of_string(def->name), name);
        if (order == 0) return def;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Edits (insert, delete, replace) between two short names. */
static uint32_t config_distance(struct view a, struct view b)
{
    uint8_t row[CONFIG_NAME_MAX + 1];
    for (uint32_t j = 0; j <= b.size; j++)
        row[j] = (uint8_t)j;
    for (uint32_t i = 1; i <= a.size; i++) {
        uint8_t diagonal = row[0];
        row[0] = (uint8_t)i;
        for (uint32_t j = 1; j <= b.size; j++) {
            uint8_t replace = (uint8_t)(diagonal + (a.data[i - 1] != b.data[j - 1]));
            uint8_t change = (uint8_t)(MIN(row[j], row[j - 1]) + 1);
            diagonal = row[j];
            row[j] = MIN(replace, change);
        }
    }
    return row[b.size];
}

const struct config_def *config_nearest(enum config_scope scope, struct view name)
{
    if (name.size > CONFIG_NAME_MAX) return NULL;
    uint32_t count;
    const struct config_def *all = config_all(scope, &count);
    const struct config_def *nearest = NULL;
    uint32_t best = 1 + name.size / 4; /* Further away is another name. */
    for (uint32_t i = 0; i < count; i++) {
        struct view other = view_of_string(all[i].name);
        if (other.size > CONFIG_NAME_MAX) continue;
        uint32_t distance = config_distance(name, other);
        if (distance >= best + (nearest == NULL)) continue;
        best = distance;
        nearest = &all[i];
    }
    return nearest;
}

/* ---- text ------------------------------------------------------------------------------------ */

static struct view config_trim(struct view text)
{
    if (text.null) return text;
    while (text.size > 0 && text.data[0] <= ' ') {
        text.data++;
        text.size--;
    }
    while (text.size > 0 && text.data[text.size - 1] <= ' ')
        text.size--;
    return text;
}

static uint8_t config_lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

static bool config_same_word(struct view a, struct view b)
{
    if (a.size != b.size) return false;
    for (uint32_t i = 0; i < a.size; i++)
        if (config_lower(a.data[i]) != config_lower(b.data[i])) return false;
    return true;
}

bool config_spaced(struct view text)
{
    return config_trim(text).size != text.size;
}

struct view config_shown(const struct config_def *def, struct view value)
{
    bool flag;
    if (value.null || def->type == CONFIG_STRING || def->type == CONFIG_PASSWORD) return value;
    if (def->type == CONFIG_BOOLEAN && config_parse_bool(value, &flag))
        return flag ? VIEW("true") : VIEW("false");
    return config_trim(value);
}

bool config_parse_bool(struct view text, bool *out)
{
    text = config_trim(text);
    if (text.null) return false;
    *out = config_same_word(text, VIEW("true"));
    return *out || config_same_word(text, VIEW("false"));
}

bool config_parse_int64(struct view text, int64_t *out)
{
    text = config_trim(text);
    if (text.null || text.size == 0) return false;
    bool negative = text.data[0] == '-';
    uint32_t i = negative || text.data[0] == '+' ? 1 : 0;
    if (i == text.size) return false;
    uint64_t limit = (uint64_t)INT64_MAX + negative;
    uint64_t value = 0;
    for (; i < text.size; i++) {
        uint32_t digit = (uint32_t)text.data[i] - '0';
        if (digit > 9) return false;
        if (value > (limit - digit) / 10) return false;
        value = value * 10 + digit;
    }
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

/* Digits, a point, an exponent: what Kafka's numbers look like. Exact to about fifteen digits. */
bool config_parse_double(struct view text, double *out)
{
    text = config_trim(text);
    if (text.null || text.size == 0) return false;
    uint32_t i = text.data[0] == '-' || text.data[0] == '+' ? 1 : 0;
    bool negative = text.data[0] == '-';
    double value = 0;
    int64_t exponent = 0;
    uint32_t digits = 0;
    bool point = false;
    for (; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (c < '0' || c > '9') break;
        value = value * 10 + (c - '0');
        exponent -= point;
        digits++;
    }
    if (digits == 0 || digits > 300) return false;
    if (i < text.size) {
        if (config_lower(text.data[i]) != 'e') return false;
        int64_t written;
        if (!config_parse_int64(view_of(text.data + i + 1, text.size - i - 1), &written))
            return false;
        if (written < -400 || written > 400) return false;
        exponent += written;
    }
    for (; exponent > 0; exponent--)
        value *= 10;
    for (; exponent < 0; exponent++)
        value /= 10;
    *out = negative ? -value : value;
    return true;
}

bool config_list_next(struct view *rest, struct view *item)
{
    if (rest->null || rest->data == NULL) return false;
    /* The value as a whole is empty, or blank: no items. The end is marked by a null `rest`. */
    uint32_t size = 0;
    while (size < rest->size && rest->data[size] != ',')
        size++;
    *item = config_trim(view_of(rest->data, size));
    if (size == rest->size) {
        *rest = VIEW_NULL;
    } else {
        rest->data += size + 1;
        rest->size -= size + 1;
    }
    return true;
}

bool config_list_has(struct view list, struct view item)
{
    struct view rest = config_list(list);
    struct view each;
    while (config_list_next(&rest, &each))
        if (view_equal(each, item)) return true;
    return false;
}

struct view config_list(struct view text)
{
    text = config_trim(text);
    return text.null || text.size == 0 ? VIEW_NULL : text;
}

/* ---- judging --------------------------------------------------------------------------------- */

static bool config_among(const struct config_def *def, struct view text)
{
    for (uint32_t i = 0; def->values[i] != NULL; i++) {
        struct view value = view_of_string(def->values[i]);
        if (view_equal(value, text)) return true;
        if (def->any_case && config_same_word(value, text)) return true;
    }
    return false;
}

static enum config_fault config_check_number(const struct config_def *def, struct view value)
{
    double number;
    if (def->type == CONFIG_DOUBLE) {
        if (!config_parse_double(value, &number)) return CONFIG_E_PARSE;
    } else {
        int64_t whole;
        if (!config_parse_int64(value, &whole)) return CONFIG_E_PARSE;
        if (def->type == CONFIG_INT && whole != (int32_t)whole) return CONFIG_E_PARSE;
        if (def->type == CONFIG_SHORT && whole != (int16_t)whole) return CONFIG_E_PARSE;
        number = (double)whole;
    }
    if (number < def->min || number > def->max) return CONFIG_E_RANGE;
    if (def->not_zero && number >= 0 && number <= 0) return CONFIG_E_RANGE;
    return CONFIG_OK;
}

/* partition:broker, both decimal. */
static bool config_is_replica(struct view item)
{
    uint32_t colon = 0;
    while (colon < item.size && item.data[colon] != ':')
        colon++;
    int64_t number;
    return colon < item.size && config_parse_int64(view_of(item.data, colon), &number) &&
           number >= 0 &&
           config_parse_int64(view_of(item.data + colon + 1, item.size - colon - 1), &number) &&
           number >= 0;
}

static enum config_fault config_check_replicas(struct view value)
{
    if (view_is(config_trim(value), "*")) return CONFIG_OK;
    struct view rest = config_list(value);
    struct view item;
    while (config_list_next(&rest, &item))
        if (!config_is_replica(item)) return CONFIG_E_VALUE;
    return CONFIG_OK;
}

static enum config_fault config_check_list(const struct config_def *def, struct view value)
{
    struct view rest = config_list(value);
    if (rest.null && def->not_empty) return CONFIG_E_EMPTY;
    struct view item;
    while (config_list_next(&rest, &item)) {
        if (item.size == 0) return CONFIG_E_EMPTY;
        if (def->values != NULL && !config_among(def, item)) return CONFIG_E_VALUE;
        /* What is left of the list, when none is left the null list. */
        if (def->form == CONFIG_FORM_DISTINCT && config_list_has(rest, item)) return CONFIG_E_VALUE;
    }
    return def->form == CONFIG_FORM_REPLICAS ? config_check_replicas(value) : CONFIG_OK;
}

static uint32_t config_digits(struct view text, uint32_t at)
{
    uint32_t count = 0;
    while (at + count < text.size && text.data[at + count] >= '0' && text.data[at + count] <= '9')
        count++;
    return count;
}

/* PnDTnHnMn.nS, at least one part. */
static bool config_is_duration(struct view text)
{
    static const char units[] = "DHMS";
    uint32_t next = 0; /* The first unit that may still come. */
    uint32_t at = 1;
    if (text.size < 3 || config_lower(text.data[0]) != 'p') return false;
    while (at < text.size) {
        if (next <= 1 && config_lower(text.data[at]) == 't') {
            next = 1;
            if (++at == text.size) return false;
        }
        uint32_t digits = config_digits(text, at);
        if (digits == 0) return false;
        at += digits;
        bool fraction = at < text.size && text.data[at] == '.';
        if (fraction) at += 1 + config_digits(text, at + 1);
        if (at == text.size) return false;
        uint32_t unit = next;
        while (unit < 4 && config_lower(text.data[at]) != config_lower((uint8_t)units[unit]))
            unit++;
        if (unit == 4 || (fraction && unit != 3)) return false;
        if (next == 0 && unit > 0) return false; /* Hours and below follow a T. */
        next = unit + 1;
        at++;
    }
    return true;
}

static enum config_fault config_check_reset(struct view value)
{
    static const char prefix[] = "by_duration:";
    if (view_is(value, "latest") || view_is(value, "earliest")) return CONFIG_OK;
    uint32_t size = sizeof(prefix) - 1;
    if (value.size <= size || !view_is(view_of(value.data, size), prefix)) return CONFIG_E_VALUE;
    return config_is_duration(view_of(value.data + size, value.size - size)) ? CONFIG_OK
                                                                             : CONFIG_E_VALUE;
}

static enum config_fault config_check_text(const struct config_def *def, struct view value)
{
    value = config_trim(value);
    if (value.size == 0 && def->not_empty) return CONFIG_E_EMPTY;
    if (def->values != NULL && !config_among(def, value)) return CONFIG_E_VALUE;
    if (def->form == CONFIG_FORM_RESET) return config_check_reset(value);
    bool reserved = value.size >= 2 && memcmp(value.data, "__", 2) == 0;
    return def->form == CONFIG_FORM_UNRESERVED && reserved ? CONFIG_E_VALUE : CONFIG_OK;
}

enum config_fault config_check(const struct config_def *def, struct view value)
{
    if (value.null) return CONFIG_E_NULL;
    if (value.size > CONFIG_VALUE_MAX) return CONFIG_E_LONG;
    bool truth;
    switch ((enum config_type)def->type) {
    case CONFIG_BOOLEAN: return config_parse_bool(value, &truth) ? CONFIG_OK : CONFIG_E_PARSE;
    case CONFIG_INT:
    case CONFIG_SHORT:
    case CONFIG_LONG:
    case CONFIG_DOUBLE: return config_check_number(def, value);
    case CONFIG_LIST: return config_check_list(def, value);
    default: return config_check_text(def, value);
    }
}

/* ---- rules over several settings ------------------------------------------------------------- */

static int64_t config_number(config_lookup *lookup, void *context, struct view name)
{
    int64_t number = 0;
    bool parsed = config_parse_int64(lookup(context, name), &number);
    assert(parsed); /* Each value was checked before. */
    return number;
}

static bool config_flag(config_lookup *lookup, void *context, struct view name)
{
    bool flag = false;
    bool parsed = config_parse_bool(lookup(context, name), &flag);
    assert(parsed);
    return flag;
}

/* Is `local` more than `total`, where -1 means all? -2 follows the total. */
static bool config_exceeds(int64_t local, int64_t total)
{
    if (local == -2) return false;
    if (total < 0) return false;
    return local == -1 || local > total;
}

static bool config_lag_exceeds(int64_t lag, int64_t local, int64_t total)
{
    int64_t kept = local == -2 ? total : local;
    return lag > 0 && kept >= 0 && lag > kept;
}

static const char *config_check_tiered(config_lookup *lookup, void *context)
{
    int64_t total_ms = config_number(lookup, context, VIEW("retention.ms"));
    int64_t total_bytes = config_number(lookup, context, VIEW("retention.bytes"));
    int64_t local_ms = config_number(lookup, context, VIEW("local.retention.ms"));
    int64_t local_bytes = config_number(lookup, context, VIEW("local.retention.bytes"));
    int64_t lag_ms = config_number(lookup, context, VIEW("remote.copy.lag.ms"));
    int64_t lag_bytes = config_number(lookup, context, VIEW("remote.copy.lag.bytes"));

    if (config_exceeds(local_ms, total_ms))
        return "local.retention.ms must not exceed retention.ms";
    if (config_exceeds(local_bytes, total_bytes))
        return "local.retention.bytes must not exceed retention.bytes";
    if (config_lag_exceeds(lag_ms, local_ms, total_ms))
        return "remote.copy.lag.ms must not exceed the local retention";
    if (config_lag_exceeds(lag_bytes, local_bytes, total_bytes))
        return "remote.copy.lag.bytes must not exceed the local retention";
    if (config_flag(lookup, context, VIEW("remote.log.copy.disable")) &&
        ((local_ms != -2 && local_ms != total_ms) ||
         (local_bytes != -2 && local_bytes != total_bytes)))
        return "with remote.log.copy.disable the local retention must be -2 or the total retention";
    return NULL;
}

const char *config_check_topic(config_lookup *lookup, void *context)
{
    if (config_number(lookup, context, VIEW("min.compaction.lag.ms")) >
        config_number(lookup, context, VIEW("max.compaction.lag.ms")))
        return "min.compaction.lag.ms must not exceed max.compaction.lag.ms";
    if (config_flag(lookup, context, VIEW("remote.storage.enable")))
        return config_check_tiered(lookup, context);
    return NULL;
}
