/* say.c - see say.h. One line is built in a buffer on the stack and written at once. */
#include "sys/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = {"trace", "debug", "info", "warn", "error", "fatal"};

static const char *const area_names[] = {
    [SAY_IN_ROOT] = "root",
    [SAY_IN_BROKER] = "broker",
    [SAY_IN_CONFIG] = "config",
    [SAY_IN_CONSOLE] = "console",
    [SAY_IN_CONTROLLER] = "controller",
    [SAY_IN_GROUP] = "group",
    [SAY_IN_LOG] = "log",
    [SAY_IN_NET] = "net",
    [SAY_IN_NODE] = "node",
    [SAY_IN_QUOTA] = "quota",
    [SAY_IN_REQUEST] = "request",
    [SAY_IN_START] = "start",
};
_Static_assert(ARRAY_SIZE(area_names) == SAY_AREAS, "each area has its word");

/* ---- levels ---------------------------------------------------------------------------------- */

void say_levels_init(struct say_levels *levels, enum say_level root)
{
    for (uint32_t i = 0; i < SAY_AREAS; i++)
        atomic_store_explicit(&levels->own[i], 0, memory_order_relaxed);
    say_set(levels, SAY_IN_ROOT, root);
}

void say_set(struct say_levels *levels, enum say_area area, enum say_level level)
{
    assert(area < SAY_AREAS);
    if (area == SAY_IN_ROOT)
        atomic_store_explicit(&levels->root, (uint8_t)level, memory_order_relaxed);
    else
        atomic_store_explicit(&levels->own[area], (uint8_t)(level + 1), memory_order_relaxed);
}

void say_unset(struct say_levels *levels, enum say_area area)
{
    assert(area != SAY_IN_ROOT);
    assert(area < SAY_AREAS);
    atomic_store_explicit(&levels->own[area], 0, memory_order_relaxed);
}

const char *say_area_name(enum say_area area)
{
    assert(area < SAY_AREAS);
    return area_names[area];
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int64_t wall_ms(const struct say *say)
{
    if (say->wall_ms != NULL) return say->wall_ms(say->context);
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* "2026-11-30 06:03:11.042", with the separator given. */
static void format_time(int64_t at_ms, char separator, char *out, size_t size)
{
    time_t seconds = (time_t)(at_ms / 1000);
    struct tm tm;
    if (gmtime_r(&seconds, &tm) == NULL) memset(&tm, 0, sizeof(tm));
    (void)snprintf(out, size, "%04d-%02d-%02d%c%02d:%02d:%02d.%03d", tm.tm_year + 1900,
                   tm.tm_mon + 1, tm.tm_mday, separator, tm.tm_hour, tm.tm_min, tm.tm_sec,
                   (int)(at_ms % 1000));
}

/* Length of the valid UTF-8 character at `p`, or 0. */
static size_t utf8_size(const uint8_t *p, size_t left)
{
    if (p[0] < 0x80) return 1;
    size_t size = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || size > left) return 0;
    for (size_t i = 1; i < size; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if (p[0] == 0xe0 && p[1] < 0xa0) return 0;
    if (p[0] == 0xed && p[1] > 0x9f) return 0;
    if (p[0] == 0xf0 && p[1] < 0x90) return 0;
    if (p[0] == 0xf4 && p[1] > 0x8f) return 0;
    return size;
}

const char *say_bytes(struct view bytes, char *out, size_t size)
{
    assert(size >= 8);
    if (bytes.null) return memcpy(out, "null", 5);
    size_t at = 0;
    for (uint32_t i = 0; i < bytes.size;) {
        if (at + 8 > size) { /* Room for an escape or a character, and for "...". */
            memcpy(out + at, "...", 3);
            at += 3;
            break;
        }
        const uint8_t *p = bytes.data + i;
        size_t n = utf8_size(p, bytes.size - i);
        bool plain =
            n > 1 || (n == 1 && p[0] >= 0x20 && p[0] != 0x7f && p[0] != '"' && p[0] != '\\');
        if (n == 2 && p[0] == 0xc2 && p[1] < 0xa0) plain = false; /* C1 controls. */
        if (plain) {
            memcpy(out + at, p, n);
            at += n;
            i += (uint32_t)n;
        } else {
            at += (size_t)snprintf(out + at, size - at, "\\x%02x", p[0]);
            i++;
        }
    }
    out[at] = '\0';
    return out;
}

/* Append `text` as the inside of a JSON string. Returns the new end, at most `limit`. */
static size_t json_text(char *line, size_t at, size_t limit, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (const uint8_t *p = (const uint8_t *)text; *p != '\0' && at + 6 < limit; p++) {
        if (*p == '"' || *p == '\\') {
            line[at++] = '\\';
            line[at++] = (char)*p;
        } else if (*p < 0x20) {
            memcpy(line + at, "\\u00", 4);
            line[at + 4] = digits[*p >> 4];
            line[at + 5] = digits[*p & 15];
            at += 6;
        } else {
            line[at++] = (char)*p;
        }
    }
    return at;
}

static size_t format_json(const struct say *say,
                          char *line,
                          const char *message,
                          const char *part,
                          enum say_level level)
{
    char time_text[64];
    format_time(wall_ms(say), 'T', time_text, sizeof(time_text));
    size_t at = (size_t)snprintf(
        line, SAY_LINE_BYTES, "{\"time\":\"%sZ\",\"level\":\"%s\",\"part\":\"%s\",\"message\":\"",
        time_text, level_names[level], part);
    at = json_text(line, at, SAY_LINE_BYTES - 4, message);
    memcpy(line + at, "\"}\n", 3);
    return at + 3;
}

static size_t format_plain(const struct say *say,
                           char *line,
                           const char *message,
                           const char *part,
                           enum say_level level)
{
    char time_text[64];
    format_time(wall_ms(say), ' ', time_text, sizeof(time_text));
    int size = snprintf(line, SAY_LINE_BYTES - 1, "%s %s %s: %s", time_text, level_names[level],
                        part, message);
    size_t at = MIN((size_t)size, SAY_LINE_BYTES - 2);
    for (size_t i = 0; i < at; i++)
        if ((uint8_t)line[i] < 0x20) line[i] = ' '; /* One line stays one line. */
    line[at] = '\n';
    return at + 1;
}

void say(const struct say *say, enum say_level level, enum say_area area, const char *format, ...)
{
    if (!say_on(say, level, area) || (say->sink == NULL && say->fd < 0)) return;
    const char *part = say_area_name(area);
    char message[SAY_LINE_BYTES];
    va_list list;
    va_start(list, format);
    int size = vsnprintf(message, sizeof(message), format, list);
    va_end(list);
    if (size < 0) return;
    if ((size_t)size >= sizeof(message)) memcpy(message + sizeof(message) - 4, "...", 4);

    char line[SAY_LINE_BYTES];
    size_t line_size = say->json ? format_json(say, line, message, part, level)
                                 : format_plain(say, line, message, part, level);
    if (say->sink != NULL) {
        say->sink(say->context, line, line_size);
        return;
    }
    ssize_t written = write(say->fd, line, line_size);
    (void)written; /* Nobody could be told. */
}

const char *say_errno(int error)
{
    const char *text = strerrordesc_np(-error);
    return text == NULL ? "unknown error" : text;
}

bool say_allowed(struct say_limit *limit, int64_t now_ms, uint32_t *dropped)
{
    *dropped = 0;
    if (now_ms - limit->window_start_ms >= SAY_LIMIT_MS) {
        limit->window_start_ms = now_ms;
        limit->said = 0;
    }
    if (limit->said >= SAY_LIMIT_LINES) {
        limit->dropped++;
        return false;
    }
    limit->said++;
    *dropped = limit->dropped;
    limit->dropped = 0;
    return true;
}
