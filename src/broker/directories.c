/* directories.c - see directories.h. */
#include "broker/directories.h"

#include <errno.h>
#include <stdio.h>

#include "broker/broker.h"
#include "broker/controller.h"

struct directories_path {
    char text[4096];
};

/* Where the name of this directory lies. */
static struct directories_path directories_parent(const char *path)
{
    struct directories_path parent;
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        (void)snprintf(parent.text, sizeof(parent.text), ".");
    else
        (void)snprintf(parent.text, sizeof(parent.text), "%.*s", (int)MAX(slash - path, 1), path);
    return parent;
}

/* One directory; it may be there. */
static int directories_make_one(struct node *node, const char *path)
{
    int result = io_disk_mkdir(node->io, path);
    return result == -EEXIST ? 0 : result;
}

/* With the directories above it that are missing. Those are durable then; its own name is so when
 * its parent has been synced. */
static int directories_make_directory(struct node *node, const char *path)
{
    struct directories_path above;
    int result = directories_make_one(node, path);
    if (result != -ENOENT) return result;
    if (snprintf(above.text, sizeof(above.text), "%s", path) >= (int)sizeof(above.text))
        return -ENAMETOOLONG;
    for (char *slash = above.text; (slash = strchr(slash + 1, '/')) != NULL; *slash = '/') {
        *slash = '\0';
        result = directories_make_one(node, above.text);
        if (result == 0) result = io_disk_sync_dir(node->io, directories_parent(above.text).text);
        if (result != 0) return result;
    }
    return directories_make_one(node, path);
}

/* The control part's first directory also gets the bootstrap checkpoint; meta.properties comes
 * last: it is what makes the directory a formatted one. All that it promises is synced with its
 * bytes: a format is two waits for the disk. */
static int directories_format(struct node *node, uint32_t index)
{
    const char *path = node->options.log_dirs[index];
    struct log_meta meta = {
        .node_id = node->options.node_id, .version = 1, .directory_id = io_random_uuid(node->io)};
    (void)snprintf(meta.cluster_id, sizeof(meta.cluster_id), "%s", node->cluster_id);
    int result = directories_make_directory(node, path);
    if (result != 0) return result;

    struct directories_path parent = directories_parent(path), dir;
    struct io_file *checkpoint = NULL;
    struct io_sync parts[4] = {{.folder = parent.text}};
    struct disk_needed needed = {.parts = parts, .count = 1};
    if (index == 0) {
        if (snprintf(dir.text, sizeof(dir.text), "%s/__cluster_metadata-0", path) >=
            (int)sizeof(dir.text))
            return -ENAMETOOLONG;
        result = controller_format(node, dir.text, meta.directory_id, &checkpoint);
        if (result != 0) return result;
        parts[needed.count++] = (struct io_sync){.file = checkpoint};
        parts[needed.count++] = (struct io_sync){.folder = dir.text};
        parts[needed.count++] = (struct io_sync){.folder = path};
    }
    result = log_meta_write_after(node->io, path, &meta, needed);
    io_disk_close(node->io, checkpoint);
    return result;
}

/* What lies in a directory to be formatted would have the logs refuse it: better before than after.
 */
static int directories_stranger(struct node *node, const char *path)
{
    char name[256];
    /* What cannot be listed cannot be formatted, and that says why. */
    if (log_dir_stranger(node->io, path, name) != LOG_DIR_STRANGER) return 0;
    say(node->say, SAY_ERROR, SAY_IN_NODE,
        "\"%s\" is no data directory and has other things in it (\"%s\"); name an empty or a new "
        "one: --data DIR or log.dirs",
        path, name);
    return -ENOTEMPTY;
}

/* The cluster's id: the directories', else as asked for, else a new one. */
static int directories_cluster(struct node *node)
{
    const char *asked = node->options.cluster_id;
    char *id = node->cluster_id;
    if (id[0] == '\0' && asked != NULL) {
        (void)snprintf(id, sizeof(node->cluster_id), "%s", asked);
    } else if (id[0] == '\0') {
        char text[23];
        log_uuid_print(io_random_uuid(node->io), text);
        memcpy(id, text, sizeof(text));
    } else if (asked != NULL && strcmp(id, asked) != 0) {
        say(node->say, SAY_ERROR, SAY_IN_NODE,
            "the data directories belong to cluster %s, not to %s; leave the cluster's id out, or "
            "name other directories",
            id, asked);
        return -EINVAL;
    }
    return 0;
}

static int directories_read(struct node *node, const char *path, bool *missing)
{
    struct log_meta meta;
    int result = log_meta_read(node->io, path, &meta);
    if (result < 0 && result != -ENOENT) {
        say(node->say, SAY_ERROR, SAY_IN_NODE, "could not read \"%s/meta.properties\": %s", path,
            say_errno(result));
        return result;
    }
    *missing = result == LOG_META_MISSING || result == -ENOENT;
    if (result == LOG_META_OK) memcpy(node->cluster_id, meta.cluster_id, sizeof(meta.cluster_id));
    return *missing ? directories_stranger(node, path) : 0;
}

int directories_open(struct node *node)
{
    bool missing[LOG_DIRS_MAX] = {false};
    int result = 0;
    for (uint32_t i = 0; i < node->options.log_dir_count && result == 0; i++)
        result = directories_read(node, node->options.log_dirs[i], &missing[i]);
    if (result == 0) result = directories_cluster(node);
    for (uint32_t i = 0; i < node->options.log_dir_count && result == 0; i++) {
        if (!missing[i]) continue;
        result = directories_format(node, i);
        if (result != 0)
            say(node->say, SAY_ERROR, SAY_IN_NODE,
                "could not make \"%s\" a data directory: %s; --data DIR or log.dirs names another",
                node->options.log_dirs[i], say_errno(result));
    }
    return result;
}
