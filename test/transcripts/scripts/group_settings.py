"""Settings of groups: each with right, wrong and edge values, what is told of them, what the members notice."""
from scripts.configs import APPEND, BROKER, DELETE, GROUP, SET, SUBTRACT, alter, describe, replace, shown, told
from scripts.groups import ready
from scripts.topics import made, topic

NAMES = ("consumer.assignment.interval.ms", "consumer.assignor.offload.enable", "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms",
         "errors.deadletterqueue.copy.record.enable", "errors.deadletterqueue.topic.name",
         "share.assignment.interval.ms", "share.assignor.offload.enable", "share.auto.offset.reset", "share.delivery.count.limit",
         "share.heartbeat.interval.ms", "share.isolation.level", "share.partition.max.record.locks", "share.record.lock.duration.ms",
         "share.renew.acknowledge.enable", "share.session.timeout.ms",
         "streams.acceptable.recovery.lag", "streams.assignment.interval.ms", "streams.assignor.name", "streams.assignor.offload.enable",
         "streams.heartbeat.interval.ms", "streams.initial.rebalance.delay.ms", "streams.num.standby.replicas", "streams.num.warmup.replicas",
         "streams.rack.aware.assignment.tags", "streams.session.timeout.ms", "streams.task.offset.interval.ms")
# At, below and above the bounds of one or the other; texts for those that take texts.
VALUES = (None, "", " ", "x", "-1", "0", "1", "2", "3", "4", "5", "10", "11", "20", "21", "99", "100", "999", "1000", "1999", "2000", "4000", "4001", "4999",
          "5000", "5001", "14999", "15000", "15001", "44999", "45000", "59999", "60000", "60001", "2147483647", "2147483648", "-2147483649",
          "9223372036854775807", "9223372036854775808", "1.5", "0x10", "+5000", " 5000 ", "5000ms", "true", "TRUE", "yes", "latest", "earliest", "LATEST", "Earliest", "BY_DURATION:PT1H", "by_duration:pt1h",
          "none", "by_duration:PT1H", "by_duration:-PT1H", "by_duration:x", "read_committed", "READ_COMMITTED", "sticky", "Sticky", " sticky ", "a,b", "a,b,c,d,e,f", "a, a", "a,A", "a,,b", "a,a", "a b", "__x", "_x", " __x", "x" * 300)


def script_values(side):
    """Each setting with each value: judged alone, each at a group of its own."""
    for name in NAMES:
        side.ask("IncrementalAlterConfigs", 1, {"ValidateOnly": True, "Resources": [
            {"ResourceType": GROUP, "ResourceName": f"group-{i:02}", "Configs": [{"Name": name, "ConfigOperation": SET, "Value": value}]} for i, value in enumerate(VALUES)]})
        for op in ((name, DELETE, None), (name, DELETE, "5000"), (name, APPEND, "5000"), (name, SUBTRACT, "5000"), (name, APPEND, None), (name, SUBTRACT, ""), (name.upper(), SET, "5000"), ("group." + name, SET, "5000")):
            alter(side, GROUP, "group-ops", op, only=True)
    for kind, name in ((BROKER, "1"), (BROKER, "")):
        for setting in ("consumer.session.timeout.ms", "group.consumer.session.timeout.ms", "group.consumer.heartbeat.interval.ms", "group.consumer.min.session.timeout.ms"):
            alter(side, kind, name, (setting, SET, "50000"), only=True)


def script_together(side):
    """A session has to be longer than the interval of beats, whatever was set first; all of a request or nothing."""
    group = "together"
    want = {}

    def change(*ops, **more):
        answer = alter(side, GROUP, group, *ops, **more)
        if answer["Responses"][0]["ErrorCode"] == 0 and not more:
            want.update({name: value for name, op, value in ops if op == SET})
        shown(side, f"after {ops}", GROUP, group, None, want)
    for kind in ("consumer", "share", "streams"):
        session, beats = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        change((session, SET, "5000"))
        change((session, SET, "5001"))
        change((beats, SET, "5001"))
        change((beats, SET, "15000"))
        change((session, SET, "50000"), (beats, SET, "15000"))
        change((session, SET, "15000"))
        change((beats, SET, "6000"), (session, SET, "6000"))
        change((beats, SET, "6000"), ("no.such", SET, "1"))
        change((beats, SET, "6000"), (beats, SET, "7000"))
        change((beats, SET, "9000"), only=True)
    told(side, "some", describe(side, GROUP, group, keys=["consumer.session.timeout.ms", "no.such", "share.session.timeout.ms"], IncludeSynonyms=True))
    for version in (1, 2, 3, 4):
        told(side, f"v{version}", describe(side, GROUP, group, version=version, IncludeSynonyms=True, **({"IncludeDocumentation": True} if version >= 3 else {})))
    replace(side, GROUP, group, ("consumer.session.timeout.ms", "46000"))
    side.until(lambda a: [r["ResourceName"] for r in a["ConfigResources"]] == [group], "ListConfigResources", 1, {"ResourceTypes": [GROUP]})
    shown(side, "after a replacement", GROUP, group)
    alter(side, GROUP, group, *[(name, DELETE, None) for name in want])
    side.until(lambda a: not a["ConfigResources"], "ListConfigResources", 1, {"ResourceTypes": [GROUP]})
    told(side, "after deletion", describe(side, GROUP, group, IncludeSynonyms=True))
    for name in ("no such group", "x" * 300, "ä", "a/b", ""):
        alter(side, GROUP, name, ("consumer.session.timeout.ms", SET, "50000"), only=True)
        told(side, f"of {name}", describe(side, GROUP, name, keys=["consumer.session.timeout.ms"]))
    side.ask("IncrementalAlterConfigs", 1, {"Resources": [{"ResourceType": GROUP, "ResourceName": f"g{i}", "Configs": [{"Name": "consumer.session.timeout.ms", "ConfigOperation": SET, "Value": v}]}
                                                           for i, v in enumerate(("50000", "1", "50000"))], "ValidateOnly": True})


def script_noticed(side):
    """What a group's own settings do to its members: the interval that they are told, the session that they have."""
    ready(side)
    made(side, topic("noticed", 1))

    def beat(want, epoch, label, **more):
        side.until(lambda a: a["HeartbeatIntervalMs"] == want, "ConsumerGroupHeartbeat", 1, {"GroupId": "noticing", "MemberId": "member-n", "MemberEpoch": epoch, **more}, quiet=True)
        side.ask("ConsumerGroupHeartbeat", 1, {"GroupId": "noticing", "MemberId": "member-n", "MemberEpoch": epoch, **more})
    alter(side, GROUP, "noticing", ("consumer.heartbeat.interval.ms", SET, "2500"))
    shown(side, "before the group", GROUP, "noticing", None, {"consumer.heartbeat.interval.ms": "2500"})
    first = side.until(lambda a: a["Assignment"] is not None and a["Assignment"]["TopicPartitions"], "ConsumerGroupHeartbeat", 1, {
        "GroupId": "noticing", "MemberId": "member-n", "MemberEpoch": 0, "RebalanceTimeoutMs": 30000, "SubscribedTopicNames": ["noticed"], "TopicPartitions": []})
    epoch = first["MemberEpoch"]
    beat(2500, epoch, "as it was set")
    alter(side, GROUP, "noticing", ("consumer.heartbeat.interval.ms", SET, "7000"))
    beat(7000, epoch, "as it is set")
    alter(side, GROUP, "noticing", ("consumer.heartbeat.interval.ms", DELETE, None))
    beat(5000, epoch, "by the broker's")
    alter(side, GROUP, "noticing", ("consumer.heartbeat.interval.ms", SET, "1000"), ("consumer.session.timeout.ms", SET, "2000"))
    beat(1000, epoch, "with the session")
    side.until(lambda a: a["Groups"][0]["GroupState"] == "Empty", "ConsumerGroupDescribe", 1, {"GroupIds": ["noticing"]})
    side.ask("ConsumerGroupHeartbeat", 1, {"GroupId": "noticing", "MemberId": "member-n", "MemberEpoch": epoch})
    side.ask("DeleteGroups", 2, {"GroupsNames": ["noticing"]})
    shown(side, "behind the group", GROUP, "noticing", None, {"consumer.heartbeat.interval.ms": "1000"})
    alter(side, GROUP, "noticing", ("consumer.heartbeat.interval.ms", DELETE, None), ("consumer.session.timeout.ms", DELETE, None))
    side.until(lambda a: not a["ConfigResources"], "ListConfigResources", 1, {"ResourceTypes": [GROUP]})
