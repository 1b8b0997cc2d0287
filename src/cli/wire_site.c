/* wire_site.c - `dohle wire site`: the reference pages of all APIs in all versions, as a folder
 * that a browser opens without a server. */
#include "cli/wire.h"
#include "text/page_html.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct site {
    struct cli *cli;
    int folder; /* Open descriptor. */
    const char *path;
    uint32_t page_count;
    uint64_t size_bytes;
};

static enum cli_exit write_all(struct site *site, int fd, const char *name, struct view bytes)
{
    while (bytes.size > 0) {
        ssize_t written = write(fd, bytes.data, bytes.size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0)
            return (enum cli_exit)cli_fail(site->cli, CLI_FAILED, "could not write \"%s/%s\": %s",
                                           site->path, name, strerror(errno));
        bytes = view_of(bytes.data + written, bytes.size - (uint32_t)written);
        site->size_bytes += (uint64_t)written;
    }
    return CLI_OK;
}

static enum cli_exit write_file(struct site *site, const char *name, struct view bytes)
{
    int fd = openat(site->folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return (enum cli_exit)cli_fail(site->cli, CLI_FAILED, "could not create \"%s/%s\": %s",
                                       site->path, name, strerror(errno));
    enum cli_exit code = write_all(site, fd, name, bytes);
    if (close(fd) < 0 && code == CLI_OK)
        code = (enum cli_exit)cli_fail(site->cli, CLI_FAILED, "could not write \"%s/%s\": %s",
                                       site->path, name, strerror(errno));
    return code;
}

/* Write what is in `out`, and empty it. */
static enum cli_exit write_out(struct site *site, const char *name, struct out *out)
{
    if (out->failed) return (enum cli_exit)cli_fail(site->cli, CLI_FAILED, "out of memory");
    enum cli_exit code = write_file(site, name, out_so_far(out));
    out_reset(out);
    return code;
}

static enum cli_exit write_page(struct site *site,
                                const struct page_subject *subject,
                                int16_t version,
                                struct out *out)
{
    struct arena arena;
    struct page page;
    char name[160];

    snprintf(name, sizeof(name), "%s-v%d.html", page_name(subject), version);
    arena_init(&arena, site->cli->mem, 0);
    if (page_build(&page, subject, version, &arena)) {
        page_html(out, &page, false);
    } else {
        out->failed = true;
    }
    arena_free(&arena);
    site->page_count++;
    return write_out(site, name, out);
}

/* The pages of all versions. */
static enum cli_exit write_subject(struct site *site,
                                   const struct page_subject *subject,
                                   struct out *out)
{
    enum cli_exit code = CLI_OK;
    const struct wire_message *message = subject->message;
    for (int16_t v = message->version_min; v <= message->version_max && code == CLI_OK; v++)
        code = write_page(site, subject, v, out);
    return code;
}

static enum cli_exit write_subjects(struct site *site, struct out *out)
{
    uint32_t count;
    const struct wire_api *apis = wire_apis(&count);
    enum cli_exit code = CLI_OK;

    for (uint32_t i = 0; i < count && code == CLI_OK; i++)
        code = write_subject(site, &(struct page_subject){&apis[i], apis[i].request}, out);
    const struct wire_message *const *messages = wire_messages(&count);
    for (uint32_t i = 0; i < count && code == CLI_OK; i++) {
        if (messages[i]->kind == WIRE_REQUEST || messages[i]->kind == WIRE_RESPONSE) continue;
        code = write_subject(site, &(struct page_subject){NULL, messages[i]}, out);
    }
    return code;
}

static enum cli_exit write_site(struct site *site)
{
    static const struct {
        const char *name;
        void (*put)(struct out *out);
    } others[] = {
        {"search.js",   page_html_search},
        {"errors.html", page_html_errors},
        {"index.html",  page_html_index }, /* Last: what has an index is whole. */
    };
    struct page_asset assets[PAGE_ASSETS];
    struct out out;

    out_init(&out, site->cli->mem);
    enum cli_exit code = write_subjects(site, &out);
    page_assets(assets);
    for (int i = 0; i < PAGE_ASSETS && code == CLI_OK; i++)
        code = write_file(site, assets[i].name, assets[i].bytes);
    for (size_t i = 0; i < ARRAY_SIZE(others) && code == CLI_OK; i++) {
        others[i].put(&out);
        code = write_out(site, others[i].name, &out);
    }
    out_free(&out);
    return code;
}

static int run(struct cli *cli)
{
    struct site site = {.cli = cli, .path = cli->words[0]};

    if (mkdir(site.path, 0777) < 0 && errno != EEXIST)
        return cli_fail(cli, CLI_FAILED, "could not create \"%s\": %s", site.path, strerror(errno));
    site.folder = open(site.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (site.folder < 0)
        return cli_fail(cli, CLI_FAILED, "could not open \"%s\": %s", site.path, strerror(errno));
    enum cli_exit code = write_site(&site);
    close(site.folder);
    if (code != CLI_OK) return (int)code;
    out_format(&cli->out, "%u pages, %.1f MB; open %s/index.html\n", site.page_count,
               (double)site.size_bytes / 1e6, site.path);
    return CLI_OK;
}

const struct cli_command command_wire_site = {
    .name = "wire site",
    .group = CLI_LOOK,
    .summary = "the pages of all APIs and records as a folder for a browser",
    .arguments = "DIR",
    .about =
        "Writes one page for each API, record and version, the error codes, an index, a search "
        "over all names and meanings, and the changes from version to version. It works from the disk, without a "
        "server. Files that are there already are written over.",
    .words_min = 1,
    .words_max = 1,
    .run = run,
};
