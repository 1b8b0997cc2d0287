/* regex.cc - see regex.h. */
#include <re2/re2.h>

#include <new>

#include "broker/regex.h"

struct regex {
    RE2 compiled;
    explicit regex(const re2::StringPiece &text, const RE2::Options &options)
        : compiled(text, options)
    {
    }
};

static re2::StringPiece piece(struct view text)
{
    return re2::StringPiece(reinterpret_cast<const char *>(text.data), text.size);
}

struct regex *regex_new(struct arena *arena, struct view text, struct view *fault)
{
    RE2::Options options;
    options.set_log_errors(false);
    struct regex *made = new (std::nothrow) regex(piece(text), options);
    if (made == nullptr || made->compiled.ok()) return made;
    const std::string &why = made->compiled.error();
    *fault = arena_copy(arena, view_of(why.data(), static_cast<uint32_t>(why.size())));
    return regex_free(made);
}

bool regex_matches(const struct regex *regex, struct view name)
{
    return RE2::FullMatch(piece(name), regex->compiled);
}

struct regex *regex_free(struct regex *regex)
{
    delete regex;
    return nullptr;
}
