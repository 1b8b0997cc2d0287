"""Floods and operations: more than the server can do at once hurts who asks for it, nobody else; copies of a live directory start."""
import re
import shutil
import struct
import subprocess
import tempfile
import threading
import time
import urllib.request

from calls import Caller
from dohle import Node, free_port
from wire import Raw, fetch, frame, header, metadata


def gauge(port, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        return float(re.search(rf"^{name} (\S+)$", answer.read().decode(), re.M).group(1))


def waits_until(state, seconds=30):
    limit = time.monotonic() + seconds
    while not state():
        assert time.monotonic() < limit, "it does not come"
        time.sleep(0.05)


def test_metadata_of_many_partitions_in_a_loop():
    """O6: three connections ask for everything without end; a fourth is answered between."""
    with Node() as node, Caller(node) as caller:
        made = caller.call("CreateTopics", 7, {"topics": [{"name": "wide", "numPartitions": 4000, "replicationFactor": 1, "assignments": [],
                                                           "configs": []}], "timeoutMs": 30000, "validateOnly": False})
        assert made["topics"][0]["errorCode"] == 0, made
        ended = threading.Event()
        answers = []

        def ask():
            with Raw(node.port, seconds=30) as raw:
                while not ended.is_set():
                    raw.send(metadata(1))
                    answers.append(len(raw.reply()[1]))

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            waits_until(lambda: len(answers) >= 3)
            for _ in range(20):
                assert caller.call("ApiVersions", 0, {})["errorCode"] == 0
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        assert min(answers) > 4000 * 20


def test_parked_fetches():
    """O7: fetches that ask for more than comes, for ever, cost a little each, and nothing when their clients go."""
    http = free_port()
    with Node({"dohle.http.listener": f"127.0.0.1:{http}"}) as node:
        node.kcat("-P", "-t", "t", data=b"x\n")
        raws = []
        try:
            for i in range(200):
                raws.append(Raw(node.port))
                raws[-1].send(fetch(i, b"t", offset=1, wait_ms=(1 << 31) - 1, min_bytes=(1 << 31) - 1))
            waits_until(lambda: gauge(http, "dohle_requests_in_process") >= 200)
            assert node.kcat("-C", "-t", "t", "-o", "beginning", "-e", "-q") == b"x\n"
        finally:
            for raw in raws:
                raw.socket.close()
        waits_until(lambda: gauge(http, "dohle_requests_in_process") == 0)


def test_fetch_sessions_are_used_up():
    """O8: who finds no place for a session is served without one."""
    with Node({"max.incremental.fetch.session.cache.slots": "8"}) as node:
        node.kcat("-P", "-t", "t", data=b"x\n")
        got = []
        for _ in range(10):
            with Caller(node) as caller:
                answer = caller.call("Fetch", 12, {
                    "maxWaitMs": 0, "minBytes": 0, "maxBytes": 1 << 20, "isolationLevel": 0, "sessionId": 0, "sessionEpoch": 0, "rackId": "",
                    "topics": [{"topic": "t", "partitions": [{"partition": 0, "currentLeaderEpoch": -1, "fetchOffset": 0, "lastFetchedEpoch": -1,
                                                              "logStartOffset": -1, "partitionMaxBytes": 1 << 20}]}], "forgottenTopicsData": []})
            assert answer["errorCode"] == 0 and answer["responses"][0]["partitions"][0]["highWatermark"] == 1, answer
            got.append(answer["sessionId"])
        assert [session != 0 for session in got] == [True] * 8 + [False] * 2, got


def test_producer_ids_in_a_storm():
    """O10: ids beyond several blocks, asked for without waiting: each is new."""
    with Node() as node, Raw(node.port, seconds=60) as raw:
        ask = frame(header(22, 0, 1) + struct.pack(">hi", -1, 60000))
        ids = set()
        for _ in range(25):
            raw.send(ask * 100)
            for _ in range(100):
                error, producer, epoch = struct.unpack(">hqh", raw.reply()[1][4:16])
                assert error == 0 and epoch == 0
                ids.add(producer)
        assert len(ids) == 2500


def test_many_members_join_together():
    """O11: 100 members of one group at once: one generation has all of them, within the time of a rebalance."""
    with Node({"group.initial.rebalance.delay.ms": "500"}) as node:
        with Caller(node) as caller:
            caller.call("FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": ["g"]})
            group, protocol = b"g", b"p"

            def text(data):
                return struct.pack(">h", len(data)) + data

            body = text(group) + struct.pack(">ii", 30000, 60000) + text(b"") + text(b"consumer")
            body += struct.pack(">i", 1) + text(protocol) + struct.pack(">i", 1) + b"m"
            raws = [Raw(node.port, seconds=60) for _ in range(100)]
            try:
                pending = raws
                limit = time.monotonic() + 60
                while pending:  # JoinGroup 1: the coordinator may be still loading.
                    assert time.monotonic() < limit
                    for raw in pending:
                        raw.send(frame(header(11, 1, 1) + body))
                    answers = {raw: raw.reply()[1] for raw in pending}
                    done = {raw for raw, data in answers.items() if data[:2] == b"\0\0"}
                    assert all(data[:2] in (b"\0\0", struct.pack(">h", 14), struct.pack(">h", 16)) for data in answers.values()), answers
                    pending = [raw for raw in pending if raw not in done]
                generations = {struct.unpack(">i", data[2:6])[0] for data in answers.values()}
                assert len(generations) == 1, generations
            finally:
                for raw in raws:
                    raw.socket.close()


def test_regex_that_would_backtrack():
    """W28: patterns that take an engine with backtracking for ever are answered at once; what grows when compiled is refused."""
    with Node() as node:
        node.kcat("-P", "-t", "a" * 240, data=b"x\n")
        with Caller(node) as caller:
            for number, (pattern, wanted) in enumerate((("(a|a)*b", 0), ("(a+)+(a+)+(a+)+b", 0), ("(a*)*(a*)*.{0,200}c", 0),
                                                        ("((a{100}){100}){100}", 128), ("(", 128))):
                group = f"g{number}"
                beat = {"groupId": group, "memberId": f"m{number}", "memberEpoch": 0, "instanceId": None, "rackId": None,
                        "rebalanceTimeoutMs": 60000, "subscribedTopicNames": None, "subscribedTopicRegex": pattern,
                        "serverAssignor": None, "topicPartitions": []}
                caller.call("FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": [group]})
                limit, code = time.monotonic() + 60, 15
                while code in (14, 15, 16):  # The coordinator may be still loading.
                    assert time.monotonic() < limit
                    code = caller.call("ConsumerGroupHeartbeat", 1, beat)["errorCode"]
                assert code == wanted, (pattern, code)
            started = time.monotonic()
            node.kcat("-L")
            assert time.monotonic() - started < 10


def test_copy_of_a_live_directory():
    """L6: a plain copy of the files, taken while records come in, starts and holds a valid beginning."""
    copy = tempfile.mkdtemp(prefix="dohle-copy-")
    try:
        with Node() as node:
            node.kcat("-P", "-t", "t", data=b"".join(b"%d\n" % i for i in range(1000)))
            producer = subprocess.Popen(["kcat", "-b", node.address, "-P", "-t", "t"], stdin=subprocess.PIPE)
            ended = threading.Event()

            def feed():
                number = 1000
                while not ended.is_set():
                    producer.stdin.write(b"".join(b"%d\n" % i for i in range(number, number + 100)))
                    producer.stdin.flush()
                    number += 100
                    time.sleep(0.01)

            thread = threading.Thread(target=feed)
            thread.start()
            try:
                waits_until(lambda: int(node.kcat("-Q", "-t", "t:0:-1").split()[-1]) > 1500)
                done = subprocess.run(["cp", "-r", f"{node.directory}/.", copy], stderr=subprocess.PIPE, check=False)
            finally:
                ended.set()
                thread.join()
                producer.stdin.close()
                producer.wait(timeout=30)
            # What is renamed or removed meanwhile cannot be copied: cp says so and goes on.
            assert done.returncode in (0, 1), done.stderr
        with Node(data=copy) as node:
            got = node.kcat("-C", "-t", "t", "-o", "beginning", "-e", "-q").split()
            assert len(got) >= 1000 and got == [b"%d" % i for i in range(len(got))], len(got)
            node.kcat("-P", "-t", "t", data=b"more\n")
    finally:
        shutil.rmtree(copy, ignore_errors=True)


TESTS = [test_metadata_of_many_partitions_in_a_loop, test_parked_fetches, test_fetch_sessions_are_used_up, test_producer_ids_in_a_storm,
         test_many_members_join_together, test_regex_that_would_backtrack, test_copy_of_a_live_directory]
