"""Reading: Fetch with its sessions, offsets by time, ends of epochs, deleting records."""
import time

from batches import batch, record
from scripts.records import end_of, produce, read
from scripts.topics import config, made, topic

FETCH_VERSIONS = range(4, 19)
T0 = 1700000000000


def filled(side, name, partitions=1):
    made(side, topic(name, partitions))
    for i in range(4):
        produce(side, name, batch(records=[record(value=b"%d" % j, offset=j, ms=10 * j) for j in range(3)], first_ms=T0 + 100 * i, max_ms=T0 + 100 * i + 20), quiet=True)


def partition(offset=0, index=0, epoch=-1, last_epoch=-1, limit=1 << 20, start=-1, **more):
    return {"Partition": index, "CurrentLeaderEpoch": epoch, "FetchOffset": offset, "LastFetchedEpoch": last_epoch, "LogStartOffset": start, "PartitionMaxBytes": limit, **more}


def fetch(side, topics, version=12, session=0, epoch=-1, wait=0, least=0, most=1 << 20, isolation=0, forget=(), on="a", quiet=False, **more):
    """`topics` by name; forgotten topics too."""
    def where(name):
        return ({"TopicId": name if isinstance(name, bytes) else side.topic_id(name)} if version >= 13 else {"Topic": name})
    values = {"MaxWaitMs": wait, "MinBytes": least, "MaxBytes": most, "IsolationLevel": isolation, "SessionId": session, "SessionEpoch": epoch,
              "Topics": [{**where(name), "Partitions": list(parts)} for name, *parts in topics],
              "ForgottenTopicsData": [{**where(name), "Partitions": list(parts)} for name, *parts in forget], **more}
    if version <= 14:
        values["ReplicaId"] = -1
    return side.ask("Fetch", version, values, on=on, quiet=quiet)


def script_fetch_versions(side):
    filled(side, "fetch", 2)
    for version in FETCH_VERSIONS:
        for offset in (0, 4, 11, 12, 13, -1, -2, 1 << 40):
            fetch(side, [("fetch", partition(offset))], version)
        fetch(side, [("fetch", partition(0, 1), partition(0, 2), partition(0, -1))], version)
        fetch(side, [("fetch", partition(0, limit=1))], version)
        fetch(side, [("fetch", partition(0))], version, isolation=1)
        if version >= 9:
            for epoch in (0, 1, -2, 5):
                fetch(side, [("fetch", partition(0, epoch=epoch))], version)
        if version < 13:
            fetch(side, [("no-such", partition(0)), ("fetch", partition(0, 1))], version)
            fetch(side, [("a b", partition(0)), ("", partition(0))], version)
        else:
            fetch(side, [(b"0123456789abcdef", partition(0)), ("fetch", partition(0, 1))], version)
            fetch(side, [(bytes(16), partition(0))], version)
        if version >= 12:
            for last in (0, 1, 5, -2):
                fetch(side, [("fetch", partition(6, last_epoch=last))], version)
                fetch(side, [("fetch", partition(20, last_epoch=last))], version)


def script_fetch_limits(side):
    filled(side, "limits", 2)
    produce(side, "limits", batch(values=(b"other",)), partition=1, quiet=True)
    for limit in (0, -1, 1, 85, 86, 87, 170, 172, 300, 2147483647):
        fetch(side, [("limits", partition(0, limit=limit))])
        fetch(side, [("limits", partition(0, limit=limit), partition(0, 1, limit=limit))])
        fetch(side, [("limits", partition(0), partition(0, 1))], most=limit)
        fetch(side, [("limits", partition(0, 1), partition(0))], most=limit)
    for wait, least in ((0, 0), (-1, 1), (0, 1 << 30), (1, -1), (50, 1000), (50, 2147483647), (0, -5)):
        fetch(side, [("limits", partition(0))], wait=wait, least=least)
        fetch(side, [("limits", partition(12))], wait=wait, least=least)
    for isolation in (0, 1, 2, -1):
        fetch(side, [("limits", partition(0))], isolation=isolation)
    fetch(side, [("limits", partition(0), partition(3))])
    fetch(side, [("limits", partition(0)), ("limits", partition(0, 1))])
    fetch(side, [])
    fetch(side, [("limits",)])
    for version in (11, 15, 17):
        fetch(side, [("limits", partition(0))], version, ClusterId=None) if version >= 12 else None
        fetch(side, [("limits", partition(0))], version, RackId="some")
    side.ask("Fetch", 12, {"ReplicaId": 7, "MaxWaitMs": 0, "MinBytes": 0, "Topics": [{"Topic": "limits", "Partitions": [partition(0)]}]})
    side.ask("Fetch", 12, {"ReplicaId": -2, "MaxWaitMs": 0, "MinBytes": 0, "Topics": [{"Topic": "limits", "Partitions": [partition(0)]}]})
    side.ask("Fetch", 12, {"ReplicaId": -3, "MaxWaitMs": 0, "MinBytes": 0, "Topics": [{"Topic": "limits", "Partitions": [partition(0)]}]})
    side.ask("Fetch", 15, {"ReplicaState": {"ReplicaId": 9, "ReplicaEpoch": 4}, "MaxWaitMs": 0, "MinBytes": 0, "Topics": [{"TopicId": side.topic_id("limits"), "Partitions": [partition(0)]}]})


def script_fetch_sessions(side):
    filled(side, "session", 3)
    for version in (7, 11, 12, 13, 16, 18):
        def go(topics, session=0, epoch=-1, **more):
            return fetch(side, topics, version, session, epoch, **more)
        answer = go([("session", partition(0), partition(0, 1))], epoch=0)
        session = answer["SessionId"]
        side.ids.setdefault("session", {})[session] = 1
        go([], session, 1)
        go([], session, 1)
        go([], session, 2)
        go([("session", partition(12))], session, 3)
        go([], session, 4)
        produce(side, "session", batch(), partition=1, quiet=True)
        go([], session, 5)
        go([("session", partition(1, 1))], session, 6)
        go([("session", partition(0, 2))], session, 7, forget=[("session", 0)])
        go([("session", partition(0, 9))], session, 8)
        go([], session, 9)
        go([], session, 10, forget=[("session", 9, 5)])
        go([("session", partition(99, 2))], session, 11)
        go([], session, 12)
        go([("session", partition(0, 2))], session, 13)
        go([], session, 1)
        go([], session, 0)
        go([], session, 1)
        go([], 12345, 1)
        go([], 12345, 0)
        go([], 12345, -1)
        go([], 0, 5)
        answer = go([("session", partition(12))], epoch=0)
        go([("session", partition(12))], answer["SessionId"], -1)
        go([], answer["SessionId"], 1)
        answer = go([("session", partition(5))], epoch=0)
        go([("session", partition(12), partition(0, 1))], answer["SessionId"], 0)
        if version < 13:
            answer = go([("no-such", partition(0)), ("session", partition(12))], epoch=0)
            go([], answer["SessionId"], 1)
            go([], answer["SessionId"], 2, forget=[("no-such", 0)])
            go([], answer["SessionId"], 3)
        else:
            answer = go([(b"0123456789abcdef", partition(0)), ("session", partition(12))], epoch=0)
            go([], answer["SessionId"], 1)
            go([], answer["SessionId"], 2, forget=[(b"0123456789abcdef", 0)])
            go([], answer["SessionId"], 3)
            if version == 13:
                fetch(side, [("session", partition(0))], 12, answer["SessionId"], 4)
        answer = go([], epoch=0)
        go([], answer["SessionId"], 1)
        go([], answer["SessionId"], 2)
        answer = go([], epoch=0)
        go([("session", partition(3))], answer["SessionId"], 1)
        go([], answer["SessionId"], 2)
        answer = go([("session", partition(12), partition(0, 1))], epoch=0)
        go([], answer["SessionId"], 1, forget=[("session", 0, 1)])
        go([], answer["SessionId"], 2)
        made(side, topic(f"session-goes-{version}"))
        answer = go([(f"session-goes-{version}", partition(0))], epoch=0)
        known = side.topic_id(f"session-goes-{version}")
        side.ask("DeleteTopics", 6, {"Topics": [{"Name": f"session-goes-{version}"}], "TimeoutMs": 10000})
        from scripts.topics import gone
        gone(side, f"session-goes-{version}")
        go([], answer["SessionId"], 1)
        fetch(side, [(known if version >= 13 else f"session-goes-{version}", partition(0))], version)


def script_fetch_session_watermarks(side):
    """Bytes for one partition only: of the other one it is told that its watermark rose, once, and then its records."""
    for version in (7, 12, 13, 18):
        name = f"rising-{version}"
        made(side, topic(name, 3))

        def go(epoch, session=0, topics=(), **more):
            return fetch(side, list(topics), version, session, epoch, **{"most": 1, **more})
        session = go(0, topics=[(name, partition(0), partition(0, 1), partition(0, 2))])["SessionId"]
        go(1, session)
        for index in (0, 1):
            produce(side, name, batch(), partition=index, quiet=True)
        go(2, session)
        go(3, session)
        go(4, session, topics=[(name, partition(1), partition(1, 1))])
        go(5, session)
        for index in (0, 1, 2):
            produce(side, name, batch(values=(b"x", b"y")), partition=index, quiet=True)
        go(6, session)
        go(7, session, topics=[(name, partition(3))])
        go(8, session, most=1 << 20)
        go(9, session, topics=[(name, partition(3, 1), partition(2, 2))])
        side.ask("DeleteRecords", 2, {"Topics": [{"Name": name, "Partitions": [{"PartitionIndex": 0, "Offset": 2}]}], "TimeoutMs": 5000})
        go(10, session)
        go(11, session)


def script_list_offsets(side):
    filled(side, "times", 2)

    def ask(name, version, *parts, **more):
        return side.ask("ListOffsets", version, {"ReplicaId": -1, "Topics": [{"Name": name, "Partitions": [
            {"PartitionIndex": p, "CurrentLeaderEpoch": e if version >= 4 else -1, "Timestamp": t} for p, e, t in parts]}], **more})
    for version in range(1, 12):
        for special in (-1, -2, -3, -4, -5, -6, -7, -100):
            ask("times", version, (0, -1, special))
        ask("times", version, (1, -1, -3), (1, -1, -1), (1, -1, T0))
        for ms in (0, T0 - 1, T0, T0 + 1, T0 + 10, T0 + 20, T0 + 21, T0 + 99, T0 + 100, T0 + 320, T0 + 321, 1 << 60):
            ask("times", version, (0, -1, ms))
        ask("times", version, (2, -1, -1), (-1, -1, -1), (0, -1, -1))
        ask("times", version, (0, -1, -1), (0, -1, -2))
        ask("times", version, (1, -1, -1), (0, -1, -1), (1, -1, -2), (0, -1, -2), (0, 5, -1), (7, -1, -1), (7, -1, -1))
        ask("no-such", version, (0, -1, -1), (0, -1, -2))
        ask("no-such", version, (0, -1, -1), (1, -1, -2))
        ask("a b", version, (0, -1, -1))
        if version >= 2:
            ask("times", version, (0, -1, -1), IsolationLevel=1)
            ask("times", version, (0, -1, T0 + 100), IsolationLevel=1)
            ask("times", version, (0, -1, -1), IsolationLevel=3)
        if version >= 4:
            for epoch in (0, 1, -2):
                ask("times", version, (0, epoch, -1), (0, epoch, T0))
        side.ask("ListOffsets", version, {"ReplicaId": -1, "Topics": []})
        side.ask("ListOffsets", version, {"ReplicaId": 5, "Topics": [{"Name": "times", "Partitions": [{"PartitionIndex": 0, "CurrentLeaderEpoch": -1, "Timestamp": -1}]}]})
        side.ask("ListOffsets", version, {"ReplicaId": -2, "Topics": [{"Name": "times", "Partitions": [{"PartitionIndex": 0, "CurrentLeaderEpoch": -1, "Timestamp": -1}]}]})
    side.ask("ListOffsets", 10, {"ReplicaId": -1, "TimeoutMs": -1, "Topics": [{"Name": "times", "Partitions": [{"PartitionIndex": 0, "CurrentLeaderEpoch": -1, "Timestamp": T0}]}]})
    made(side, topic("disordered"))
    for times in ((50, 10, 30), (20, 90, 5), (90, 1, 90)):
        produce(side, "disordered", batch(records=[record(offset=i, ms=ms) for i, ms in enumerate(times)], first_ms=T0, max_ms=T0 + max(times)), quiet=True)
    for ms in (0, 5, 11, 31, 51, 90, 91):
        ask("disordered", 7, (0, -1, T0 + ms))
    ask("disordered", 7, (0, -1, -3))


def script_epochs(side):
    filled(side, "epochs", 2)
    for version in (2, 3, 4):
        for current, epoch in ((-1, 0), (-1, 1), (-1, -1), (0, 0), (1, 0), (-2, 0), (0, 5), (-1, 2147483647)):
            side.ask("OffsetForLeaderEpoch", version, {**({"ReplicaId": -1} if version >= 3 else {}), "Topics": [{"Topic": "epochs", "Partitions": [
                {"Partition": 0, "CurrentLeaderEpoch": current, "LeaderEpoch": epoch}, {"Partition": 1, "CurrentLeaderEpoch": current, "LeaderEpoch": epoch}]}]})
        side.ask("OffsetForLeaderEpoch", version, {"Topics": [{"Topic": "no-such", "Partitions": [{"Partition": 0, "CurrentLeaderEpoch": -1, "LeaderEpoch": 0}]},
                                                              {"Topic": "epochs", "Partitions": [{"Partition": 9, "CurrentLeaderEpoch": -1, "LeaderEpoch": 0}, {"Partition": -1, "CurrentLeaderEpoch": -1, "LeaderEpoch": 0}]},
                                                              {"Topic": "a b", "Partitions": [{"Partition": 0, "CurrentLeaderEpoch": -1, "LeaderEpoch": 0}]}]})
        side.ask("OffsetForLeaderEpoch", version, {"Topics": []})
        if version >= 3:
            side.ask("OffsetForLeaderEpoch", version, {"ReplicaId": 4, "Topics": [{"Topic": "epochs", "Partitions": [{"Partition": 0, "CurrentLeaderEpoch": -1, "LeaderEpoch": 0}]}]})


def script_delete_records(side):
    filled(side, "cutting", 2)
    made(side, topic("cut-compact", Configs=[config("cleanup.policy", "compact")]), topic("cut-both", Configs=[config("cleanup.policy", "compact,delete")]),
         topic("cut-none", Configs=[config("cleanup.policy", "")]))
    for name in ("cut-compact", "cut-both", "cut-none"):
        produce(side, name, batch(records=[record(key=b"k")]), quiet=True)

    def cut(version, *parts, name="cutting", timeout=5000):
        side.ask("DeleteRecords", version, {"Topics": [{"Name": name, "Partitions": [{"PartitionIndex": p, "Offset": o} for p, o in parts]}], "TimeoutMs": timeout})
    for version in range(3):
        cut(version, (0, version + 1))
        cut(version, (0, 0))
        cut(version, (0, 13))
        cut(version, (0, -2))
        cut(version, (1, -1), (2, 0), (-1, 0))
        cut(version, (0, -1), name="no-such")
        cut(version, (0, -1), name="a b")
        cut(version, (0, 1), name="cut-compact")
        cut(version, (0, 1), name="cut-both")
        cut(version, (0, 1), name="cut-none")
        side.ask("DeleteRecords", version, {"Topics": [], "TimeoutMs": 1000})
        cut(version)
        cut(version, (0, 4), (0, 5))
    cut(2, (0, 6), timeout=0)
    cut(2, (0, 7), timeout=-1)
    cut(2, (0, 1), name="__consumer_offsets")
    cut(2, (0, 1), name="__cluster_metadata")
    read(side, "cutting", 0)
    read(side, "cutting", 7)
    for ms in (0, T0, T0 + 100, T0 + 220):
        side.ask("ListOffsets", 7, {"ReplicaId": -1, "Topics": [{"Name": "cutting", "Partitions": [{"PartitionIndex": 0, "CurrentLeaderEpoch": -1, "Timestamp": ms}]}]})
    cut(2, (0, -1))
    read(side, "cutting", 12)
    end_of(side, "cutting")
    for special in (-2, -3, -4):
        side.ask("ListOffsets", 9, {"ReplicaId": -1, "Topics": [{"Name": "cutting", "Partitions": [{"PartitionIndex": 0, "CurrentLeaderEpoch": -1, "Timestamp": special}]}]})
