/* handlers.c - every API that this build serves, and the memory of all handlers.
 *
 * What has no row here is not advertised and is refused as Kafka refuses what it does not know.
 * Ranges are those of Apache Kafka 4.4. */
#include <stdarg.h>
#include <stdio.h>

#include "broker/broker.h"
#include "broker/raft.h"

#define BOTH (WIRE_BROKER | WIRE_CONTROLLER)

const struct net_handler broker_handlers[] = {
  /* key, from, to, advertised from, listeners, handler */
    {0,  0, 13, 0, WIRE_BROKER,     handle_produce                        },
    {1,  0, 18, 4, BOTH,            handle_fetch                          },
    {2,  0, 11, 1, WIRE_BROKER,     handle_list_offsets                   },
    {3,  0, 13, 0, WIRE_BROKER,     handle_metadata                       },
    {8,  0, 10, 2, WIRE_BROKER,     handle_offset_commit                  },
    {9,  0, 10, 1, WIRE_BROKER,     handle_offset_fetch                   },
    {10, 0, 6,  0, WIRE_BROKER,     handle_find_coordinator               },
    {11, 0, 9,  0, WIRE_BROKER,     handle_join_group                     },
    {12, 0, 4,  0, WIRE_BROKER,     handle_heartbeat                      },
    {13, 0, 5,  0, WIRE_BROKER,     handle_leave_group                    },
    {14, 0, 5,  0, WIRE_BROKER,     handle_sync_group                     },
    {15, 0, 6,  0, WIRE_BROKER,     handle_describe_groups                },
    {16, 0, 5,  0, WIRE_BROKER,     handle_list_groups                    },
    {19, 0, 7,  2, BOTH,            handle_forwarded                      },
    {20, 0, 6,  1, BOTH,            handle_forwarded                      },
    {21, 0, 2,  0, WIRE_BROKER,     handle_delete_records                 },
    {22, 0, 5,  0, WIRE_BROKER,     handle_init_producer_id               },
    {23, 0, 4,  2, WIRE_BROKER,     handle_offset_for_leader_epoch        },
    {29, 1, 3,  1, WIRE_CONTROLLER, handle_forwarded                      },
    {30, 1, 3,  1, WIRE_CONTROLLER, handle_forwarded                      },
    {31, 1, 3,  1, WIRE_CONTROLLER, handle_forwarded                      },
    {32, 0, 4,  1, BOTH,            handle_describe_configs               },
    {33, 0, 2,  0, BOTH,            handle_forwarded                      },
    {34, 0, 2,  1, WIRE_BROKER,     handle_alter_replica_log_dirs         },
    {35, 0, 5,  1, WIRE_BROKER,     handle_describe_log_dirs              },
    {37, 0, 3,  0, BOTH,            handle_forwarded                      },
    {38, 1, 3,  1, BOTH,            handle_delegation_token               },
    {39, 1, 2,  1, BOTH,            handle_delegation_token               },
    {40, 1, 2,  1, BOTH,            handle_delegation_token               },
    {41, 1, 3,  1, WIRE_BROKER,     handle_delegation_token               },
    {42, 0, 3,  0, WIRE_BROKER,     handle_delete_groups                  },
    {43, 0, 2,  0, BOTH,            handle_forwarded                      },
    {44, 0, 1,  0, BOTH,            handle_incremental_alter_configs      },
    {45, 0, 1,  0, BOTH,            handle_forwarded                      },
    {46, 0, 0,  0, BOTH,            handle_forwarded                      },
    {47, 0, 0,  0, WIRE_BROKER,     handle_offset_delete                  },
    {48, 0, 1,  0, WIRE_BROKER,     handle_describe_client_quotas         },
    {49, 0, 1,  0, BOTH,            handle_forwarded                      },
    {50, 0, 0,  0, WIRE_BROKER,     handle_describe_user_scram_credentials},
    {51, 0, 0,  0, BOTH,            handle_forwarded                      },
    {52, 0, 2,  0, WIRE_CONTROLLER, raft_handle_vote                      },
    {53, 0, 1,  0, WIRE_CONTROLLER, raft_handle_begin_epoch               },
    {54, 0, 1,  0, WIRE_CONTROLLER, raft_handle_end_epoch                 },
    {55, 0, 2,  0, BOTH,            handle_forwarded                      },
    {56, 2, 3,  2, WIRE_CONTROLLER, handle_forwarded                      },
    {57, 0, 2,  0, BOTH,            handle_forwarded                      },
    {58, 0, 0,  0, WIRE_CONTROLLER, handle_envelope                       },
    {59, 0, 1,  0, WIRE_CONTROLLER, raft_handle_fetch_snapshot            },
    {60, 0, 2,  0, BOTH,            handle_describe_cluster               },
    {61, 0, 0,  0, WIRE_BROKER,     handle_describe_producers             },
    {62, 0, 4,  0, WIRE_CONTROLLER, handle_forwarded                      },
    {63, 0, 2,  0, WIRE_CONTROLLER, handle_forwarded                      },
    {64, 0, 0,  0, BOTH,            handle_forwarded                      },
    {67, 0, 0,  0, WIRE_CONTROLLER, handle_forwarded                      },
    {70, 0, 0,  0, WIRE_CONTROLLER, handle_forwarded                      },
    {73, 0, 0,  0, WIRE_CONTROLLER, handle_forwarded                      },
    {68, 0, 1,  0, WIRE_BROKER,     handle_consumer_group_heartbeat       },
    {69, 0, 1,  0, WIRE_BROKER,     handle_consumer_group_describe        },
    {71, 0, 0,  0, WIRE_BROKER,     handle_get_telemetry_subscriptions    },
    {72, 0, 0,  0, WIRE_BROKER,     handle_push_telemetry                 },
    {74, 0, 1,  0, WIRE_BROKER,     handle_list_config_resources          },
    {75, 0, 0,  0, WIRE_BROKER,     handle_describe_topic_partitions      },
    {80, 0, 1,  0, BOTH,            handle_forwarded                      },
    {81, 0, 0,  0, BOTH,            handle_forwarded                      },
    {82, 0, 0,  0, WIRE_CONTROLLER, handle_forwarded                      },
    {94, 0, 0,  0, BOTH,            handle_forwarded                      },
};
const uint32_t broker_handler_count = ARRAY_SIZE(broker_handlers);

void *broker_array(struct request *request, size_t count, size_t size)
{
    if (count == 0 || size > SIZE_MAX / count) return NULL;
    return arena_get(&request->arena, count * size);
}

void *broker_response(struct request *request)
{
    void *response = request_response(request);
    if (response == NULL) request_close(request, "no memory for an answer");
    return response;
}

void broker_answer(struct request *request, void *response, bool made)
{
    if (made)
        request_reply(request, response);
    else
        request_close(request, "no memory for an answer");
}

struct view broker_text(struct request *request, const char *format, ...)
{
    char line[512];
    va_list list;
    va_start(list, format);
    int size = vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    if (size < 0) return VIEW_EMPTY;
    return arena_copy(&request->arena,
                      view_of(line, (uint32_t)MIN((size_t)size, sizeof(line) - 1)));
}
