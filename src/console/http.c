/* http.c - libmicrohttpd, loaded when somebody connects for the first time.
 *
 * It and what it needs take several MiB and milliseconds to map; most nodes of a test suite are
 * never asked (docs/decisions). One daemon per listening descriptor, each a thread with epoll. */
#include <dlfcn.h>
#include <microhttpd.h>
#include <stdlib.h>

#include "console/inside.h"
#include "sys/memory.h"

#define HTTP_CONNECTIONS_MAX 64
#define HTTP_IDLE_S          30
#define HTTP_BODY_MAX        (16ull * 1024 * 1024)

struct console_http {
    struct console *console;
    void *library;
    struct MHD_Daemon *daemons[2];
    __typeof__(&MHD_start_daemon) start;
    __typeof__(&MHD_stop_daemon) stop;
    __typeof__(&MHD_create_response_from_buffer) response_new;
    __typeof__(&MHD_add_response_header) header;
    __typeof__(&MHD_queue_response) queue;
    __typeof__(&MHD_destroy_response) response_free;
};

static enum MHD_Result answer(struct console_http *http,
                              struct MHD_Connection *connection,
                              struct console_reply *reply)
{
    struct MHD_Response *response =
        http->response_new(reply->body.size_bytes, reply->body.text, MHD_RESPMEM_MUST_COPY);
    if (response == NULL) return MHD_NO;
    (void)http->header(response, "Content-Type", reply->type);
    enum MHD_Result result = http->queue(connection, (unsigned)reply->status, response);
    http->response_free(response);
    return result;
}

/* Pages get the path as it came: only they know where an escaped slash belongs. */
static size_t keep_escapes(void *context, struct MHD_Connection *connection, char *text)
{
    return strlen(text);
}

static enum MHD_Result asked(void *context,
                             struct MHD_Connection *connection,
                             const char *url,
                             const char *method,
                             const char *version,
                             const char *upload,
                             size_t *upload_size,
                             void **request)
{
    struct console_http *http = context;
    struct console_reply reply = {0};
    (void)version;
    (void)upload;
    if (*request == NULL) { /* The first call has the head only. */
        *request = http;
        return MHD_YES;
    }
    if (*upload_size > 0) { /* Bytes that nobody wants; answered when they are all there. */
        *upload_size = 0;
        return MHD_YES;
    }
    struct mem mem;
    memory_init(&mem, HTTP_BODY_MAX);
    if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0) {
        page_make(http->console, url, &mem, &reply);
    } else {
        out_init(&reply.body, &mem);
        reply.status = 405;
        reply.type = "text/plain; charset=utf-8";
        out_text(&reply.body, "only GET and HEAD are served\n");
    }
    enum MHD_Result result = answer(http, connection, &reply);
    out_free(&reply.body);
    return result;
}

static bool load(struct console_http *http)
{
#ifdef DOHLE_STATIC
    return false; /* A shared library would bring a second libc into a program that has its own. */
#endif
    static const char *const names[] = {"libmicrohttpd.so.12", "libmicrohttpd.so"};
    for (size_t i = 0; i < ARRAY_SIZE(names) && http->library == NULL; i++)
        http->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (http->library == NULL) return false;
    struct {
        const char *name;
        void *place;
    } const symbols[] = {
        {"MHD_start_daemon",                &http->start        },
        {"MHD_stop_daemon",                 &http->stop         },
        {"MHD_create_response_from_buffer", &http->response_new },
        {"MHD_add_response_header",         &http->header       },
        {"MHD_queue_response",              &http->queue        },
        {"MHD_destroy_response",            &http->response_free},
    };
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        void *found = dlsym(http->library, symbols[i].name);
        if (found == NULL) return false;
        memcpy(symbols[i].place, &found,
               sizeof(found)); /* C has no cast from object to function. */
    }
    return true;
}

static struct MHD_Daemon *daemon_start(struct console_http *http, int fd)
{
    return http->start(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL, asked, http,
                       MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                       (unsigned)HTTP_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
                       (unsigned)HTTP_IDLE_S, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
                       MHD_OPTION_END);
}

struct console_http *http_start(struct console *console)
{
    struct console_http *http = calloc(1, sizeof(*http));
    if (http == NULL) return NULL;
    http->console = console;
    bool fine = load(http);
    for (size_t i = 0; i < ARRAY_SIZE(console->fds) && fine; i++) {
        if (console->fds[i] < 0) continue;
        http->daemons[i] = daemon_start(http, console->fds[i]);
        fine = http->daemons[i] != NULL;
    }
    if (fine) return http;
    http_stop(http);
    return NULL;
}

void http_stop(struct console_http *http)
{
    if (http == NULL) return;
    for (size_t i = 0; i < ARRAY_SIZE(http->daemons); i++)
        if (http->daemons[i] != NULL) {
            http->stop(http->daemons[i]); /* Closes the listening descriptor. */
            http->console->fds[i] = -1;
        }
    /* The library stays mapped: threads of its own libraries may not be done with it. */
    free(http);
}
