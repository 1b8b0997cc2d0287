/* restart.c - rows meet at the restart of the server. */
#include "check/restart.h"

#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/wait.h>

void restart_init(struct check_restart *restart, const char *command, uint32_t rows)
{
    *restart = (struct check_restart){.command = command, .rows = rows};
    pthread_mutex_init(&restart->mutex, NULL);
    pthread_cond_init(&restart->changed, NULL);
}

void restart_free(struct check_restart *restart)
{
    pthread_cond_destroy(&restart->changed);
    pthread_mutex_destroy(&restart->mutex);
}

/* What the command prints goes to where errors go: the report is on standard output. */
static int run_command(const char *command)
{
    char shell[] = "sh", flag[] = "-c";
    char *words[] = {shell, flag, strdup(command), NULL};
    posix_spawn_file_actions_t actions; /* posix_spawn takes texts that it could write to. */
    pid_t pid;
    int status = -1;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    if (posix_spawn(&pid, "/bin/sh", &actions, NULL, words, environ) == 0)
        (void)waitpid(pid, &status, 0);
    posix_spawn_file_actions_destroy(&actions);
    free(words[2]);
    return status;
}

void restart_wait(struct check_run *run)
{
    struct check_restart *restart = run->restart;
    if (run->over) return;
    assert(restart != NULL);
    pthread_mutex_lock(&restart->mutex);
    restart->waiting++;
    pthread_cond_broadcast(&restart->changed);
    while (!restart->begun && restart->waiting < restart->rows)
        pthread_cond_wait(&restart->changed, &restart->mutex);
    if (!restart->begun) {
        restart->begun = true;
        restart->status = run_command(restart->command);
        restart->done = true;
        pthread_cond_broadcast(&restart->changed);
    }
    while (!restart->done)
        pthread_cond_wait(&restart->changed, &restart->mutex);
    int status = restart->status;
    pthread_mutex_unlock(&restart->mutex);
    run->restarted = true;
    run_need_true(run, "the command that restarts the server succeeds", status == 0);
}

void restart_leave(struct check_restart *restart, const struct check_run *run)
{
    if (run->restarted) return;
    pthread_mutex_lock(&restart->mutex);
    assert(restart->rows > 0);
    restart->rows--;
    pthread_cond_broadcast(&restart->changed);
    pthread_mutex_unlock(&restart->mutex);
}
