"""Configs shown and changed: topics, brokers, groups, clients' metrics."""
from scripts.topics import config, made, topic

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(side, kind, name, version=4, keys=None, **more):
    return side.ask("DescribeConfigs", version, {"Resources": [{"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": keys}], **more}, quiet=True)


def told(side, label, answer):
    """An answer with its configs by name, so that each difference names its setting."""
    out = []
    for result in answer["Results"]:
        by_name = {}
        for item in result["Configs"]:
            item = dict(item)
            item["Documentation"] = bool(item.get("Documentation"))
            by_name[item.pop("Name")] = item
        out.append({**result, "Configs": by_name})
    side.note(label, {**answer, "Results": out})


def alter(side, kind, name, *ops, version=1, only=False):
    return side.ask("IncrementalAlterConfigs", version, {"ValidateOnly": only, "Resources": [{"ResourceType": kind, "ResourceName": name, "Configs": [
        {"Name": n, "ConfigOperation": op, "Value": v} for n, op, v in ops]}]})


def replace(side, kind, name, *values, version=2, only=False):
    return side.ask("AlterConfigs", version, {"ValidateOnly": only, "Resources": [{"ResourceType": kind, "ResourceName": name, "Configs": [config(*v) for v in values]}]})


def shown(side, label, kind, name, keys=None, want=None):
    """What is told, once the settings of `want` have arrived where Kafka's broker tells them from."""
    def arrived(answer):
        found = {item["Name"]: item["Value"] for item in answer["Results"][0]["Configs"]}
        return all(found.get(name) == value for name, value in (want or {}).items())
    side.until(arrived, "DescribeConfigs", 4, {"Resources": [{"ResourceType": kind, "ResourceName": name}]}, quiet=True)
    told(side, label, describe(side, kind, name, keys=keys, IncludeSynonyms=True))


def script_describe_topic(side):
    made(side, topic("told", Configs=[config("retention.ms", "5000"), config("cleanup.policy", "compact,delete")]))
    for version in (1, 2, 3, 4):
        told(side, f"topic v{version}", describe(side, TOPIC, "told", version, IncludeSynonyms=True))
        told(side, f"topic v{version} without synonyms", describe(side, TOPIC, "told", version))
    told(side, "topic, with words", describe(side, TOPIC, "told", 4, IncludeDocumentation=True))
    for keys in ([], ["retention.ms"], ["no.such"], ["retention.ms", "retention.ms", "cleanup.policy"], [""]):
        told(side, f"topic, keys {keys}", describe(side, TOPIC, "told", keys=keys))
    for name in ("no-such", "", "a b", "__cluster_metadata"):
        told(side, f"topic {name}", describe(side, TOPIC, name))
    for kind in (0, 1, 3, 5, 64, 99, -1):
        told(side, f"kind {kind}", describe(side, kind, "told"))
    told(side, "none", side.ask("DescribeConfigs", 4, {"Resources": []}, quiet=True))
    told(side, "twice", side.ask("DescribeConfigs", 4, {"Resources": [{"ResourceType": TOPIC, "ResourceName": "told", "ConfigurationKeys": ["retention.ms"]}] * 2}, quiet=True))


def script_describe_broker(side):
    for name in ("2", "x", "-1", "01", " 1"):
        told(side, f"broker {name}", describe(side, BROKER, name))
    told(side, "all brokers", describe(side, BROKER, ""))
    told(side, "one", describe(side, BROKER, "1", keys=["log.retention.ms", "num.network.threads", "message.max.bytes"], IncludeSynonyms=True))
    answer = describe(side, BROKER, "1", IncludeSynonyms=True, IncludeDocumentation=True)
    told(side, "broker", answer)
    answer = describe(side, LOGGER, "1")
    side.note("loggers", {"ErrorCode": answer["Results"][0]["ErrorCode"], "some": bool(answer["Results"][0]["Configs"])})
    for name in ("", "2", "x"):
        told(side, f"loggers {name}", describe(side, LOGGER, name))


def script_describe_others(side):
    for name in ("g", "", "a b"):
        told(side, f"group {name}", describe(side, GROUP, name, IncludeSynonyms=True, IncludeDocumentation=True))
        told(side, f"metrics {name}", describe(side, METRICS, name, IncludeSynonyms=True))


def script_alter_topic(side):
    made(side, topic("changed"))
    keys = ["retention.ms", "cleanup.policy", "max.message.bytes", "follower.replication.throttled.replicas"]
    for version in (0, 1):
        alter(side, TOPIC, "changed", ("retention.ms", SET, f"100{version}"), version=version)
    shown(side, "after set", TOPIC, "changed", keys, {"retention.ms": "1001"})
    alter(side, TOPIC, "changed", ("cleanup.policy", APPEND, "compact"))
    alter(side, TOPIC, "changed", ("cleanup.policy", APPEND, "compact"))
    shown(side, "after append", TOPIC, "changed", keys, {"cleanup.policy": "delete,compact"})
    alter(side, TOPIC, "changed", ("cleanup.policy", SUBTRACT, "delete"))
    shown(side, "after subtract", TOPIC, "changed", keys, {"cleanup.policy": "compact"})
    alter(side, TOPIC, "changed", ("cleanup.policy", SUBTRACT, "compact"))
    shown(side, "after subtract of all", TOPIC, "changed", keys, {"cleanup.policy": ""})
    alter(side, TOPIC, "changed", ("cleanup.policy", DELETE, None), ("retention.ms", DELETE, ""))
    shown(side, "after delete", TOPIC, "changed", keys, {"cleanup.policy": "delete"})
    alter(side, TOPIC, "changed", ("retention.ms", DELETE, None))
    for op in (("retention.ms", SET, None), ("retention.ms", SET, ""), ("retention.ms", SET, "x"), ("retention.ms", APPEND, "5"), ("retention.ms", SUBTRACT, "5"), ("no.such", SET, "1"),
               ("no.such", DELETE, None), ("no.such", APPEND, "1"), ("retention.ms", 4, "1"), ("retention.ms", -1, "1"), ("", SET, "1"), ("cleanup.policy", APPEND, None), ("cleanup.policy", APPEND, ""),
               ("cleanup.policy", SUBTRACT, "none"), ("cleanup.policy", APPEND, "none"), ("follower.replication.throttled.replicas", APPEND, "0:1"), ("follower.replication.throttled.replicas", APPEND, "0:1,1:1"),
               ("follower.replication.throttled.replicas", SUBTRACT, "1:1"), ("segment.bytes", SET, "5"), ("min.insync.replicas", SET, "1"), ("remote.storage.enable", SET, "true"), ("retention.ms", SET, " 7 "),
               ("compression.type", SET, "zstd")):
        alter(side, TOPIC, "changed", op, only=True)
        alter(side, TOPIC, "changed", op)
    shown(side, "after many", TOPIC, "changed", None, {"compression.type": "zstd"})
    alter(side, TOPIC, "changed", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    alter(side, TOPIC, "changed", ("retention.ms", SET, "3"), ("retention.ms", DELETE, None))
    alter(side, TOPIC, "changed", ("retention.ms", SET, "4"), ("no.such", SET, "5"))
    alter(side, TOPIC, "changed", ("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5"))
    alter(side, TOPIC, "changed")
    for name in ("no-such", "", "a b", "__cluster_metadata"):
        for setting, value in (("retention.ms", "1"), ("retention.ms", "x"), ("no.such", "1")):
            alter(side, TOPIC, name, (setting, SET, value))
            replace(side, TOPIC, name, (setting, value))
    shown(side, "after bad ones", TOPIC, "changed", keys)
    side.ask("IncrementalAlterConfigs", 1, {"Resources": []})
    same = {"ResourceType": TOPIC, "ResourceName": "changed", "Configs": [{"Name": "retention.ms", "ConfigOperation": SET, "Value": "9"}]}
    side.ask("IncrementalAlterConfigs", 1, {"Resources": [same, same]})
    side.ask("IncrementalAlterConfigs", 1, {"Resources": [same, {"ResourceType": TOPIC, "ResourceName": "no-such", "Configs": same["Configs"]}]})
    shown(side, "after two", TOPIC, "changed", keys, {"retention.ms": "9"})


def script_replace_topic(side):
    made(side, topic("replaced", Configs=[config("retention.ms", "5000"), config("cleanup.policy", "compact")]))
    for version in (0, 1, 2):
        replace(side, TOPIC, "replaced", ("max.message.bytes", f"50{version}"), version=version)
        shown(side, f"after v{version}", TOPIC, "replaced", ["retention.ms", "cleanup.policy", "max.message.bytes"], {"max.message.bytes": f"50{version}"})
    for values in ((("retention.ms", "x"),), (("no.such", "1"),), (("retention.ms", None),), (("retention.ms", ""),), (("", "1"),), (("retention.ms", "1"), ("retention.ms", "2")), (("retention.ms", "1"), ("no.such", "2")), ()):
        replace(side, TOPIC, "replaced", *values, only=True)
        replace(side, TOPIC, "replaced", *values)
        shown(side, f"after {values}", TOPIC, "replaced", ["retention.ms", "cleanup.policy", "max.message.bytes"], None if values else {"max.message.bytes": "1048588"})
    for name in ("no-such", "", "a b"):
        replace(side, TOPIC, name, ("retention.ms", "1"))
    for kind in (0, 1, 3, 64, -1):
        replace(side, kind, "replaced", ("retention.ms", "1"))
        alter(side, kind, "replaced", ("retention.ms", SET, "1"))
    side.ask("AlterConfigs", 2, {"Resources": []})


def script_alter_broker(side):
    shown_keys = ["log.retention.ms", "message.max.bytes", "num.io.threads", "log.cleaner.threads", "follower.replication.throttled.rate", "max.connections.per.ip", "log.retention.hours"]
    for name, value in (("1", "3600000"), ("", "7200000")):
        for op in (("log.retention.ms", SET, "360000000"), ("message.max.bytes", SET, "2000000"), ("no.such", SET, "1"), ("node.id", SET, "3"), ("log.dirs", SET, "/x"), ("log.retention.ms", SET, "x"),
                   ("num.network.threads", SET, "0"), ("log.retention.hours", SET, "3"), ("broker.id", SET, "1"), ("zookeeper.connect", SET, "x"), ("listeners", SET, "PLAINTEXT://:1"), ("process.roles", SET, "broker"),
                   ("max.connections.per.ip", SET, "500"), ("follower.replication.throttled.rate", SET, "-1"), ("log.cleaner.threads", APPEND, "1"), ("min.insync.replicas", SET, "0")):
            alter(side, BROKER, name, op, only=True)
        alter(side, BROKER, name, ("log.retention.ms", SET, value))
        shown(side, f"default after set at {name}", BROKER, "", None, None if name else {"log.retention.ms": value})
        shown(side, f"broker after set at {name}", BROKER, "1", shown_keys, {"log.retention.ms": "3600000"})
    made(side, topic("of-broker"))
    shown(side, "a topic of that broker", TOPIC, "of-broker", ["retention.ms", "max.message.bytes"])
    for name, value in (("1", "7200000"), ("", None)):
        alter(side, BROKER, name, ("log.retention.ms", DELETE, None))
        shown(side, f"broker after delete at {name}", BROKER, "1", shown_keys, {"log.retention.ms": value})
    replace(side, BROKER, "1", ("message.max.bytes", "3000000"))
    shown(side, "broker after replace", BROKER, "1", shown_keys, {"message.max.bytes": "3000000"})
    replace(side, BROKER, "1")
    shown(side, "broker after an empty replace", BROKER, "1", shown_keys, {"message.max.bytes": "1048588"})
    for name in ("2", "x", "-1"):
        alter(side, BROKER, name, ("log.retention.ms", SET, "1"))
    side.ask("IncrementalAlterConfigs", 1, {"Resources": [{"ResourceType": LOGGER, "ResourceName": "1", "Configs": [{"Name": "no.such.logger", "ConfigOperation": SET, "Value": "INFO"}]}]})


def script_loggers(side):
    """Levels of log lines. Each side has loggers of its own beside `root`: one of them stands for all."""
    everything = describe(side, LOGGER, "1")["Results"][0]["Configs"]
    area = sorted(item["Name"] for item in everything if item["Name"] not in ("root", "request"))[0]

    def level(label):
        for name in (area, "root"):
            answer = describe(side, LOGGER, "1", keys=[name], IncludeSynonyms=True)
            for item in answer["Results"][0]["Configs"]:
                item["Name"] = "root" if item["Name"] == "root" else "AREA"
            side.note(f"{label}: the level of {'root' if name == 'root' else 'AREA'}", answer)

    def change(*ops, name="1", version=1, only=False, on="a"):
        answer = side.ask("IncrementalAlterConfigs", version, {"ValidateOnly": only, "Resources": [{"ResourceType": LOGGER, "ResourceName": name, "Configs": [
            {"Name": area if n == "AREA" else n, "ConfigOperation": op, "Value": v} for n, op, v in ops]}]}, on=on, quiet=True)
        label = f"{name!r} {ops} v{version}{' only' if only else ''} {on}"
        side.note(label, answer)
        level(label)

    change(("root", SET, "INFO"))
    for value in ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "debug", "OFF", "ALL", "", "NOPE", " INFO", None):
        change(("AREA", SET, value))
    change(("AREA", SET, "WARN"), version=0)
    for value in (None, "", "x"):
        change(("AREA", DELETE, value))
        change(("root", DELETE, value))
    change(("root", SET, "ERROR"))
    change(("AREA", SET, "DEBUG"))
    change(("root", SET, "WARN"))
    for op in (APPEND, SUBTRACT, 4, -1):
        change(("AREA", op, "INFO"))
        change(("no.such.logger", op, "INFO"))
    for op in (SET, DELETE):
        for name in ("no.such.logger", "", "ROOT"):
            change((name, op, "INFO"))
    change(("AREA", SET, "FATAL"), only=True)
    change(("AREA", SET, "NOPE"), only=True)
    change(("AREA", SET, "FATAL"), ("AREA", SET, "INFO"))
    change(("AREA", SET, "FATAL"), ("no.such.logger", SET, "INFO"))
    change(("AREA", SET, "FATAL"), ("root", DELETE, None))
    change()
    for name in ("2", "x", "", "-1", "01", " 1"):
        change(("AREA", SET, "FATAL"), name=name)
        told(side, f"loggers of {name!r}", describe(side, LOGGER, name, keys=["root"]))
    change(("AREA", SET, "ERROR"), on="controller")
    change(("no.such.logger", SET, "ERROR"), on="controller")
    resource = {"ResourceType": LOGGER, "ResourceName": "1", "Configs": [{"Name": area, "ConfigOperation": SET, "Value": "TRACE"}]}
    other = {"ResourceType": BROKER, "ResourceName": "1", "Configs": [{"Name": "message.max.bytes", "ConfigOperation": SET, "Value": "1048588"}]}
    for label, resources in (("twice", [resource, resource]), ("of two names", [resource, {**resource, "ResourceName": "01"}]),
                             ("and a broker", [resource, other]), ("after a broker", [other, resource])):
        side.note(f"loggers {label}", side.ask("IncrementalAlterConfigs", 1, {"Resources": resources}, quiet=True))
        level(label)
    side.note("replaced", side.ask("AlterConfigs", 2, {"Resources": [{"ResourceType": LOGGER, "ResourceName": "1", "Configs": [{"Name": "root", "Value": "INFO"}]}]}, quiet=True))
    change(("AREA", DELETE, None))
    change(("root", SET, "INFO"))


def script_listeners(side):
    """What both refuse, and what both would take: only asked, for Kafka cannot take a listener away again."""
    broker, controller = f"PLAINTEXT://127.0.0.1:{side.port}", f"CONTROLLER://127.0.0.1:{side.controller_port}"
    names = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,NEW:PLAINTEXT"

    def change(label, *ops, name="1", only=False):
        answer = side.ask("IncrementalAlterConfigs", 1, {"ValidateOnly": only, "Resources": [{"ResourceType": BROKER, "ResourceName": name, "Configs": [
            {"Name": n, "ConfigOperation": op, "Value": v} for n, op, v in ops]}]}, quiet=True)
        side.note(label, answer)

    def listeners(label, *values, **more):
        change(label, ("listeners", SET, ",".join(values)), **more)

    listeners("without a protocol", broker, controller, "NEW://127.0.0.1:0")
    listeners("empty")
    listeners("no endpoint", "junk")
    listeners("twice", broker, broker, controller)
    listeners("one port", broker, controller, f"SSL://127.0.0.1:{side.port}")
    listeners("no controller", broker)
    listeners("nobody between brokers", controller, only=True)
    listeners("of all brokers", broker, controller, name="")
    listeners("as they are", broker, controller, only=True)
    change("advertised", ("advertised.listeners", SET, broker))
    change("inter broker", ("inter.broker.listener.name", SET, "NEW"))
    change("map of all", ("listener.security.protocol.map", SET, names), name="")
    for value in ("junk", "PLAINTEXT:NONE,CONTROLLER:PLAINTEXT", "CONTROLLER:PLAINTEXT", "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT"):
        change(f"map {value}", ("listener.security.protocol.map", SET, value))
    change("map", ("listener.security.protocol.map", SET, names), only=True)
    change("map and listener", ("listener.security.protocol.map", SET, names), ("listeners", SET, f"{broker},{controller},NEW://127.0.0.1:0"), only=True)
    change("listener and map without it", ("listeners", SET, f"{broker},{controller},NEW://127.0.0.1:0"), ("listener.security.protocol.map", SET, "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"))
    change("deleted", ("listeners", DELETE, None), ("listener.security.protocol.map", DELETE, None), only=True)


def script_alter_others(side):
    for op in (("consumer.session.timeout.ms", SET, "50000"), ("consumer.session.timeout.ms", SET, "1"), ("consumer.session.timeout.ms", SET, "x"), ("no.such", SET, "1"), ("consumer.heartbeat.interval.ms", SET, "6000"),
               ("share.auto.offset.reset", SET, "latest"), ("share.auto.offset.reset", SET, "x"), ("streams.num.standby.replicas", SET, "1"), ("streams.num.standby.replicas", SET, "9"), ("consumer.session.timeout.ms", DELETE, None)):
        alter(side, GROUP, "configured", op, only=True)
        alter(side, GROUP, "configured", op)
    told(side, "group", describe(side, GROUP, "configured", IncludeSynonyms=True))
    alter(side, GROUP, "", ("consumer.session.timeout.ms", SET, "50000"))
    replace(side, GROUP, "configured", ("consumer.session.timeout.ms", "50000"))
    for op in (("interval.ms", SET, "5000"), ("interval.ms", SET, "5"), ("metrics", SET, "org.apache"), ("match", SET, "client_id=a"), ("match", SET, "b=a"), ("no.such", SET, "1"), ("metrics", APPEND, "a.b"), ("match", APPEND, "client_id=b"), ("metrics", SUBTRACT, "a.b")):
        alter(side, METRICS, "watched", op)
    alter(side, METRICS, "", ("interval.ms", SET, "5000"))
    told(side, "metrics", describe(side, METRICS, "watched", IncludeSynonyms=True))
    for version in (0, 1):
        answer = side.ask("ListConfigResources", version, {}, quiet=True)
        side.note(f"ListConfigResources v{version}", {**answer, "ConfigResources": [r for r in answer["ConfigResources"] if r.get("ResourceType", METRICS) in (METRICS, GROUP)]})
    for kinds in ([GROUP], [METRICS], [BROKER], [BROKER, METRICS], [LOGGER], [1], [0], [99], [METRICS, METRICS]):
        side.ask("ListConfigResources", 1, {"ResourceTypes": kinds})
    alter(side, METRICS, "watched", ("interval.ms", DELETE, None), ("metrics", DELETE, None), ("match", DELETE, None))
    alter(side, GROUP, "configured", ("consumer.session.timeout.ms", DELETE, None), ("consumer.heartbeat.interval.ms", DELETE, None), ("share.auto.offset.reset", DELETE, None), ("streams.num.standby.replicas", DELETE, None))
    side.until(lambda a: not a["ConfigResources"], "ListConfigResources", 1, {"ResourceTypes": [GROUP, METRICS]})
