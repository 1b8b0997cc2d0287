"""Quotas, SCRAM credentials, replicas, elections, features, directories: what administrators ask. Then frames that are wrong."""
import struct

import kmsg
from batches import batch
from scripts.records import produce
from scripts.topics import made, topic


def script_quotas(side):
    def entity(*parts):
        return [{"EntityType": kind, "EntityName": name} for kind, name in parts]

    def named(answer):
        """Entries and values have no order: each by its name."""
        for entry in answer.get("Entries") or ():
            entry["Entity"] = {part["EntityType"]: part["EntityName"] for part in entry["Entity"]}
            entry["Name"] = str(sorted((kind, name or "") for kind, name in entry["Entity"].items()))
            for value in entry.get("Values", ()):
                value["Name"] = value["Key"]
        return answer

    def alter(version, *entries, only=False):
        asked = {"ValidateOnly": only, "Entries": [{"Entity": entity(*who), "Ops": [{"Key": k, "Value": float(v), "Remove": r} for k, v, r in ops]} for who, ops in entries]}
        side.note(side.label("AlterClientQuotas", version, asked), named(side.ask("AlterClientQuotas", version, asked, quiet=True)))

    def show(label, version=1, strict=False, *components):
        asked = {"Strict": strict, "Components": [{"EntityType": k, "MatchType": m, "Match": n} for k, m, n in components]}
        side.note(f"quotas {label} {components}", named(side.ask("DescribeClientQuotas", version, asked, quiet=True)))
    rate = ("producer_byte_rate", 100000, False)
    user = (("user", "ann"),)
    for version in (0, 1):
        alter(version, (user, [rate]))
        for ops in ([("no_such", 1, False)], [("producer_byte_rate", 0, False)], [("producer_byte_rate", -1, False)], [("producer_byte_rate", 1.5, False)], [("request_percentage", 0.5, False)],
                    [("controller_mutation_rate", 0.5, False)], [("connection_creation_rate", 5, False)], [("no_such", 0, True)], [("producer_byte_rate", 0, True)], [rate, rate], []):
            alter(version, (user, ops), only=True)
        for who in ((), (("user", ""),), (("client-id", ""),), (("nobody", "x"),), (("user", "a"), ("user", "b")), (("ip", "127.0.0.9"),), (("ip", "x"),), (("ip", "127.0.0.9"), ("user", "a")), (("", "x"),),
                    (("ip", "unknown.host.invalid"),), (("user", None),), (("user", None), ("client-id", None)), (("ip", None),)):
            alter(version, (who, [rate]), only=True)
            alter(version, (who, [("connection_creation_rate", 5, False)]), only=True)
        alter(version, (user, [rate]), (user, [rate]), only=True)
        alter(version)
    alter(1, ((("user", "ann"), ("client-id", "x")), [rate]), ((("user", None),), [rate]), ((("client-id", None),), [rate, ("request_percentage", 50, False)]), ((("ip", "127.0.0.9"),), [("connection_creation_rate", 5, False)]),
          ((("user", "ann"), ("client-id", None)), [rate]))
    side.until(lambda a: a["Entries"] and len(a["Entries"]) >= 6, "DescribeClientQuotas", 1, {}, quiet=True)
    for version in (0, 1):
        for strict in (False, True):
            for components in ((), (("user", 0, "ann"),), (("user", 1, None),), (("user", 2, None),), (("client-id", 2, None),), (("user", 0, "ann"), ("client-id", 2, None)), (("ip", 2, None),), (("ip", 0, "127.0.0.9"),),
                               (("user", 2, None), ("ip", 2, None)), (("nobody", 2, None),), (("user", 3, None),), (("user", 0, None),), (("user", 1, "x"),), (("user", 0, "a"), ("user", 0, "b")), (("", 2, None),)):
                show(f"v{version} strict={strict}", version, strict, *components)


def script_scram(side):
    salt, salted = b"0123456789abcde", b"x" * 32

    def alter(put=(), drop=()):
        side.ask("AlterUserScramCredentials", 0, {"Upsertions": [{"Name": n, "Mechanism": m, "Iterations": i, "Salt": s, "SaltedPassword": p} for n, m, i, s, p in put],
                                                  "Deletions": [{"Name": n, "Mechanism": m} for n, m in drop]})
    alter([("ann", 1, 4096, salt, salted), ("bob", 2, 8192, salt, salted)])
    for put in (("", 1, 4096, salt, salted), ("cat", 0, 4096, salt, salted), ("cat", 3, 4096, salt, salted), ("cat", 1, 4095, salt, salted), ("cat", 1, 16385, salt, salted), ("cat", 1, 0, salt, salted), ("cat", 2, 4096, salt, salted),
                ("cat", 1, 4096, b"", salted)):
        alter([put])
    alter([("dan", 1, 4096, salt, salted), ("dan", 1, 4096, salt, salted)])
    alter([("dan", 1, 4096, salt, salted)], [("dan", 1)])
    alter([("", 1, 4096, salt, salted)], [("", 1)])
    alter(drop=[("no-such", 1)])
    alter(drop=[("ann", 2), ("", 1), ("ann", 0)])
    alter()
    side.until(lambda a: len(a["Results"]) >= 2, "DescribeUserScramCredentials", 0, {"Users": None}, quiet=True)
    for users in (None, [], ["ann"], ["ann", "bob"], ["no-such"], ["no-such", "nor-this"], ["ann", "ann"], [""]):
        side.ask("DescribeUserScramCredentials", 0, {"Users": None if users is None else [{"Name": u} for u in users]})
    alter(drop=[("ann", 1), ("bob", 2)])


def script_replicas(side):
    made(side, topic("moved", 2))

    def move(*parts, version=0, name="moved", **more):
        side.ask("AlterPartitionReassignments", version, {"TimeoutMs": 10000, "Topics": [{"Name": name, "Partitions": [{"PartitionIndex": p, "Replicas": r} for p, r in parts]}], **more})
    for version in (0, 1):
        for replicas in ([1], [2], [1, 2], [1, 1], [], None, [-1], [1, -1]):
            move((0, replicas), version=version)
        move((0, [1]), (1, [1]), (2, [1]), (-1, None), version=version)
        move((0, [1]), name="no-such", version=version)
        move((0, None), name="no-such", version=version)
        move((0, [1]), name="", version=version)
        move(version=version)
        if version:
            move((0, [1]), version=version, AllowReplicationFactorChange=False)
            move((0, [1, 2]), version=version, AllowReplicationFactorChange=False)
    for topics in (None, [], [{"Name": "moved", "PartitionIndexes": [0, 9]}], [{"Name": "no-such", "PartitionIndexes": [0]}], [{"Name": "moved", "PartitionIndexes": []}]):
        side.ask("ListPartitionReassignments", 0, {"TimeoutMs": 10000, "Topics": topics})
    for version in range(3):
        for kind in ((0, 1, 2, -1) if version else (0,)):
            for parts in ([0], [0, 1], [9], [-1], []):
                side.ask("ElectLeaders", version, {"TimeoutMs": 10000, **({"ElectionType": kind} if version else {}), "TopicPartitions": [{"Topic": "moved", "Partitions": parts}]})
            side.ask("ElectLeaders", version, {"TimeoutMs": 10000, **({"ElectionType": kind} if version else {}), "TopicPartitions": [{"Topic": "no-such", "Partitions": [0]}]})
            side.ask("ElectLeaders", version, {"TimeoutMs": 10000, **({"ElectionType": kind} if version else {}), "TopicPartitions": []})


def script_directories(side):
    made(side, topic("stored", 2))
    for i in range(2):
        produce(side, "stored", batch(), partition=i, quiet=True)
    for version in range(1, 6):
        for topics in ([{"Topic": "stored", "Partitions": [0, 1]}], [{"Topic": "stored", "Partitions": [0, 7]}], [{"Topic": "no-such", "Partitions": [0]}], [{"Topic": "stored", "Partitions": []}], []):
            asked = {"Topics": topics}
            answer = side.ask("DescribeLogDirs", version, asked, quiet=True)
            for result in answer["Results"]:  # A topic may come in several entries.
                parts = {}
                for entry in result["Topics"]:
                    parts.setdefault(entry["Name"], []).extend(entry["Partitions"])
                result["Topics"] = [{"Name": name, "Partitions": found} for name, found in parts.items()]
            side.note(side.label("DescribeLogDirs", version, asked), answer)


def script_moves(side):
    """Between log directories, of which there is one: every refusal, and the one it is in."""
    made(side, topic("stays", 2))
    produce(side, "stays", batch(), quiet=True)
    here = side.ask("DescribeLogDirs", 4, {"Topics": None}, quiet=True)["Results"][0]["LogDir"]
    for version in (1, 2):
        for path in ("/no/such/directory", "", "relative", here + "/", here):
            for name, parts in (("stays", [0, 1]), ("stays", [0, 9]), ("stays", [-1]), ("no-such", [0]), ("x" * 215, [0]), ("x" * 206, [0]), ("x" * 205, [0]), ("", [0]), ("bad/name", [0]), ("stays", [])):
                side.ask("AlterReplicaLogDirs", version, {"Dirs": [{"Path": path, "Topics": [{"Name": name, "Partitions": parts}]}]})
        side.ask("AlterReplicaLogDirs", version, {"Dirs": []})
        side.ask("AlterReplicaLogDirs", version, {"Dirs": [{"Path": "/no/such/directory", "Topics": []}]})
        side.ask("AlterReplicaLogDirs", version, {"Dirs": [{"Path": "/no/such/directory", "Topics": [{"Name": "stays", "Partitions": [0]}]}, {"Path": "/another", "Topics": [{"Name": "stays", "Partitions": [1]}]}]})


def script_features(side):
    def update(*features, version=1, only=True):
        side.ask("UpdateFeatures", version, {"timeoutMs": 10000, "FeatureUpdates": [{"Feature": f, "MaxVersionLevel": level, **({"UpgradeType": kind} if version else {"AllowDowngrade": kind > 1})}
                                                                                      for f, level, kind in features], **({"ValidateOnly": only} if version else {})})
    for version in (1, 2):
        for name, level, kind in (("metadata.version", 99, 1), ("metadata.version", 1, 1), ("metadata.version", 1, 2), ("metadata.version", 0, 2), ("metadata.version", -1, 1), ("no.such", 1, 1), ("no.such", 0, 2), ("group.version", 1, 1),
                                  ("group.version", 5, 1), ("group.version", 1, 0), ("group.version", 1, 4), ("kraft.version", 1, 1), ("kraft.version", 0, 2), ("", 1, 1)):
            update((name, level, kind), version=version)
        update(("group.version", 1, 1), ("no.such", 1, 1), version=version)
        update(version=version)
    for broker in (7, -1):
        side.ask("UnregisterBroker", 0, {"BrokerId": broker})


def script_acls(side):
    """No authorizer at either."""
    anything = {"ResourceTypeFilter": 1, "ResourceNameFilter": None, "PatternTypeFilter": 1, "PrincipalFilter": None, "HostFilter": None, "Operation": 1, "PermissionType": 1}
    one = {"ResourceType": 2, "ResourceName": "x", "ResourcePatternType": 3, "Principal": "User:a", "Host": "*", "Operation": 3, "PermissionType": 3}
    for version in (1, 2, 3):
        side.ask("DescribeAcls", version, anything, on="controller")
        side.ask("CreateAcls", version, {"Creations": [one]}, on="controller")
        side.ask("CreateAcls", version, {"Creations": []}, on="controller")
        side.ask("DeleteAcls", version, {"Filters": [anything]}, on="controller")


def script_controller(side):
    """The controller's own listener."""
    for version in range(6):
        more = {"ClientSoftwareName": "some-client", "ClientSoftwareVersion": "1.0"} if version >= 3 else {}
        answer = side.ask("ApiVersions", version, more, on="controller", quiet=True)
        side.note(f"ApiVersions v{version} of the controller", {**answer, "ApiKeys": {str(k["ApiKey"]): k for k in answer["ApiKeys"]}, "SupportedFeatures": [], "FinalizedFeatures": []})
    for version in range(3):
        for kind in (1, 2, 0, 3) if version else (1,):
            side.ask("DescribeCluster", version, {"EndpointType": kind} if version else {}, on="controller")
    side.ask("DescribeQuorum", 2, {"Topics": [{"TopicName": "no-such", "Partitions": [{"PartitionIndex": 0}]}]}, on="controller")
    side.ask("CreateTopics", 7, {"Topics": [topic("by-controller")], "timeoutMs": 10000}, on="controller")
    side.ask("CreateTopics", 7, {"Topics": [topic("by-controller")], "timeoutMs": 10000}, on="controller")
    side.ask("CreatePartitions", 3, {"Topics": [{"Name": "by-controller", "Count": 3, "Assignments": None}], "TimeoutMs": 10000}, on="controller")
    side.ask("IncrementalAlterConfigs", 1, {"Resources": [{"ResourceType": 2, "ResourceName": "by-controller", "Configs": [{"Name": "retention.ms", "ConfigOperation": 0, "Value": "1000"}]}]}, on="controller")
    side.ask("IncrementalAlterConfigs", 1, {"Resources": [{"ResourceType": 4, "ResourceName": "1", "Configs": [{"Name": "node.id", "ConfigOperation": 0, "Value": "9"}]}]}, on="controller")
    side.ask("DeleteTopics", 6, {"Topics": [{"Name": "by-controller"}], "TimeoutMs": 10000}, on="controller")
    for api, version, values in (("Metadata", 12, {}), ("Produce", 9, {}), ("FindCoordinator", 3, {"Key": "x"}), ("ListOffsets", 7, {})):
        side.ask(api, version, values, on="controller")
    side.ask("Fetch", 12, {"ReplicaId": -1, "Topics": [{"Topic": "x", "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 100}]}]}, on="controller")


def script_frames(side):
    """Requests that no server serves: unknown keys and versions, bodies that end too early or too late."""
    for key in (4, 5, 6, 7, 58, 59, 95, 96, 200, -1):
        side.raw(f"key {key}", struct.pack(">hhih", key, 0, 1, 1) + b"x" + bytes(40))
    for name, key in (("Metadata", 3), ("Fetch", 1), ("ListOffsets", 2), ("CreateTopics", 19), ("ApiVersions", 18)):
        for version in (-1, 99, 32767):
            side.raw(f"{name} v{version}", struct.pack(">hhih", key, version, 1, 1) + b"x" + bytes(40))
    for api, version, values in (("Metadata", 12, {"Topics": None}), ("DescribeCluster", 0, {}), ("ListOffsets", 5, {}), ("CreateTopics", 7, {"Topics": [topic("frames")]}), ("FindCoordinator", 4, {"CoordinatorKeys": ["x"]})):
        data = kmsg.request_bytes(api, version, values)
        for cut in range(1, 8):
            side.raw(f"{api} v{version} without {cut}", data[:-cut])
    side.raw("empty", b"")
    for size in range(1, 8):
        side.raw(f"{size} bytes", bytes(size))
    side.raw("a client id that is longer than the frame", struct.pack(">hhih", 3, 1, 1, 100) + b"x")
    side.raw("too many topics", struct.pack(">hhihi", 3, 1, 1, -1, 2147483647))
