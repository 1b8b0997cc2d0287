"""Making, changing, deleting and showing topics."""
CREATE_VERSIONS = (2, 3, 4, 5, 6, 7)


def topic(name, partitions=1, replicas=1, **more):
    return {"Name": name, "NumPartitions": partitions, "ReplicationFactor": replicas, **more}


def config(name, value):
    return {"Name": name, "Value": value}


def create(side, *topics, version=7, timeout=10000, **more):
    return side.ask("CreateTopics", version, {"Topics": list(topics), "timeoutMs": timeout, **more})


def made(side, *topics):
    """Topics that a script needs; the answer is not what it is about, but they are seen when it goes on."""
    side.ask("CreateTopics", 7, {"Topics": list(topics), "timeoutMs": 10000}, quiet=True)
    seen(side, *(t["Name"] for t in topics))


def seen(side, *names):
    """Known to the broker, and led: each partition tells its end."""
    answer = side.until(lambda a: all(t["ErrorCode"] == 0 and all(p["LeaderId"] >= 0 for p in t["Partitions"]) for t in a["Topics"]),
               "Metadata", 12, {"Topics": [{"Name": name} for name in names], "AllowAutoTopicCreation": False}, on="seen", quiet=True)
    for found in answer["Topics"]:
        parts = [{"PartitionIndex": p["PartitionIndex"], "CurrentLeaderEpoch": -1, "Timestamp": -1} for p in found["Partitions"]]
        side.until(lambda a: all(p["ErrorCode"] == 0 for p in a["Topics"][0]["Partitions"]), "ListOffsets", 7,
                   {"ReplicaId": -1, "Topics": [{"Name": found["Name"], "Partitions": parts}]}, on="seen", quiet=True)


def gone(side, *names):
    side.until(lambda a: all(t["ErrorCode"] == 3 for t in a["Topics"]),
               "Metadata", 12, {"Topics": [{"Name": name} for name in names], "AllowAutoTopicCreation": False}, on="seen")


def by_name(items, name):
    return {str(item[name]): item for item in items}


def script_versions(side):
    answer = side.ask("ApiVersions", 0, {}, quiet=True)
    side.note("ApiVersions v0", {**answer, "ApiKeys": by_name(answer["ApiKeys"], "ApiKey")})
    for version in range(1, 6):
        more = {"ClientSoftwareName": "some-client", "ClientSoftwareVersion": "1.0"} if version >= 3 else {}
        answer = side.ask("ApiVersions", version, more, quiet=True)
        side.note(f"ApiVersions v{version}", {**answer, "ApiKeys": by_name(answer["ApiKeys"], "ApiKey"), "FinalizedFeatures": by_name(
            answer.get("FinalizedFeatures", ()), "Name"), "SupportedFeatures": by_name(answer.get("SupportedFeatures", ()), "Name")})
    for name, number in (("", "1"), ("x", ""), ("-x", "1"), ("x", "1-"), ("a b", "1"), ("x.y-z", "1.2-rc.3"), ("ä", "1"), ("x" * 200, "1")):
        answer = side.ask("ApiVersions", 3, {"ClientSoftwareName": name, "ClientSoftwareVersion": number}, quiet=True)
        side.note(f"ApiVersions of client {name[:9]} {number}", {"ErrorCode": answer.get("ErrorCode"), "keys": bool(answer.get("ApiKeys"))})
    about = side.ask("Metadata", 12, {"Topics": []}, quiet=True)
    right, itself = about["ClusterId"], about["Brokers"][0]["NodeId"]
    for cluster, node in ((None, -1), ("wrong", -1), (None, 1), (None, 7), ("wrong", 7), (right, -1), (right, itself), (right, 7)):
        answer = side.ask("ApiVersions", 5, {"ClientSoftwareName": "a", "ClientSoftwareVersion": "1", "ClusterId": cluster, "NodeId": node}, quiet=True)
        side.note(f"ApiVersions to {'the right one' if cluster == right else cluster} {node}", {"ErrorCode": answer.get("ErrorCode"), "keys": bool(answer.get("ApiKeys"))})


def script_create(side):
    for version in CREATE_VERSIONS:
        create(side, topic(f"create-{version}", 2), version=version)
        create(side, topic(f"create-{version}", 2), version=version)
        create(side, topic(f"create-set-{version}", 1, Configs=[config("cleanup.policy", "compact"), config("retention.ms", "1000")]),
               topic(f"create-wrong-{version}", 0), version=version)
    for version in (4, 5, 7):
        create(side, topic(f"create-default-{version}", -1, -1), version=version)
    create(side, topic("create-default-3", -1, -1), version=3)
    create(side)
    create(side, topic("same", 1), topic("same", 2), topic("other", 1))
    create(side, topic("create-now", 1), timeout=0)
    create(side, topic("create-before", 1), timeout=-1)
    made(side, topic("create-after"))  # What ran out of time was not done.
    side.ask("Metadata", 12, {"Topics": [{"Name": "create-now"}, {"Name": "create-before"}], "AllowAutoTopicCreation": False})
    for count, replicas in ((0, 1), (-2, 1), (1, 0), (1, -2), (1, 2), (1, 32767), (-1, 1), (1, -1), (100001, 1), (-1, 2)):
        create(side, topic(f"numbers{count}x{replicas}", count, replicas), validateOnly=True)


def script_create_names(side):
    for name in ("", ".", "..", "a b", "a/b", "ä", "x" * 249, "x" * 250, "a.b", "a_b", "_", "-", "A", "a:b", "a\u0000", "__consumer_offsets",
                 "__transaction_state", "__share_group_state", "__cluster_metadata"):
        create(side, topic(name), validateOnly=True)
    made(side, topic("col.li.de"))
    create(side, topic("col_li.de"))
    create(side, topic("col_li_de"), topic("col.li.de"), validateOnly=True)
    create(side, topic("pair.x"), topic("pair_x"))


def script_create_assigned(side):
    def assigned(name, *parts, **more):
        return topic(name, -1, -1, Assignments=[{"PartitionIndex": p, "BrokerIds": b} for p, b in parts], **more)
    create(side, assigned("assigned-0", (0, [1]), (1, [1])))
    for i, parts in enumerate((((0, [1]), (2, [1])), ((1, [1]),), ((0, [2]),), ((0, []),), ((0, [1, 1]),), ((0, [1]), (0, [1])), ((0, [1, 2]),),
                               ((-1, [1]),), ((0, [1]), (1, [])), ((0, [-1]),), ((0, [1]), (1, [1, 2])))):
        create(side, assigned(f"assigned-bad-{i}", *parts))
    create(side, topic("assigned-and-count", 1, 1, Assignments=[{"PartitionIndex": 0, "BrokerIds": [1]}]))
    create(side, topic("assigned-and-count", 1, -1, Assignments=[{"PartitionIndex": 0, "BrokerIds": [1]}]))
    create(side, topic("assigned-and-count", -1, 1, Assignments=[{"PartitionIndex": 0, "BrokerIds": [1]}]))
    for version in CREATE_VERSIONS:
        create(side, assigned(f"assigned-v{version}", (0, [1])), version=version, validateOnly=True)


def script_create_configs(side):
    wrong = [("cleanup.policy", "delete,compact"), ("cleanup.policy", "none"), ("cleanup.policy", ""), ("retention.ms", "x"), ("retention.ms", "-1"),
             ("retention.ms", "-2"), ("retention.ms", None), ("no.such", "1"), ("segment.bytes", "1"), ("segment.bytes", "1048576"),
             ("segment.bytes", "999999999999"), ("max.message.bytes", "-1"), ("max.message.bytes", "0"), ("compression.type", "none"),
             ("compression.type", "lzma"), ("compression.type", "uncompressed"), ("compression.gzip.level", "10"), ("compression.zstd.level", "-200000"),
             ("compression.lz4.level", "18"), ("compression.gzip.level", "0"), ("compression.gzip.level", "-1"), ("min.cleanable.dirty.ratio", "1.1"), ("min.cleanable.dirty.ratio", "0.5"),
             ("message.timestamp.type", "Now"), ("message.timestamp.type", "LogAppendTime"), ("message.timestamp.before.max.ms", "-1"),
             ("message.timestamp.after.max.ms", "1"), ("min.insync.replicas", "0"), ("min.insync.replicas", "2"), ("unclean.leader.election.enable", "maybe"),
             ("unclean.leader.election.enable", "TRUE"), ("preallocate", "1"), ("remote.storage.enable", "true"), ("remote.storage.enable", "false"), ("local.retention.ms", "10"),
             ("local.retention.bytes", "-3"), ("retention.bytes", "-1"), ("flush.messages", "0"), ("flush.ms", "-1"), ("index.interval.bytes", "-1"),
             ("segment.index.bytes", "3"), ("segment.jitter.ms", "-1"), ("segment.ms", "0"), ("file.delete.delay.ms", "-1"), ("delete.retention.ms", "-1"),
             ("leader.replication.throttled.replicas", "*"), ("leader.replication.throttled.replicas", "x"), ("follower.replication.throttled.replicas", "0:1,1:2"),
             ("min.compaction.lag.ms", "-1"), ("max.compaction.lag.ms", "0"), ("message.format.version", "2.0"), ("message.downconversion.enable", "true"),
             ("retention.ms", " 5 "), ("retention.ms", "5.0"), ("retention.ms", "9223372036854775808"), ("remote.log.delete.on.disable", "true"), ("remote.log.copy.disable", "true"),
             ("segment.bytes", ""), ("internal.segment.bytes", "100"), ("errors.deadletterqueue.group.enable", "true"), ("", "1"),
             ("cleanup.policy", "delete,delete"), ("cleanup.policy", "delete,,compact"), ("segment.bytes", "1000"), ("message.format.version", "2.8")]
    for i, (name, value) in enumerate(wrong):
        create(side, topic(f"configs-{i}", 1, 1, Configs=[config(name, value)]), validateOnly=True)
    create(side, topic("configs-twice", 1, 1, Configs=[config("retention.ms", "1"), config("retention.ms", "2")]), validateOnly=True)
    create(side, topic("configs-both", 1, 1, Configs=[config("min.compaction.lag.ms", "10"), config("max.compaction.lag.ms", "5")]), validateOnly=True)
    create(side, topic("configs-two-wrong", 1, 1, Configs=[config("retention.ms", "x"), config("no.such", "5")]), validateOnly=True)
    create(side, topic("configs-local", 1, 1, Configs=[config("retention.ms", "10"), config("local.retention.ms", "20")]), validateOnly=True)
    create(side, topic("configs-local", 1, 1, Configs=[config("retention.bytes", "10"), config("local.retention.bytes", "20")]), validateOnly=True)


def script_create_shows_configs(side):
    """Version 5 on tells the configs of the topic that was made."""
    for version in (5, 6, 7):
        create(side, topic(f"shown-{version}", 1, 1, Configs=[config("retention.ms", "60000"), config("cleanup.policy", "compact,delete")]), version=version)
        create(side, topic(f"shown-only-{version}", 3, 1), version=version, validateOnly=True)


def script_delete(side):
    for version in range(1, 7):
        made(side, topic(f"delete-{version}"), topic(f"delete-more-{version}"))
        names = [f"delete-{version}", f"no-such-{version}", f"delete-more-{version}"]
        if version < 6:
            side.ask("DeleteTopics", version, {"TopicNames": names, "TimeoutMs": 10000})
        else:
            side.ask("DeleteTopics", version, {"Topics": [{"Name": name} for name in names], "TimeoutMs": 10000})
        gone(side, *names)
    made(side, topic("delete-id"), topic("delete-both"), topic("delete-twice"), topic("delete-never"))
    known = side.topic_id("delete-id")
    ask = lambda *topics: side.ask("DeleteTopics", 6, {"Topics": list(topics), "TimeoutMs": 10000})
    ask({"Name": None, "TopicId": known})
    ask({"Name": None, "TopicId": known})
    ask({"Name": None, "TopicId": b"0123456789abcdef"})
    ask({"Name": None})
    ask({"Name": "delete-both", "TopicId": side.topic_id("delete-both")})
    ask({"Name": "delete-twice"}, {"Name": "delete-twice"})
    ask({"Name": "delete-twice"}, {"Name": None, "TopicId": side.topic_id("delete-twice")})
    ask({"Name": ""}, {"Name": "a b"}, {"Name": "x" * 300})
    ask()
    side.ask("DeleteTopics", 5, {"TopicNames": ["delete-never", "delete-never"], "TimeoutMs": 10000})
    side.ask("DeleteTopics", 5, {"TopicNames": [], "TimeoutMs": 0})
    side.ask("DeleteTopics", 5, {"TopicNames": ["delete-never"], "TimeoutMs": 0})
    side.ask("DeleteTopics", 5, {"TopicNames": ["__cluster_metadata"], "TimeoutMs": 1000})


def script_partitions(side):
    made(side, topic("grow", 2), topic("grow-more", 1))

    def grow(*topics, version=3, only=False, timeout=10000):
        return side.ask("CreatePartitions", version, {"Topics": [{"Name": name, "Count": count, "Assignments": assigned} for name, count, assigned in topics],
                                                      "TimeoutMs": timeout, "ValidateOnly": only})
    for version in range(4):
        grow(("grow", 3 + version, None), version=version)
        grow(("grow", 3 + version, None), version=version)
        grow(("no-such", 9, None), version=version)
    seen(side, "grow")
    for count in (0, -1, 1, 6, 100000, 2147483647):
        grow(("grow", count, None), only=True)
    grow(("grow", 9, None), ("grow", 10, None))
    grow(("grow", 9, None), ("grow-more", 1, None), ("no-such", 1, None))
    grow()
    for brokers in ([[1]], [[2]], [[1, 2]], [[]], [], [[1, 1]], [[1], [1]], [[1], [1], [1]]):
        grow(("grow-more", 3, [{"BrokerIds": b} for b in brokers]), only=True)
    grow(("grow-more", 2, [{"BrokerIds": [1]}]))
    grow(("", 3, None), ("a b", 3, None))
    grow(("grow-more", 4, None), timeout=0)
    grow(("grow-more", 5, None), timeout=-5)
    grow(("__cluster_metadata", 4, None))


def script_metadata(side):
    made(side, topic("meta-a", 3), topic("meta-b", 1))
    for version in range(14):
        side.ask("Metadata", version, {"Topics": [{"Name": "meta-a"}, {"Name": "meta-b"}]})
        side.ask("Metadata", version, {"Topics": [{"Name": "meta-a"}, {"Name": "meta-a"}], "AllowAutoTopicCreation": False})
        answer = side.ask("Metadata", version, {"Topics": [] if version == 0 else None}, quiet=True)
        answer["Topics"] = [t for t in answer["Topics"] if t["Name"] in ("meta-a", "meta-b")]
        side.note(f"Metadata v{version} of all", answer)
        if version >= 1:
            side.ask("Metadata", version, {"Topics": []})
        if version >= 4:
            side.ask("Metadata", version, {"Topics": [{"Name": "no-such"}], "AllowAutoTopicCreation": False})
            side.ask("Metadata", version, {"Topics": [{"Name": "a b"}, {"Name": ""}, {"Name": "x" * 250}]})
        if version >= 8:
            side.ask("Metadata", version, {"Topics": [{"Name": "meta-b"}], "IncludeTopicAuthorizedOperations": True,
                                           **({"IncludeClusterAuthorizedOperations": True} if version <= 10 else {})})
    for version in (10, 11, 12, 13):
        side.ask("Metadata", version, {"Topics": [{"Name": None, "TopicId": side.topic_id("meta-a")}]})
        side.ask("Metadata", version, {"Topics": [{"Name": "meta-b", "TopicId": side.topic_id("meta-a")}]})
        side.ask("Metadata", version, {"Topics": [{"Name": None, "TopicId": b"0123456789abcdef"}]})
        side.ask("Metadata", version, {"Topics": [{"Name": None}]})
        side.ask("Metadata", version, {"Topics": [{"Name": None, "TopicId": side.topic_id("meta-a")}, {"Name": "meta-b"}]})
    for version in (0, 3, 4, 13):
        side.ask("Metadata", version, {"Topics": [{"Name": f"auto-{version}"}], "AllowAutoTopicCreation": True})
        seen(side, f"auto-{version}")
    side.ask("Metadata", 12, {"Topics": [{"Name": "auto-13"}, {"Name": "auto.13"}, {"Name": "auto_13"}], "AllowAutoTopicCreation": True})


def script_describe_partitions(side):
    made(side, topic("page-a", 3), topic("page-b", 2), topic("page-c", 4))

    def page(names, limit=2000, cursor=None):
        cursor = None if cursor is None else {"TopicName": cursor[0], "PartitionIndex": cursor[1]}
        return side.ask("DescribeTopicPartitions", 0, {"Topics": [{"Name": name} for name in names], "ResponsePartitionLimit": limit, "Cursor": cursor})
    names = ["page-b", "page-a", "page-c"]
    page(names)
    for limit in (1, 2, 3, 4, 8, 9, 10, 0, -1, 100000):
        page(names, limit)
    for cursor in (("page-a", 0), ("page-a", 2), ("page-a", 3), ("page-b", 1), ("page-c", 3), ("page-c", 4), ("page-d", 0), ("", 0), ("page-b", -1), ("page-aa", 0), ("page-b", 5)):
        page(names, 3, cursor)
    page(["no-such", "page-a"])
    page(["no-such", "page-a", "page-b"], 2)
    page(["a b", "page-a", ""])
    page(["page-a", "page-a"])
    page(["page-a"], 2, ("page-b", 0))


def script_cluster(side):
    for version in range(3):
        for kind in (1, 2, 0, 3):
            if version == 0 and kind != 1:
                continue
            side.ask("DescribeCluster", version, {**({"EndpointType": kind} if version else {}), **({"IncludeFencedBrokers": True} if version > 1 else {})})
            side.ask("DescribeCluster", version, {**({"EndpointType": kind} if version else {}), "IncludeClusterAuthorizedOperations": True})
