/* auth.c - may this principal do that? Asked by every handler; there is no authorizer yet. */
#include "broker/broker.h"

bool auth_allows(const struct request *request,
                 enum auth_operation operation,
                 enum auth_resource resource,
                 struct view name)
{
    (void)request;
    (void)operation;
    (void)resource;
    (void)name;
    return true;
}

bool auth_is_broker(const struct request *request)
{
    return auth_allows(request, AUTH_CLUSTER_ACTION, AUTH_CLUSTER, VIEW("kafka-cluster"));
}
