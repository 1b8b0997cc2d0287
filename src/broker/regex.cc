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

/* Why, in the words of RE2/J. */
static const char *fault_text(RE2::ErrorCode code)
{
    switch (code) {
    case RE2::ErrorBadEscape: return "invalid escape sequence";
    case RE2::ErrorBadCharClass: return "invalid character class";
    case RE2::ErrorBadCharRange: return "invalid character class range";
    case RE2::ErrorMissingBracket: return "missing closing ]";
    case RE2::ErrorMissingParen: return "missing closing )";
    case RE2::ErrorUnexpectedParen: return "unexpected )"; /* RE2/J: an internal error. */
    case RE2::ErrorTrailingBackslash: return "trailing backslash at end of expression";
    case RE2::ErrorRepeatArgument: return "missing argument to repetition operator";
    case RE2::ErrorRepeatSize: return "invalid repeat count";
    case RE2::ErrorRepeatOp: return "invalid nested repetition operator";
    case RE2::ErrorBadPerlOp: return "invalid or unsupported Perl syntax";
    case RE2::ErrorBadNamedCapture: return "invalid named capture";
    default: return nullptr;
    }
}

struct regex *regex_new(struct arena *arena, struct view text, struct view *fault)
{
    RE2::Options options;
    options.set_log_errors(false);
    struct regex *made = new (std::nothrow) regex(piece(text), options);
    if (made == nullptr || made->compiled.ok()) return made;
    const char *known = fault_text(made->compiled.error_code());
    std::string why = known != nullptr ? known : made->compiled.error();
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
