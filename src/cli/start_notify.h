/* start_notify.h - telling the service manager how far a server is (systemd's Type=notify). */
#pragma once

/* Send a state ("READY=1", "STOPPING=1") to the socket that NOTIFY_SOCKET names; nothing, if there
 * is none. A failure is no reason for anything: the manager then waits until its limit. */
void start_notify(const char *state);
