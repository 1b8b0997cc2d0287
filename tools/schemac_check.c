/* schemac_check.c - what a schema may not say though it can be read: versions outside the message,
 * a null that a type does not have, a tag where nothing is flexible, a default that does not fit.
 */
#include "schemac.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_MAX 63

static bool is_none(struct versions v)
{
    return v.min > v.max;
}

static bool is_inside(struct versions inner, struct versions outer)
{
    return is_none(inner) || (inner.min >= outer.min && inner.max <= outer.max);
}

/* Both ends within what the message has, so that "3+" and "3-5" are judged alike. */
static struct versions clip(struct versions v, struct versions valid)
{
    if (v.min < valid.min) v.min = valid.min;
    if (v.max > valid.max) v.max = valid.max;
    return v;
}

static void check_number(const struct message *m, const struct field *f)
{
    static const struct {
        long long min, max;
    } ranges[] = {
        [TYPE_INT8] = {-128,          127         },
          [TYPE_INT16] = {-32768,        32767       },
        [TYPE_UINT16] = {0,             65535       },
          [TYPE_INT32] = {-2147483648LL, 2147483647  },
        [TYPE_UINT32] = {0,             4294967295LL},
          [TYPE_INT64] = {INT64_MIN,     INT64_MAX   },
    };
    char *end;
    errno = 0;
    long long value = strtoll(f->default_text, &end, 0);
    bool whole = end != f->default_text && *end == '\0' && errno == 0;
    if (!whole || value < ranges[f->type].min || value > ranges[f->type].max)
        fail(m->file, f->name, "default \"%s\" is no %s", f->default_text, f->type_text);
}

static void check_default(const struct message *m, const struct field *f)
{
    const char *text = f->default_text;
    bool bare_null = text != NULL && !f->default_is_string && strcmp(text, "null") == 0;
    if (text == NULL || text[0] == '\0' || bare_null) return;
    if (field_default_is_null(f) && (is_none(f->nullable) || f->type < TYPE_STRING) && !f->array)
        fail(m->file, f->name, "default null, but it is never null");
    if (field_default_is_null(f)) return;
    if (f->array || f->type == TYPE_STRUCT || f->type == TYPE_BYTES || f->type == TYPE_RECORDS)
        fail(m->file, f->name, "a default of %s may only be null", f->type_text);
    if (f->type == TYPE_BOOL && strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        fail(m->file, f->name, "default \"%s\" is no bool", text);
    if (f->type == TYPE_UUID) fail(m->file, f->name, "a uuid has no default but zero");
    if (f->type > TYPE_BOOL && f->type <= TYPE_INT64 && f->type != TYPE_FLOAT64) check_number(m, f);
}

static void check_tag(const struct message *m, const struct shape *shape, const struct field *f)
{
    if (f->tag < 0) return;
    struct versions tagged = clip(f->tagged, m->valid);
    if (!is_inside(tagged, clip(m->flexible, m->valid)))
        fail(m->file, f->name, "taggedVersions that are not flexible");
    if (!is_inside(tagged, clip(f->versions, m->valid)))
        fail(m->file, f->name, "taggedVersions outside its versions");
    for (const struct field *other = shape->fields; other != f; other++)
        if (other->tag == f->tag) fail(m->file, f->name, "tag %d is %s's", f->tag, other->name);
}

static void check_field(const struct message *m, const struct shape *shape, const struct field *f)
{
    struct versions versions = clip(f->versions, m->valid);
    if (!is_none(m->valid) && is_none(versions))
        fail(m->file, f->name, "is in no version of the message");
    if (!is_none(f->nullable) && !f->array && wire_sizes[f->type] > 0)
        fail(m->file, f->name, "a %s cannot be null", f->type_text);
    if (f->zero_copy && f->type != TYPE_BYTES && f->type != TYPE_RECORDS)
        fail(m->file, f->name, "zeroCopy is for bytes and records");
    if (f->array && f->type == TYPE_RECORDS) fail(m->file, f->name, "an array of records");
    if (strstr(f->about, "*/") != NULL) fail(m->file, f->name, "about would end a comment");
    check_tag(m, shape, f);
    check_default(m, f);
}

static void check_ranges(const struct message *m)
{
    static const char *const kinds[] = {"request",  "response",        "header",           "data",
                                        "metadata", "coordinator-key", "coordinator-value"};
    bool known = false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        known = known || strcmp(kinds[i], m->kind) == 0;
    if (!known) fail(m->file, "type", "no kind \"%s\"", m->kind);
    if (m->valid.max > VERSION_MAX) fail(m->file, "validVersions", "go to %d", VERSION_MAX);
    if (!is_inside(m->served, m->valid)) fail(m->file, "servedVersions", "outside validVersions");
    bool is_api = strcmp(m->kind, "request") == 0 || strcmp(m->kind, "response") == 0;
    if (is_api && m->api_key < 0) fail(m->file, "apiKey", "is missing");
    bool listens = m->listens_broker || m->listens_controller || m->listens_zk;
    if (listens && strcmp(m->kind, "request") != 0)
        fail(m->file, "listeners", "are a request's only");
}

void check_message(const struct message *m)
{
    check_ranges(m);
    for (int s = 0; s < m->shape_count; s++)
        for (int i = 0; i < m->shapes[s]->field_count; i++)
            check_field(m, m->shapes[s], &m->shapes[s]->fields[i]);
}
