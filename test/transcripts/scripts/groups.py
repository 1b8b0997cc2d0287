"""Groups: coordinators, joining, syncing, beating and leaving by both protocols, offsets, what is told about them."""
import struct

from scripts.topics import made, topic

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
    side.ask("Heartbeat", 4, {"GroupId": "held", "GenerationId": 1, "MemberId": member, "GroupInstanceId": "unknown"})
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
    sync(side, "two", 2, one, assigned=[(one, b"left"), (two, b"right"), ("nobody", b"x")])
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
