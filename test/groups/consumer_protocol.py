"""Consumer groups by the protocol of KIP-848 with real clients: Kafka's Java consumer, librdkafka, ConsumerGroupCommand,
and an Apache Kafka broker that goes on with our groups, and we with its."""
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
sys.path.insert(0, str(HERE.parent / "clients"))
import clients  # noqa: E402
import kafka  # noqa: E402
from dohle import ROOT, Node  # noqa: E402

CLASSES = ROOT / "build/groups"
# Heartbeats every half second, so that what waits for one does not take five.
QUICK = {"offsets.topic.num.partitions": "2", "group.consumer.min.heartbeat.interval.ms": "500",
         "group.consumer.heartbeat.interval.ms": "500", "group.initial.rebalance.delay.ms": "100"}


def command(*arguments, name="ConsumerProtocol"):
    return ["java", "-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka.LIBS}/*:{CLASSES}",
            name, *arguments]


def compile_java(name="ConsumerProtocol"):
    CLASSES.mkdir(parents=True, exist_ok=True)
    source, made = HERE / f"{name}.java", CLASSES / f"{name}.class"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["javac", "-cp", f"{kafka.LIBS}/*:{CLASSES}", "-d", str(CLASSES), str(source)], check=True)


def java_consumer(suite):
    """Each scenario of ConsumerProtocol.java counts as one test."""
    with Node(QUICK) as node:
        done = subprocess.run(command("run", node.address), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=240)
        lines = [line.split(" ", 2) for line in done.stdout.splitlines() if line.startswith(("ok ", "FAIL "))]
        if not lines:
            raise RuntimeError(done.stderr[-800:])
        for word, name, rest in lines:
            def test(word=word, rest=rest):
                assert word == "ok", rest
            test.__name__ = "java_" + name
            suite.run(test)


def test_librdkafka_shares_partitions():
    script = """
import sys, time
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
servers = sys.argv[1]
admin = AdminClient({"bootstrap.servers": servers})
for made in admin.create_topics([NewTopic("rd", 6, 1)]).values(): made.result()
producer = Producer({"bootstrap.servers": servers})
for i in range(300): producer.produce("rd", b"%d" % i)
producer.flush()
def consumer():
    made = Consumer({"bootstrap.servers": servers, "group.id": "rd", "group.protocol": "consumer", "auto.offset.reset": "earliest"})
    made.subscribe(["^r[d-z]$"] if sys.argv[2] == "regex" else ["rd"])
    return made
all, read = [consumer()], 0
end = time.monotonic() + 30
while read < 300 and time.monotonic() < end:
    message = all[0].poll(0.2)
    read += message is not None and message.error() is None
assert read == 300, read
all[0].commit(asynchronous=False)
all.append(consumer())
while [len(c.assignment()) for c in all] != [3, 3] and time.monotonic() < end:
    for c in all: c.poll(0.1)
assert [len(c.assignment()) for c in all] == [3, 3], [c.assignment() for c in all]
for c in all: c.close()
"""
    python = clients.BUILD / "venv/bin/python"
    if not python.exists():
        clients.make_python()
    for how in ("names", "regex"):
        with Node(QUICK) as node:
            done = subprocess.run([str(python), "-c", script, node.address, how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  timeout=90)
            assert done.returncode == 0, f"{how}: {done.stderr[-600:]}"


def described(address, seconds=40):
    """What a coordinator says of the group, once it has loaded it."""
    limit = time.monotonic() + seconds
    while True:
        done = subprocess.run(command("describe", address, "held"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        if done.returncode == 0 and done.stdout.count("\n") == 3:
            return done.stdout
        assert time.monotonic() < limit, done.stdout + done.stderr[-500:]
        time.sleep(0.5)


def hold(address):
    """Two members that share a topic and are then killed: their records stay."""
    held = subprocess.Popen(command("hold", address, "held"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert held.stdout.readline().strip() == "ready"
        return described(address)
    finally:
        held.kill()
        held.wait()


def test_kafka_goes_on_with_our_group():
    with Node({"offsets.topic.num.partitions": "2"}) as node:
        ours = hold(node.address)
        text = kafka.tool("consumer.group.ConsumerGroupCommand", "--bootstrap-server", node.address, "--describe", "--group", "held")
        assert text.count("\nheld") == 6, text
        node.stop()
        with kafka.Kafka(data=node.directory) as broker:
            broker.start()
            theirs = described(broker.address)
    assert ours == theirs, f"we said\n{ours}Kafka says\n{theirs}"


def test_we_go_on_with_a_group_of_kafka():
    with kafka.Kafka(settings={"offsets.topic.num.partitions": "2"}) as broker:
        broker.format()
        broker.start()
        theirs = hold(broker.address)
        broker.stop()
        with Node(data=broker.directory) as node:
            ours = described(node.address)
    assert ours == theirs, f"Kafka said\n{theirs}we say\n{ours}"


def run(suite):
    why = kafka.available()
    if why is not None:
        suite.skip("consumer_protocol", why)
        return
    compile_java()
    java_consumer(suite)
    suite.run(test_librdkafka_shares_partitions, test_kafka_goes_on_with_our_group, test_we_go_on_with_a_group_of_kafka)
