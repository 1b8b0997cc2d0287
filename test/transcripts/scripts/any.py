"""Every API that both serve, at every version: with nothing in the request, with one empty element in each array, with nulls."""
import kmsg

from scripts.groups import ready

# They change what the other scripts see, or wait long.
APART = {"Fetch", "Produce", "ApiVersions", "JoinGroup", "UnregisterBroker", "InitProducerId", "AddRaftVoter", "RemoveRaftVoter", "BrokerRegistration", "BrokerHeartbeat"}


def values(fields, form, kind):
    out = {}
    for field in fields:
        if not kmsg.within(field["versions"], form.version):
            continue
        inner = field["type"].removeprefix("[]")
        null = kmsg.within(field.get("nullableVersions"), form.version)
        if kind == "null" and null and not field["name"] == "Records":
            out[field["name"]] = None
        elif kind == "one" and field["type"].startswith("[]"):
            struct = inner in form.common or "fields" in field
            out[field["name"]] = [values(form.struct_of(field, inner), form, kind) if struct else
                                  "" if inner == "string" else bytes(16) if inner == "uuid" else b"" if inner in ("bytes", "records") else 0]
        elif field.get("default") == "null" and not null:
            out[field["name"]] = [] if field["type"].startswith("[]") else ""
    return out


def every(side, kind):
    apis = {key: name for name, key in kmsg.keys().items()}
    for key, (oldest, newest) in side.common.items():
        name = apis.get(key)
        if name in APART:
            continue
        for version in range(oldest, newest + 1):
            form = kmsg.Form(name + "Request", version)
            side.ask(name, version, values(form.schema["fields"], form, kind))


def script_empty(side):
    ready(side)
    every(side, "empty")


def script_one_of_each(side):
    every(side, "one")


def script_null(side):
    every(side, "null")
