"""A directory of Apache Kafka with transactions left open that hold offsets: we answer as Kafka does on the same directory, through
changes and deletions, and Kafka goes on with it behind us and ends them."""
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
import consumer_protocol  # noqa: E402
import kafka  # noqa: E402
import kmsg  # noqa: E402
from dohle import DOHLE, Node  # noqa: E402

SETTINGS = {"offsets.topic.num.partitions": "1"}
GROUPS = ["mixed", "all-committed", "all-aborted", "all-open", "left", "never"]
WORDS = [{"Name": "words", "PartitionIndexes": list(range(9))}, {"Name": "gone", "PartitionIndexes": [0, 1]}]
LATER = (14, 15, 16)  # The coordinator is loading, or not there yet.


def java(*arguments):
    done = subprocess.run(consumer_protocol.command(*arguments, name="OpenTransactions"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-1500:]


def plain(value):
    """What an answer says, whatever the order in which it does."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items() if name not in ("ThrottleTimeMs", "ErrorMessage")}
    if isinstance(value, list):
        return sorted((plain(item) for item in value), key=lambda item: json.dumps(item, default=repr))
    return value


def ask(client, done, api, version, values, seconds=60):
    """The answer, once it is `done`."""
    limit = time.monotonic() + seconds
    while True:
        answer = client.ask(api, version, values)
        if done(answer):
            return answer
        assert time.monotonic() < limit, f"{api} {values}: {answer}"
        time.sleep(0.1)


def fetch(client, version, group, topics, stable):
    """An answer of OffsetFetch, once the coordinator has loaded the group."""
    if version < 8:
        return ask(client, lambda a: a["ErrorCode"] not in LATER, "OffsetFetch", version, {"GroupId": group, "Topics": topics, "RequireStable": stable})
    return ask(client, lambda a: a["Groups"][0]["ErrorCode"] not in LATER, "OffsetFetch", version,
               {"Groups": [{"GroupId": group, "Topics": topics}], "RequireStable": stable})


def answers(port):
    """{what was asked: what was answered}, of everything that can show an offset or a group."""
    out = {}
    with kmsg.Connection(port) as client:
        for group in GROUPS:
            for version in (7, 9):
                for stable in (False, True):
                    for topics in (None, WORDS):
                        out[f"fetch v{version} {group} {'stable' if stable else 'any'} {'all' if topics is None else 'named'}"] = \
                            fetch(client, version, group, topics, stable)
        out["list"] = client.ask("ListGroups", 5, {})
        out["describe"] = client.ask("DescribeGroups", 6, {"Groups": GROUPS})
    return plain(out)


def partition(answer, topic, index):
    """(error, offset) of one partition of a fetch, None if it is not there."""
    for found in answer["Topics"]:
        for item in found["Partitions"]:
            if (found["Name"], item["PartitionIndex"]) == (topic, index):
                return item["ErrorCode"], item["CommittedOffset"]


def change(port):
    """Commits, deletions of offsets, of a group and of a topic, on top of what the transactions hold; the answers then."""
    with kmsg.Connection(port) as client:
        out = {"commit": client.ask("OffsetCommit", 8, {"GroupId": "mixed", "GenerationIdOrMemberEpoch": -1, "Topics": [
            {"Name": "words", "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 70}, {"PartitionIndex": 7, "CommittedOffset": 70}]}]})}
        out["delete"] = client.ask("OffsetDelete", 0, {"GroupId": "mixed", "Topics": [{"Name": "words", "Partitions": [{"PartitionIndex": i} for i in (3, 8)]}]})
        out["group"] = client.ask("DeleteGroups", 2, {"GroupsNames": ["all-open", "never"]})
        out["topic"] = client.ask("DeleteTopics", 5, {"TopicNames": ["gone"], "TimeoutMs": 20000})
        ask(client, lambda a: partition(a, "gone", 0) is None, "OffsetFetch", 7, {"GroupId": "mixed", "Topics": None, "RequireStable": False})
    return {**plain(out), **answers(port)}


def ended(address, port):
    """The transactions are aborted; the answers once the markers are there."""
    java("end", address)
    with kmsg.Connection(port) as client:
        for group in ("mixed", "left"):
            ask(client, lambda a: all(i["ErrorCode"] == 0 for t in a["Topics"] for i in t["Partitions"]), "OffsetFetch", 7,
                {"GroupId": group, "Topics": WORDS, "RequireStable": True})
    return answers(port)


def same(theirs, ours, where):
    assert theirs.keys() == ours.keys()
    wrong = [f"{name}:\n  Kafka {theirs[name]}\n  {where} {ours[name]}" for name in theirs if theirs[name] != ours[name]]
    assert not wrong, "\n".join(wrong)


def kafka_goes_on(directory, out):
    """Kafka's answers on its own directory: as it was left, changed, ended."""
    with kafka.Kafka(data=directory, settings=SETTINGS) as broker:
        broker.start()
        out.update(left=answers(broker.port), changed=change(broker.port))
        out.update(ended=ended(broker.address, broker.port))


def holds(group, node):
    """What is said of the group's open transactions."""
    done = subprocess.run([DOHLE, "explain", "member", group, "m", "--data", node.directory, "--json"], stdout=subprocess.PIPE, timeout=20)
    text = subprocess.run([DOHLE, "explain", "member", group, "m", "--data", node.directory], stdout=subprocess.PIPE, timeout=20, text=True).stdout
    told = json.loads(done.stdout)["openTransactions"]
    assert ("open transactions hold" in text) == (told["offsets"] > 0), text
    return told["offsets"]


def test_transactions_that_kafka_left_open():
    theirs = {}
    with kafka.Kafka(settings=SETTINGS) as broker, tempfile.TemporaryDirectory(prefix="dohle-test-") as scratch:
        broker.format()
        broker.start()
        java("make", broker.address)
        first = answers(broker.port)
        broker.stop()
        copy = f"{scratch}/copy"
        shutil.copytree(broker.directory, copy)
        beside = threading.Thread(target=kafka_goes_on, args=(broker.directory, theirs))
        beside.start()
        try:
            with Node(SETTINGS, data=copy) as node:
                ours = {"left": answers(node.port)}
                counts = {group: holds(group, node) for group in GROUPS[:-1]}
                ours["changed"] = change(node.port)
                counts["mixed, then"] = holds("mixed", node)
                node.stop()
                said = node.said()
        finally:
            beside.join()
        same(first, theirs["left"], "Kafka again")
        same(first, ours["left"], "Dohle")
        same(theirs["changed"], ours["changed"], "Dohle")
        # The plan of OpenTransactions.java, so that it is not nothing that is the same.
        stable, any_one = (ours["left"][f"fetch v7 mixed {word} named"] for word in ("stable", "any"))
        assert [partition(stable, "words", i) for i in range(9)] == [(88, -1), (0, 20), (0, 10), (88, -1), (88, -1), (0, -1), (0, 39), (88, -1), (88, -1)], stable
        assert [partition(any_one, "words", i)[1] for i in range(9)] == [10, 20, 10, -1, 60, -1, 39, 57, 10], any_one
        assert counts == {"mixed": 9, "all-committed": 0, "all-aborted": 0, "all-open": 2, "left": 1, "mixed, then": 4}, counts
        assert "has 12 offsets of open transactions" in said, said
        with kafka.Kafka(data=copy, settings=SETTINGS) as behind:
            behind.start()
            same({name: theirs["changed"][name] for name in first}, answers(behind.port), "Kafka behind Dohle")
            same(theirs["ended"], ended(behind.address, behind.port), "Kafka behind Dohle")


def run(suite):
    why = kafka.available()
    if why is not None:
        suite.skip("open_transactions", why)
        return
    consumer_protocol.compile_java("OpenTransactions")
    suite.run(test_transactions_that_kafka_left_open)
