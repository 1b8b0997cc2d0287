"""Classic groups with real clients: Kafka's Java consumer (range, cooperative-sticky, static members), ConsoleConsumer, kafkajs,
@platformatic/kafka, ConsumerGroupCommand; an Apache Kafka broker that goes on with our groups, and we with its."""
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
sys.path.insert(0, str(HERE.parent / "clients"))
import clients  # noqa: E402
import consumer_protocol  # noqa: E402
import kafka  # noqa: E402
from dohle import Node  # noqa: E402

QUICK = {"offsets.topic.num.partitions": "2", "group.initial.rebalance.delay.ms": "100", "num.partitions": "2"}


def java_consumer(suite):
    consumer_protocol.compile_java()
    consumer_protocol.compile_java("ClassicProtocol")
    with Node(QUICK) as node:
        done = subprocess.run(consumer_protocol.command(node.address, name="ClassicProtocol"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=200)
    lines = [line.split(" ", 2) for line in done.stdout.splitlines() if line.startswith(("ok ", "FAIL "))]
    if len(lines) != 3:
        raise RuntimeError(done.stdout + done.stderr[-800:])
    for word, name, rest in lines:
        def test(word=word, rest=rest):
            assert word == "ok", rest
        test.__name__ = "java_classic_" + name
        suite.run(test)


def console(address, group, count):
    """Lines that ConsoleConsumer reads in the group, from where it stands."""
    text = kafka.tool("consumer.ConsoleConsumer", "--bootstrap-server", address, "--topic", "words", "--group", group, "--max-messages",
                      str(count), "--timeout-ms", "30000", "--command-property", "auto.offset.reset=earliest")
    return text.split()


def groups(address, *arguments, check=True):
    return kafka.tool("consumer.group.ConsumerGroupCommand", "--bootstrap-server", address, *arguments, check=check)


def fill(node, count=10):
    node.kcat("-P", "-t", "words", "-p", "0", data=b"".join(b"w%d\n" % i for i in range(count)))


def test_consumer_group_command():
    with Node(QUICK) as node:
        fill(node)
        assert console(node.address, "tools", 4) == ["w0", "w1", "w2", "w3"]
        assert groups(node.address, "--list").split() == ["tools"]
        described = groups(node.address, "--describe", "--group", "tools").split("\n")
        row = next(line.split() for line in described if line.startswith("tools") and line.split()[2] == "0")
        assert row[3:6] == ["4", "10", "6"], described
        with subprocess.Popen(["kcat", "-b", node.address, "-G", "tools", "words"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as member:
            limit = time.monotonic() + 30
            while "rdkafka-" not in (members := groups(node.address, "--describe", "--group", "tools", "--members", "--verbose")):
                assert time.monotonic() < limit, members
            assert "words" in members and " range " in groups(node.address, "--describe", "--group", "tools", "--state"), members
            refused = groups(node.address, "--delete", "--group", "tools", check=False)
            assert "GroupNotEmptyException" in refused or "not empty" in refused, refused
            member.terminate()
        groups(node.address, "--reset-offsets", "--group", "tools", "--topic", "words:0", "--to-offset", "7", "--execute")
        assert console(node.address, "tools", 3) == ["w7", "w8", "w9"]
        groups(node.address, "--delete", "--group", "tools")
        assert groups(node.address, "--list").split() == []


def test_kafka_goes_on_with_our_classic_group_and_we_with_its():
    with Node(QUICK) as node:
        fill(node)
        assert console(node.address, "resumed", 4) == ["w0", "w1", "w2", "w3"]
        node.stop()
        with kafka.Kafka(data=node.directory) as broker:
            broker.start()
            assert console(broker.address, "resumed", 3) == ["w4", "w5", "w6"]
            broker.stop()
        node.start()
        assert console(node.address, "resumed", 3) == ["w7", "w8", "w9"]


def reader(library):
    def test():
        with Node(QUICK) as node:
            fill(node, 100)
            done = subprocess.run(["node", str(HERE / "readers.mjs"), library, node.address, "words", library, "100"], text=True, timeout=60,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "CLIENTS_NODE": str(clients.BUILD / "node")})
            assert done.returncode == 0 and done.stdout.strip() == "100", (done.stdout, done.stderr[-500:])
            row = next(line.split() for line in groups(node.address, "--describe", "--group", library).split("\n")
                       if line.startswith(library) and line.split()[2] == "0")
            assert row[3:6] == ["100", "100", "0"], row
    test.__name__ = f"{library}_reads_in_a_group"
    return test


def node_clients(suite):
    lacks = clients.missing_toolchain("node")
    if lacks:
        suite.skip("kafkajs_and_platformatic_read_in_groups", lacks)
        return
    (clients.BUILD / "node").mkdir(parents=True, exist_ok=True)
    clients.make_node()
    suite.run(reader("kafkajs"), reader("platformatic"))


def run(suite):
    why = kafka.available()
    if why is not None:
        suite.skip("classic", why)
        return
    java_consumer(suite)
    suite.run(test_consumer_group_command, test_kafka_goes_on_with_our_classic_group_and_we_with_its)
    node_clients(suite)
