/* start_notify.c - see start_notify.h. One datagram to a Unix socket; a name that begins with @ is
 * of the abstract kind. */
#include "cli/start_notify.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void start_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t size = path == NULL ? 0 : strlen(path);

    if (size < 2 || size >= sizeof(at.sun_path) || (path[0] != '/' && path[0] != '@')) return;
    memcpy(at.sun_path, path, size);
    if (path[0] == '@') at.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    socklen_t whole = (socklen_t)(sizeof(at.sun_family) + size + (path[0] == '/'));
    (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&at, whole);
    close(fd);
}
