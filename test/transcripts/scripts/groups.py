"""Groups: coordinators, joining, syncing, beating and leaving by both protocols, offsets, what is told about them."""
import struct

from scripts.topics import gone, made, topic

BEFORE = {"GroupId": "before"}


def subscription(*topics, version=0):
    body = struct.pack(">hi", version, len(topics)) + b"".join(struct.pack(">h", len(t)) + t.encode() for t in topics)
    return body + struct.pack(">i", -1)


def ready(side):
    """The topic of offsets is there and loaded."""
    side.until(lambda a: a["ErrorCode"] == 0, "FindCoordinator", 3, {"Key": "g", "KeyType": 0}, on="ready", quiet=True)
    side.until(lambda a: a["ErrorCode"] == 25, "Heartbeat", 4, {"GroupId": "nobody", "MemberId": "m", "GenerationId": 1}, on="ready", quiet=True)


def script_find(side):
    ready(side)
    for version in range(4):
        for key in ("g", ""):
            for kind in (0, 1, 2, 3, -1):
                if version == 0 and kind:
                    continue
                if kind == 1:
                    continue  # No transactions here yet.
                side.ask("FindCoordinator", version, {"Key": key, **({"KeyType": kind} if version else {})})
    for version in range(4, 7):
        for kind in (0, 3, -1):
            for keys in (["g"], ["g", "h", "g"], [], [""]):
                side.ask("FindCoordinator", version, {"KeyType": kind, "CoordinatorKeys": keys})


def join(side, group, member="", version=9, on="a", kind="consumer", protocols=(("range", subscription("x")),), session=10000, rebalance=20000, instance=None, quiet=False, send=False):
    values = {"GroupId": group, "SessionTimeoutMs": session, "MemberId": member, "ProtocolType": kind,
              "Protocols": [{"Name": n, "Metadata": m} for n, m in protocols]}
    if version >= 1:
        values["RebalanceTimeoutMs"] = rebalance
    if version >= 5:
        values["GroupInstanceId"] = instance
    if send:
        side.send("JoinGroup", version, values, on=on)
        return values
    return side.ask("JoinGroup", version, values, on=on, quiet=quiet)


def sync(side, group, generation, member, version=5, on="a", assigned=(), kind="consumer", name="range", **more):
    values = {"GroupId": group, "GenerationId": generation, "MemberId": member, "Assignments": [{"MemberId": m, "Assignment": a} for m, a in assigned], **more}
    if version >= 5:
        values.update(ProtocolType=kind, ProtocolName=name)
    return side.ask("SyncGroup", version, values, on=on)


def script_classic_versions(side):
    """One member, from its join to its leave, by every version."""
    ready(side)
    for version in range(10):
        group = f"classic-{version}"
        answer = join(side, group, version=version)
        if answer["ErrorCode"] == 79:
            answer = join(side, group, answer["MemberId"], version=version)
        member = answer["MemberId"]
        sync(side, group, 1, member, version=min(version, 5), assigned=[(member, b"mine")])
        for beat in range(5):
            side.ask("Heartbeat", beat, {"GroupId": group, "GenerationId": 1, "MemberId": member})
        for described in range(7):
            side.ask("DescribeGroups", described, {"Groups": [group, "no-such-group", ""]})
        leave = min(version, 5)
        if leave < 3:
            side.ask("LeaveGroup", leave, {"GroupId": group, "MemberId": member})
            side.ask("LeaveGroup", leave, {"GroupId": group, "MemberId": member})
        else:
            side.ask("LeaveGroup", leave, {"GroupId": group, "Members": [{"MemberId": member}, {"MemberId": "nobody"}]})
            side.ask("LeaveGroup", leave, {"GroupId": group, "Members": [{"MemberId": member}]})
            side.ask("LeaveGroup", leave, {"GroupId": group, "Members": []})
        side.ask("DescribeGroups", 6, {"Groups": [group]})


def script_classic_refused(side):
    ready(side)
    member = join(side, "held", version=3)["MemberId"]
    sync(side, "held", 1, member, version=2, assigned=[(member, b"a")])
    for session in (0, -1, 1, 5999, 6000, 1800000, 1800001, 2147483647):
        join(side, f"session-{session}", session=session)
    join(side, "")
    join(side, "held", "nobody")
    join(side, "no-such-held", "nobody")
    join(side, "held", kind="connect")
    join(side, "held", kind="")
    join(side, "held", protocols=())
    join(side, "held", protocols=(("other", b""),))
    join(side, "held-new", kind="")
    join(side, "held-new", protocols=())
    join(side, "x" * 300, version=3)
    for version in (1, 4, 5, 9):
        join(side, "held", "nobody", version=version)
    for generation, who in ((0, member), (2, member), (-1, member), (1, "nobody"), (1, ""), (-1, "")):
        side.ask("Heartbeat", 4, {"GroupId": "held", "GenerationId": generation, "MemberId": who})
        sync(side, "held", generation, who)
    for group in ("", "no-such-held"):
        side.ask("Heartbeat", 4, {"GroupId": group, "GenerationId": 1, "MemberId": member})
        sync(side, group, 1, member)
        side.ask("LeaveGroup", 5, {"GroupId": group, "Members": [{"MemberId": member}]})
    sync(side, "held", 1, member, kind="connect")
    sync(side, "held", 1, member, name="other")
    sync(side, "held", 1, member, kind=None, name=None)
    sync(side, "held", 1, member)
    for instance in ("unknown", "", member):
        side.ask("Heartbeat", 4, {"GroupId": "held", "GenerationId": 1, "MemberId": member, "GroupInstanceId": instance})
    for generation in (2147483647, -2147483648):
        side.ask("Heartbeat", 4, {"GroupId": "held", "GenerationId": generation, "MemberId": "x" * 300})
    sync(side, "held", 1, member, GroupInstanceId="unknown")
    side.ask("LeaveGroup", 5, {"GroupId": "held", "Members": [{"MemberId": member, "GroupInstanceId": "unknown"}, {"MemberId": "", "GroupInstanceId": "unknown"}, {"MemberId": ""}]})
    side.ask("DeleteGroups", 2, {"GroupsNames": ["held", "no-such-held", "", "held"]})
    side.ask("DescribeGroups", 6, {"Groups": ["held"], "IncludeAuthorizedOperations": True})
    side.ask("LeaveGroup", 5, {"GroupId": "held", "Members": [{"MemberId": member}]})
    for version in range(3):
        side.ask("DeleteGroups", version, {"GroupsNames": ["held"]})
    side.ask("DeleteGroups", 2, {"GroupsNames": []})


def script_classic_static(side):
    ready(side)
    first = join(side, "static", instance="one", version=5)
    member = first["MemberId"]
    sync(side, "static", 1, member, assigned=[(member, b"a")], GroupInstanceId="one")
    side.ask("Heartbeat", 4, {"GroupId": "static", "GenerationId": 1, "MemberId": member, "GroupInstanceId": "one"})
    again = join(side, "static", instance="one", on="b")
    side.ask("Heartbeat", 4, {"GroupId": "static", "GenerationId": 1, "MemberId": member, "GroupInstanceId": "one"})
    side.ask("Heartbeat", 4, {"GroupId": "static", "GenerationId": 1, "MemberId": again["MemberId"], "GroupInstanceId": "one"})
    join(side, "static", member, instance="one")
    sync(side, "static", 1, member, GroupInstanceId="one")
    side.ask("OffsetCommit", 8, {"GroupId": "static", "GenerationIdOrMemberEpoch": 1, "MemberId": member, "GroupInstanceId": "one", "Topics": [{"Name": "x", "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 1}]}]})
    sync(side, "static", 1, again["MemberId"], GroupInstanceId="one")
    side.ask("DescribeGroups", 6, {"Groups": ["static"]})
    side.ask("LeaveGroup", 5, {"GroupId": "static", "Members": [{"MemberId": member, "GroupInstanceId": "one"}, {"MemberId": "", "GroupInstanceId": "one"}]})
    side.ask("DescribeGroups", 6, {"Groups": ["static"]})


def script_classic_two(side):
    """A second member, a rebalance, a leader that assigns, one that leaves."""
    ready(side)
    one = join(side, "two", version=3)["MemberId"]
    sync(side, "two", 1, one, assigned=[(one, b"all")])
    both = (("range", subscription("x")), ("roundrobin", b"r"))
    asked = join(side, "two", version=3, on="b", protocols=both, send=True)
    side.until(lambda a: a["ErrorCode"] == 27, "Heartbeat", 4, {"GroupId": "two", "GenerationId": 1, "MemberId": one})
    sync(side, "two", 1, one)
    side.ask("DescribeGroups", 6, {"Groups": ["two"]})
    side.ask("DeleteGroups", 2, {"GroupsNames": ["two"]})
    side.ask("OffsetCommit", 8, {"GroupId": "two", "GenerationIdOrMemberEpoch": 1, "MemberId": one, "Topics": [{"Name": "x", "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 1}]}]})
    join(side, "two", one, version=3, protocols=both)
    two = side.receive("JoinGroup", 3, asked, on="b")["MemberId"]
    asked = {"GroupId": "two", "GenerationId": 2, "MemberId": two, "Assignments": []}
    side.send("SyncGroup", 3, asked, on="b")
    sync(side, "two", 2, one, assigned=[(two, b"twice"), (one, b"left"), (two, b"right"), ("nobody", b"x")])
    side.receive("SyncGroup", 3, asked, on="b")
    side.ask("DescribeGroups", 6, {"Groups": ["two"]})
    side.ask("LeaveGroup", 5, {"GroupId": "two", "Members": [{"MemberId": two, "Reason": "done"}]})
    side.ask("Heartbeat", 4, {"GroupId": "two", "GenerationId": 2, "MemberId": one})
    side.ask("Heartbeat", 4, {"GroupId": "two", "GenerationId": 2, "MemberId": two}, on="b")
    join(side, "two", one, version=3)
    side.ask("LeaveGroup", 5, {"GroupId": "two", "Members": [{"MemberId": one}]})
    side.ask("DescribeGroups", 6, {"Groups": ["two"]})


def commit(side, group, version, *parts, topics=None, member="", generation=-1, **more):
    def where(name):
        return {"TopicId": side.topic_id(name)} if version >= 10 else {"Name": name}
    values = {"GroupId": group, "GenerationIdOrMemberEpoch": generation, "MemberId": member, "Topics": [{**where(name), "Partitions": [
        {"PartitionIndex": p, "CommittedOffset": o, "CommittedMetadata": m, **({"CommittedLeaderEpoch": 3} if version >= 6 else {})} for p, o, m in parts]} for name in topics or ["kept"]], **more}
    return side.ask("OffsetCommit", version, values)


def script_offsets(side):
    ready(side)
    made(side, topic("kept", 3))
    for version in range(2, 11):
        commit(side, f"offsets-{version}", version, (0, version, "m"), (1, 7, ""), (2, 9, None))
        commit(side, f"offsets-{version}", version, (0, -1, ""), (3, 5, ""), (-1, 5, ""))
        commit(side, f"offsets-{version}", version, (0, 11, "x" * 4096), (1, 12, "x" * 4097))
        if version < 10:
            commit(side, f"offsets-{version}", version, (0, 1, ""), topics=["no-such", "a b"])
        commit(side, f"offsets-{version}", version, topics=["kept"])
        side.ask("OffsetCommit", version, {"GroupId": f"offsets-{version}", "GenerationIdOrMemberEpoch": -1, "Topics": []})
        commit(side, "", version, (0, 1, ""))
        commit(side, f"offsets-{version}", version, (0, 1, ""), member="nobody", generation=1)
        commit(side, f"offsets-{version}", version, (0, 1, ""), member="nobody")
        commit(side, f"offsets-{version}", version, (0, 1, ""), generation=0)
        commit(side, f"offsets-{version}", version, (0, 1, ""), generation=-2)
        if version in (2, 3, 4):
            commit(side, f"offsets-{version}", version, (1, 8, ""), RetentionTimeMs=1000)
    side.ask("OffsetCommit", 10, {"GroupId": "offsets-10", "GenerationIdOrMemberEpoch": -1, "Topics": [{"TopicId": b"0123456789abcdef", "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 1}]}]})
    for version in range(1, 8):
        for topics in ([{"Name": "kept", "PartitionIndexes": [0, 1, 2, 3, -1]}], [{"Name": "no-such", "PartitionIndexes": [0]}], [{"Name": "kept", "PartitionIndexes": []}], []) + ((None,) if version >= 2 else ()):
            for group in ("offsets-5", "no-such-group", ""):
                side.ask("OffsetFetch", version, {"GroupId": group, "Topics": topics})
    for version in range(8, 11):
        kept = {"TopicId": side.topic_id("kept")} if version >= 10 else {"Name": "kept"}
        other = {"TopicId": b"0123456789abcdef"} if version >= 10 else {"Name": "no-such"}
        for topics in ([{**kept, "PartitionIndexes": [0, 1, 2, 3]}], [{**other, "PartitionIndexes": [0]}], [{**kept, "PartitionIndexes": []}], [], None):
            side.ask("OffsetFetch", version, {"Groups": [{"GroupId": "offsets-5", "Topics": topics}, {"GroupId": "no-such-group", "Topics": topics}]})
        side.ask("OffsetFetch", version, {"Groups": []})
        side.ask("OffsetFetch", version, {"Groups": [{"GroupId": "", "Topics": None}], "RequireStable": True})
        if version >= 9:
            for member, epoch in (("nobody", 1), (None, 1), ("nobody", -1), (None, -2), ("", 0)):
                side.ask("OffsetFetch", version, {"Groups": [{"GroupId": "offsets-5", "MemberId": member, "MemberEpoch": epoch, "Topics": None}]})
    for parts in ([0], [0, 9], [1, 1], []):
        side.ask("OffsetDelete", 0, {"GroupId": "offsets-5", "Topics": [{"Name": "kept", "Partitions": [{"PartitionIndex": p} for p in parts]}]})
    side.ask("OffsetDelete", 0, {"GroupId": "offsets-5", "Topics": [{"Name": "no-such", "Partitions": [{"PartitionIndex": 0}]}]})
    side.ask("OffsetDelete", 0, {"GroupId": "offsets-5", "Topics": []})
    side.ask("OffsetDelete", 0, {"GroupId": "no-such-group", "Topics": [{"Name": "kept", "Partitions": [{"PartitionIndex": 0}]}]})
    side.ask("OffsetDelete", 0, {"GroupId": "", "Topics": []})
    side.ask("OffsetFetch", 7, {"GroupId": "offsets-5", "Topics": None})
    side.ask("DeleteGroups", 2, {"GroupsNames": ["offsets-5", "offsets-6", "no-such-group"]})
    side.ask("OffsetFetch", 7, {"GroupId": "offsets-5", "Topics": None})


def script_list(side):
    ready(side)
    made(side, topic("kept", 3))
    commit(side, "listed-empty", 8, (0, 1, ""))
    member = join(side, "listed-full", version=3)["MemberId"]
    sync(side, "listed-full", 1, member, assigned=[(member, b"a")])

    def mine(version, **more):
        answer = side.ask("ListGroups", version, more, quiet=True)
        answer["Groups"] = [g for g in answer["Groups"] if g["GroupId"].startswith("listed")]
        side.note(f"ListGroups v{version} {more}", answer)
    for version in range(6):
        mine(version)
        if version >= 4:
            for states in (["Stable"], ["stable"], ["Empty", "Stable"], ["No"], [""], []):
                mine(version, StatesFilter=states)
        if version >= 5:
            for types in (["classic"], ["Classic"], ["consumer"], ["share"], ["no"], [], ["classic", "consumer"]):
                mine(version, TypesFilter=types)
    for version in (0, 1):
        side.ask("ConsumerGroupDescribe", version, {"GroupIds": ["listed-full", "no-such-group", ""]})
    for kind in ("ShareGroupDescribe", "StreamsGroupDescribe"):
        if kind == "none":
            side.ask(kind, 1, {})


def script_consumer(side):
    """The new protocol: also test/groups/run-interop, which looks at the records too."""
    ready(side)
    made(side, topic("new", 2))

    def beat(group="new-group", member="member-a", epoch=0, version=1, **more):
        return side.ask("ConsumerGroupHeartbeat", version, {"GroupId": group, "MemberId": member, "MemberEpoch": epoch, **more})
    full = {"RebalanceTimeoutMs": 30000, "SubscribedTopicNames": ["new"], "TopicPartitions": []}
    for more in ({**full, "RebalanceTimeoutMs": -1}, {**full, "RebalanceTimeoutMs": 0}, {**full, "SubscribedTopicNames": None}, {**full, "TopicPartitions": None}, {**full, "InstanceId": ""}, {**full, "RackId": ""},
                 {**full, "SubscribedTopicNames": []}, {**full, "ServerAssignor": "none"}, {**full, "ServerAssignor": ""}, {**full, "SubscribedTopicRegex": "("}, {**full, "SubscribedTopicRegex": ""},
                 {**full, "TopicPartitions": [{"TopicId": side.topic_id("new"), "Partitions": [0]}]}):
        beat(group="new-refused", **more)
    beat(group="", **full)
    beat(member="", version=1, **full)
    beat(member="x" * 40, version=1, epoch=5)
    for epoch in (1, -1, -2, -3, 99):
        beat(epoch=epoch)
        beat(epoch=epoch, **full)
    side.until(lambda a: a["ErrorCode"] == 0 and a["Assignment"] is not None and a["Assignment"]["TopicPartitions"], "ConsumerGroupHeartbeat", 1,
               {"GroupId": "new-group", "MemberId": "member-a", "MemberEpoch": 0, **full})
    for version in (0, 1):
        side.ask("ConsumerGroupDescribe", version, {"GroupIds": ["new-group"], "IncludeAuthorizedOperations": True})
    for member, epoch in (("member-a", 5), ("nobody", 1), ("member-a", -2)):
        commit(side, "new-group", 9, (0, 4, ""), topics=["new"], member=member, generation=epoch)
        side.ask("OffsetFetch", 9, {"Groups": [{"GroupId": "new-group", "MemberId": member, "MemberEpoch": epoch, "Topics": None}]})
    commit(side, "new-group", 8, (0, 4, ""), topics=["new"])
    commit(side, "new-group", 8, (0, 4, ""), topics=["new"], member="member-a", generation=9)
    side.ask("DescribeGroups", 6, {"Groups": ["new-group"]})
    side.ask("DescribeGroups", 5, {"Groups": ["new-group"]})
    side.ask("DeleteGroups", 2, {"GroupsNames": ["new-group"]})
    join(side, "new-group", version=9, protocols=(("range", b"x"),))
    beat(epoch=-1)
    side.ask("ConsumerGroupDescribe", 1, {"GroupIds": ["new-group"]})
    side.ask("DeleteGroups", 2, {"GroupsNames": ["new-group"]})


def script_offsets_kept(side):
    """What a commit keeps: the epoch, the text and its length, the last of two; topics that come again under another id."""
    ready(side)
    made(side, topic("keeps", 2))

    def parts(*items):
        return [{"PartitionIndex": p, "CommittedOffset": o, "CommittedLeaderEpoch": e, "CommittedMetadata": m} for p, o, e, m in items]

    def fetched(group, **more):
        for version in (5, 7, 8, 9, 10):
            if version < 8:
                side.ask("OffsetFetch", version, {"GroupId": group, "Topics": None, **({"RequireStable": True} if version == 7 else {})})
            else:
                side.ask("OffsetFetch", version, {"Groups": [{"GroupId": group, "Topics": None}], "RequireStable": version == 9, **more})
    for i, epoch in enumerate((-2147483648, -2, -1, 0, 1, 2147483647)):
        for version in (6, 8, 9):
            side.ask("OffsetCommit", version, {"GroupId": f"epochs-{i}", "GenerationIdOrMemberEpoch": -1, "Topics": [{"Name": "keeps", "Partitions": parts((0, 3, epoch, "e"))}]})
        fetched(f"epochs-{i}")
    long = 2147483647, 4294967296, 9223372036854775807, -2, -9223372036854775808
    for i, offset in enumerate(long):
        side.ask("OffsetCommit", 8, {"GroupId": f"long-{i}", "GenerationIdOrMemberEpoch": -1, "Topics": [{"Name": "keeps", "Partitions": parts((0, offset, -1, ""))}]})
        fetched(f"long-{i}")
    texts = ("ä" * 4096, "ä" * 4097, "\U0001d11e" * 2048, "\U0001d11e" * 2049, "a" * 4095 + "\U0001d11e", "\0", "{\"a\":1}")
    for version in (2, 8, 9):
        side.ask("OffsetCommit", version, {"GroupId": f"texts-{version}", "GenerationIdOrMemberEpoch": -1, "Topics": [
            {"Name": "keeps", "Partitions": [{"PartitionIndex": i % 2, "CommittedOffset": i, "CommittedMetadata": m} for i, m in enumerate(texts)]}]})
        fetched(f"texts-{version}")
    twice = [{"Name": "keeps", "Partitions": parts((0, 1, -1, "a"), (0, 2, -1, "b"), (1, 3, -1, None), (1, 4, -1, ""))}, {"Name": "keeps", "Partitions": parts((0, 5, -1, "c"))}]
    side.ask("OffsetCommit", 8, {"GroupId": "twice", "GenerationIdOrMemberEpoch": -1, "Topics": twice})
    fetched("twice")
    # By id: the topic that has it, none, one that is gone; a name that came again.
    old = side.topic_id("keeps")
    for ids in ((old, old), (old, bytes(16)), (bytes(16),), (b"0123456789abcdef", old)):
        side.ask("OffsetCommit", 10, {"GroupId": "by-id", "GenerationIdOrMemberEpoch": -1, "Topics": [{"TopicId": i, "Partitions": parts((0, 4, 2, "id"), (7, 4, 2, ""))} for i in ids]})
        side.ask("OffsetFetch", 10, {"Groups": [{"GroupId": "by-id", "Topics": [{"TopicId": i, "PartitionIndexes": [0, 1, 7]} for i in ids]}]})
    commit(side, "by-id", 9, (1, 6, "name"), topics=["keeps"])
    fetched("by-id")
    side.ask("DeleteTopics", 6, {"Topics": [{"Name": "keeps"}], "TimeoutMs": 10000}, quiet=True)
    gone(side, "keeps")
    side.until(lambda a: not a["Groups"][0]["Topics"], "OffsetFetch", 8, {"Groups": [{"GroupId": "by-id", "Topics": None}]})
    fetched("by-id")
    for version in (8, 9):
        commit(side, "by-id", version, (1, 6, ""), topics=["keeps"])
    side.ask("OffsetCommit", 10, {"GroupId": "by-id", "GenerationIdOrMemberEpoch": -1, "Topics": [{"TopicId": old, "Partitions": parts((0, 4, 2, ""))}]})
    side.ask("OffsetFetch", 10, {"Groups": [{"GroupId": "by-id", "Topics": [{"TopicId": old, "PartitionIndexes": [0]}]}]})
    made(side, topic("keeps"))
    commit(side, "by-id", 9, (0, 8, "new"), (1, 9, "no such"), topics=["keeps"])
    fetched("by-id")
    side.ask("OffsetFetch", 10, {"Groups": [{"GroupId": "by-id", "Topics": [{"TopicId": old, "PartitionIndexes": [0]}]}]})


def script_offsets_of_members(side):
    """Who may commit and delete while there are members: by generation, member, instance, and what is subscribed."""
    ready(side)
    made(side, topic("x"), topic("y"))
    one = join(side, "manned", version=3)["MemberId"]

    def every(group, member, generation):
        for version in (5, 8, 9):
            for who, at in ((member, generation), (member, generation + 1), (member, generation - 1), (member, -1), ("nobody", generation), ("", generation), ("", -1), ("nobody", -1)):
                commit(side, group, version, (0, 5, ""), topics=["x", "y"], member=who, generation=at)
            for more in ({"GroupInstanceId": "no-such"}, {"GroupInstanceId": ""}):
                if version >= 7:
                    commit(side, group, version, (0, 5, ""), topics=["x"], member=member, generation=generation, **more)
        for version in (9, 10):
            for who, at in ((member, generation), (member, generation + 1), (None, -1), ("nobody", generation), (member, -1)):
                side.ask("OffsetFetch", version, {"Groups": [{"GroupId": group, "MemberId": who, "MemberEpoch": at, "Topics": None}], "RequireStable": True})

    def deleted(group, *topics):
        for names in [[name] for name in topics] + [list(topics)]:
            side.ask("OffsetDelete", 0, {"GroupId": group, "Topics": [{"Name": n, "Partitions": [{"PartitionIndex": 0}, {"PartitionIndex": 4}, {"PartitionIndex": -1}]} for n in names]})
    every("manned", one, 1)  # It has joined, nobody has synced.
    deleted("manned", "x", "y", "no-such")
    sync(side, "manned", 1, one, assigned=[(one, b"a")])
    every("manned", one, 1)
    deleted("manned", "x", "y", "no-such")
    asked = join(side, "manned", version=3, on="b", send=True)
    side.until(lambda a: a["ErrorCode"] == 27, "Heartbeat", 4, {"GroupId": "manned", "GenerationId": 1, "MemberId": one})
    every("manned", one, 1)  # In a rebalance.
    deleted("manned", "x", "y", "no-such")
    side.ask("LeaveGroup", 5, {"GroupId": "manned", "Members": [{"MemberId": one}]})
    two = side.receive("JoinGroup", 3, asked, on="b")["MemberId"]
    side.ask("LeaveGroup", 5, {"GroupId": "manned", "Members": [{"MemberId": two}]})
    deleted("manned", "x", "y", "no-such")
    commit(side, "manned", 8, (0, 5, ""), topics=["x", "y"])
    side.ask("DeleteGroups", 2, {"GroupsNames": ["manned"]})
    deleted("manned", "x")  # It is dead.
    for version in (5, 6):
        side.ask("DescribeGroups", version, {"Groups": ["manned"]})
    side.ask("ConsumerGroupDescribe", 1, {"GroupIds": ["manned"]})
    # Of members whose topics cannot be told.
    for kind, protocols in (("connect", (("sessioned", b"x"),)), ("consumer", (("range", b"no subscription"),)), ("consumer", (("range", b""),))):
        group = f"{kind}-{len(protocols[0][1])}"
        commit(side, group, 8, (0, 5, ""), topics=["x", "y"])
        member = join(side, group, version=3, kind=kind, protocols=protocols)["MemberId"]
        deleted(group, "x")
        sync(side, group, 1, member, assigned=[(member, b"a")], kind=kind, name=protocols[0][0])
        deleted(group, "x", "y", "no-such")
        side.ask("LeaveGroup", 5, {"GroupId": group, "Members": [{"MemberId": member}]})
        deleted(group, "x", "no-such")
    # Of the other protocol.
    full = {"RebalanceTimeoutMs": 30000, "SubscribedTopicNames": ["x"], "TopicPartitions": []}
    epoch = side.ask("ConsumerGroupHeartbeat", 1, {"GroupId": "modern", "MemberId": "m", "MemberEpoch": 0, **full})["MemberEpoch"]
    every("modern", "m", epoch)
    deleted("modern", "x", "y", "no-such")
    side.ask("ConsumerGroupHeartbeat", 1, {"GroupId": "modern", "MemberId": "m", "MemberEpoch": -1})
    every("modern", "m", epoch)
    deleted("modern", "x", "y", "no-such")
    side.ask("DeleteGroups", 2, {"GroupsNames": ["modern", "modern"]})
    side.ask("ConsumerGroupDescribe", 1, {"GroupIds": ["modern"]})


def script_list_states(side):
    """Filters by state and kind, with a group in each."""
    ready(side)
    made(side, topic("x"))
    commit(side, "states-empty", 8, (0, 1, ""), topics=["x"])
    member = join(side, "states-completing", version=3, session=60000, rebalance=60000)["MemberId"]
    stable = join(side, "states-stable", version=3)["MemberId"]
    sync(side, "states-stable", 1, stable, assigned=[(stable, b"a")])
    waited = join(side, "states-preparing", version=3, session=60000, rebalance=60000)["MemberId"]
    join(side, "states-preparing", version=3, on="b", send=True, session=60000, rebalance=60000)
    side.until(lambda a: a["ErrorCode"] == 27, "Heartbeat", 4, {"GroupId": "states-preparing", "GenerationId": 1, "MemberId": waited})
    full = {"RebalanceTimeoutMs": 30000, "TopicPartitions": []}
    side.ask("ConsumerGroupHeartbeat", 1, {"GroupId": "states-modern", "MemberId": "m", "MemberEpoch": 0, "SubscribedTopicNames": ["no-such-yet"], **full})
    side.until(lambda a: a["Groups"][0]["GroupState"] == "Stable", "ConsumerGroupDescribe", 1, {"GroupIds": ["states-modern"]})
    side.ask("ConsumerGroupHeartbeat", 1, {"GroupId": "states-modern-empty", "MemberId": "m", "MemberEpoch": 0, "SubscribedTopicNames": ["no-such-yet"], **full})
    side.ask("ConsumerGroupHeartbeat", 1, {"GroupId": "states-modern-empty", "MemberId": "m", "MemberEpoch": -1})
    for version, more in [(4, {"StatesFilter": s}) for s in ([], ["Stable"], ["Empty"], ["PreparingRebalance"], ["completingrebalance"], ["Dead"], ["Assigning", "Reconciling"])] + \
            [(5, {"StatesFilter": s, "TypesFilter": t}) for s in ([], ["Stable"], ["STABLE", "Empty"], ["NoSuch"]) for t in ([], ["classic"], ["CONSUMER"], ["Classic", "consumer"], ["share"], ["streams"], ["simple"], ["classic", "no"], [""])]:
        answer = side.ask("ListGroups", version, more, quiet=True)
        answer["Groups"] = [g for g in answer["Groups"] if g["GroupId"].startswith("states")]
        side.note(f"ListGroups v{version} {more}", answer)
    groups = ["states-empty", "states-completing", "states-stable", "states-preparing", "states-modern", "states-modern-empty", "states-none"]
    for version in (0, 3, 5, 6):
        side.ask("DescribeGroups", version, {"Groups": groups + ["states-empty"], **({"IncludeAuthorizedOperations": True} if version >= 3 else {})})
    for version in (0, 1):
        side.ask("ConsumerGroupDescribe", version, {"GroupIds": groups + ["states-modern"], "IncludeAuthorizedOperations": True})
    for version in range(3):
        side.ask("DeleteGroups", version, {"GroupsNames": groups})
    side.drop("b")
    side.ask("LeaveGroup", 5, {"GroupId": "states-completing", "Members": [{"MemberId": member}]})
