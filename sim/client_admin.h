/* client_admin.h - creates the topics of a run and sets its quotas, then lists the topics. */
#pragma once

#include "sim/client.h"

#define CLIENT_MEMBER_ID "member" /* The client id of members: quotas are set for it. */

struct client_admin {
    struct client client;
    double request_percentage; /* Of CLIENT_MEMBER_ID, while the storm lasts; 0: no quota. */
    bool lifts;                /* What it asked for last: to take the quota away. */
    bool limited, lifted;      /* Acknowledged. */
};

struct client_admin *client_admin_new(const struct client_seat *seat);
