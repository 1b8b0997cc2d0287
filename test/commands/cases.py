"""The everyday commands as scenarios that hold for any broker; both suites run them."""
import json
import os
import subprocess
import time

from dohle import DOHLE

BROKER = {"address": None}


def dohle(*arguments, data=None, code=0, env=None, seconds=60):
    """Run a command against the broker; standard output as text. Standard error goes into `dohle.errors`."""
    done = subprocess.run([DOHLE, *arguments, "-b", BROKER["address"]], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=seconds, env={**os.environ, **(env or {})})
    dohle.errors = done.stderr.decode(errors="replace")
    assert done.returncode == code, f"{arguments}: exit {done.returncode}, not {code}: {done.stdout!r} {dohle.errors}"
    return done.stdout.decode()


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


# ---- topics -----------------------------------------------------------------------------------

def test_topics():
    dohle("topic", "create", "t-words", "t-lines", "--partitions", "3", "--config", "retention.ms=3600000")
    listed = {t["topic"]: t for t in lines(dohle("topic", "list", "--json"))}
    assert listed["t-words"] == {"topic": "t-words", "partitions": 3, "replicas": 1, "underReplicated": 0}, listed
    assert "t-lines " in dohle("topic", "list")
    dohle("topic", "alter", "t-words", "--partitions", "5", "--config", "cleanup.policy=compact")
    [topic] = lines(dohle("topic", "describe", "t-words", "--json"))
    assert [p["partition"] for p in topic["partitions"]] == list(range(5)), topic
    assert topic["settings"] == {"retention.ms": "3600000", "cleanup.policy": "compact"}, topic
    dohle("topic", "alter", "t-words", "--unset", "retention.ms")
    [topic] = lines(dohle("topic", "describe", "t-words", "--json"))
    assert topic["settings"] == {"cleanup.policy": "compact"}, topic
    assert "  cleanup.policy=compact\n" in dohle("topic", "describe", "t-words")
    dohle("topic", "delete", "t-words", "t-lines")
    assert not {"t-words", "t-lines"} & {t["topic"] for t in lines(dohle("topic", "list", "--json"))}


def test_topic_errors():
    dohle("topic", "create", "t-there")
    dohle("topic", "create", "t-there", code=1)
    assert "TOPIC_ALREADY_EXISTS" in dohle.errors, dohle.errors
    assert "is there already" in dohle("topic", "create", "t-there", "--if-not-exists")
    dohle("topic", "create", "not good", code=1)
    assert "INVALID_TOPIC_EXCEPTION" in dohle.errors, dohle.errors
    dohle("topic", "create", "t-other", "--config", "no.such.setting=1", code=1)
    assert "INVALID_CONFIG" in dohle.errors, dohle.errors
    dohle("topic", "delete", "t-there", "t-thera", code=1)
    assert 'did you mean "t-there"?' in dohle.errors, dohle.errors
    dohle("topic", "alter", "t-there", code=2)
    assert "nothing is to be altered" in dohle.errors, dohle.errors
    dohle("topic", "delete", "t-there")


def test_cluster_brokers_and_quorum():
    brokers = json.loads(dohle("cluster", "brokers", "--json"))["brokers"]
    assert [(broker["id"], broker["fenced"]) for broker in brokers] == [(1, False)], brokers
    assert f"broker 1      {brokers[0]['host']}:{brokers[0]['port']}  alive" in dohle("cluster", "brokers")
    quorum = json.loads(dohle("cluster", "quorum", "--json"))
    assert quorum["leader"] == 1 and [voter["id"] for voter in quorum["voters"]] == [1], quorum
    assert 0 < quorum["highWatermark"] <= quorum["voters"][0]["logEndOffset"], quorum
    said = dohle("cluster", "quorum")
    assert said.startswith(f"leader 1 in epoch {quorum['epoch']}, committed up to ") and ", leads\n" in said, said


def test_cluster():
    said = json.loads(dohle("cluster", "describe", "--json"))
    host, port = BROKER["address"].split(":")
    assert [(b["host"], b["port"]) for b in said["brokers"]] == [(host, int(port))], said
    assert said["notInSync"] == said["withoutLeader"] == 0 and said["cluster"], said
    assert dohle("cluster", "describe").startswith(f"cluster {said['cluster']}\n  broker ")


def test_nobody_there():
    address, BROKER["address"] = BROKER["address"], "127.0.0.1:1"
    try:
        dohle("topic", "list", "--timeout", "1", code=1)
    finally:
        BROKER["address"] = address
    assert "no answer from 127.0.0.1:1 in 1 s: " in dohle.errors and "Connection refused" in dohle.errors, dohle.errors
    assert "`dohle doctor 127.0.0.1:1`" in dohle.errors, dohle.errors


def test_settings():
    dohle("cluster", "describe", "--set", "no.such.setting=1", code=2)
    assert 'No such configuration property: "no.such.setting"' in dohle.errors, dohle.errors
    dohle("cluster", "describe", "--client-config", "/no/such/file", code=1)
    read, write = os.pipe()
    os.write(write, b"# mine\n client.id = me \n\nsocket.keepalive.enable=true\n")
    os.close(write)
    done = subprocess.run([DOHLE, "cluster", "describe", "--client-config", f"/dev/fd/{read}"], pass_fds=[read],
                          stdout=subprocess.PIPE, env={**os.environ, "DOHLE_BOOTSTRAP": BROKER["address"]})
    os.close(read)
    assert done.returncode == 0 and done.stdout.startswith(b"cluster "), done


# ---- records ----------------------------------------------------------------------------------

def values(topic, *more):
    return dohle("consume", topic, *more).splitlines()


def test_lines_there_and_back():
    dohle("topic", "create", "r-lines", "--partitions", "1")
    said = dohle("produce", "r-lines", data=b"one\ntwo\n\nfour")
    assert said.startswith("4 records, 10 bytes, in "), said
    assert values("r-lines") == ["one", "two", "", "four"]
    assert values("r-lines", "--from", "1", "--count", "2") == ["two", ""]
    assert values("r-lines", "--tail", "1") == values("r-lines", "--from", "-1") == ["four"]
    assert values("r-lines", "--from", "end") == values("r-lines", "--from", "99") == []
    assert values("r-lines", "--print", "%t/%p/%o:%v;%V\\n")[:2] == ["r-lines/0/0:one;3", "r-lines/0/1:two;3"]
    assert values("r-lines", "--format", "hex")[0] == b"one".hex()
    assert dohle("produce", "r-lines", "--json", data=b"").startswith('{"topic":"r-lines","records":0,"failed":0,')


def test_many_records():
    dohle("topic", "create", "r-many", "--partitions", "3")
    wanted = [f"record {i}" for i in range(100000)]
    dohle("produce", "r-many", "--compression", "lz4", data="\n".join(wanted).encode())
    assert sorted(values("r-many")) == sorted(wanted)
    by_partition = [values("r-many", "--partition", str(p)) for p in range(3)]
    assert sum(map(len, by_partition)) == 100000, list(map(len, by_partition))


def test_keys_and_headers():
    dohle("topic", "create", "r-keys", "--partitions", "1")
    dohle("produce", "r-keys", "-K", ":", "-H", "a=1", "-H", "b=", data=b"de:Dohle\nplain\n")
    dohle("produce", "r-keys", "-K", ":", "-Z", "-k", "mine", data=b"gone:\nalone\n")
    found = [(r["key"], r["value"], r.get("headers")) for r in lines(dohle("consume", "r-keys", "--json"))]
    headers = [{"name": "a", "value": "1"}, {"name": "b", "value": ""}]
    assert found == [("de", "Dohle", headers), (None, "plain", headers), ("gone", None, None), ("mine", "alone", None)], found
    full = values("r-keys", "--format", "full")
    assert full[0].startswith("r-keys-0@0  20") and full[0].endswith('Z  "de" = "Dohle"  a="1"  b=""'), full


def test_keys_go_where_kafkas_producer_puts_them():
    dohle("topic", "create", "r-murmur", "--partitions", "8")
    dohle("produce", "r-murmur", "-K", ":", data=b"21:a\nfoobar:b\n")
    found = {r["key"]: r["partition"] for r in lines(dohle("consume", "r-murmur", "--json"))}
    # murmur2("21") = -973932308, murmur2("foobar") = -790332482, each without its sign modulo 8.
    assert found == {"21": (-973932308 & 0x7fffffff) % 8, "foobar": (-790332482 & 0x7fffffff) % 8}, found


def test_json_is_copied_as_it_is():
    dohle("topic", "create", "r-json", "r-copy", "--partitions", "2")
    dohle("produce", "r-json", "--format", "json", data=b"""
{"key":"k","value":{"a":[1,2]},"headers":[{"name":"h","value":"1"},{"name":"n","value":null}],"timestamp":1234567890123,"partition":1}
{"valueBase64":"AP/+","keyBase64":"gA==","partition":0}
{"value":null,"key":"\u00e4","partition":0}
""")
    wanted = dohle("consume", "r-json", "--json")
    dohle("produce", "r-copy", "--format", "json", data=wanted.encode())
    copied = dohle("consume", "r-copy", "--json")
    assert sorted(lines(copied.replace("r-copy", "r-json")), key=str) == sorted(lines(wanted), key=str)
    by_key = {r.get("key"): r for r in lines(wanted)}
    assert by_key["k"]["value"] == '{"a":[1,2]}' and by_key["k"]["timestamp"] == 1234567890123, by_key
    dohle("produce", "r-copy", "--format", "json", data=b'{"value":1}\nnope\n', code=1)
    assert "line 2: is no JSON object" in dohle.errors, dohle.errors


def test_from_a_time():
    dohle("topic", "create", "r-time", "--partitions", "1")
    records = "".join(f'{{"value":"{i}","timestamp":{1700000000000 + i * 60000}}}\n' for i in range(10))
    dohle("produce", "r-time", "--format", "json", data=records.encode())
    assert values("r-time", "--from", "@1700000420000") == ["7", "8", "9"]
    assert values("r-time", "--from", "@2023-11-14T22:20:20Z") == ["7", "8", "9"]
    assert values("r-time", "--from", "@-1h") == []
    dohle("consume", "r-time", "--from", "soon", code=2)
    assert '--from does not know "soon"' in dohle.errors, dohle.errors


def test_whole_file():
    dohle("topic", "create", "r-whole", "--partitions", "1")
    dohle("produce", "r-whole", "--format", "whole", data=bytes(range(256)) * 100)
    assert values("r-whole", "--format", "hex") == [(bytes(range(256)) * 100).hex()]


def test_follow():
    dohle("topic", "create", "r-follow", "--partitions", "2")
    command = [DOHLE, "consume", "r-follow", "--follow", "--count", "3", "-b", BROKER["address"]]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as reader:
        try:
            for word in b"one\n", b"two\n", b"three\n":
                dohle("produce", "r-follow", data=word)
                assert reader.stdout.readline() == word
            assert reader.wait(timeout=20) == 0
        finally:
            reader.kill()


def test_progress_is_told_on_a_terminal():
    dohle("topic", "create", "r-slow")
    ours, theirs = os.openpty()
    command = [DOHLE, "produce", "r-slow", "-b", BROKER["address"]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs) as writer:
        for _ in range(10):
            writer.stdin.write(b"x\n" * 64)
            writer.stdin.flush()
            time.sleep(0.1)
        writer.stdin.close()
        assert writer.wait(timeout=20) == 0
    os.close(theirs)
    told = ""
    try:
        while more := os.read(ours, 4096).decode():
            told += more
    except OSError:  # The end of a terminal whose other side is closed.
        pass
    os.close(ours)
    assert " records, " in told and "bytes/s" in told and told.endswith("\r\x1b[K"), repr(told)


def test_record_errors():
    dohle("produce", "r-none", data=b"x\n", code=1)
    assert 'there is no topic "r-none"' in dohle.errors, dohle.errors
    dohle("produce", "r-made", "--create", data=b"x\n")
    dohle("consume", "r-made", "--partition", "x", code=2)
    dohle("consume", "r-made", "--partition", "99", code=1)
    assert '"r-made" has partitions 0 to 0' in dohle.errors, dohle.errors
    dohle("consume", "r-made", "--print", "%q", code=2)
    dohle("topic", "create", "r-small", "--config", "max.message.bytes=1000")
    dohle("produce", "r-small", "--format", "whole", data=b"x" * 5000, code=1)
    assert "1 record was not written" in dohle.errors and "MESSAGE_TOO_LARGE" in dohle.errors, dohle.errors


# ---- groups -----------------------------------------------------------------------------------

def member(*topics):
    """A consumer of librdkafka in group g-read that has what it wants."""
    made = subprocess.Popen(["kcat", "-b", BROKER["address"], "-X", "auto.offset.reset=earliest", "-G", "g-read", *topics],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    limit = time.monotonic() + 40
    while time.monotonic() < limit:
        groups = {g["group"]: g for g in lines(dohle("group", "list", "--json"))}
        if groups.get("g-read", {}).get("state") == "Stable":
            return made
        time.sleep(0.2)
    made.kill()
    raise AssertionError("no stable group")


def test_consume_in_a_group():
    """What was printed is committed: the next run goes on behind it, whatever ended the last."""
    dohle("topic", "create", "g-share", "--partitions", "2")
    dohle("produce", "g-share", data=b"".join(b"%d\n" % i for i in range(20)))
    assert sorted(map(int, dohle("consume", "g-share", "--group", "g-mine").split())) == list(range(20))
    assert dohle("consume", "g-share", "--group", "g-mine") == ""
    dohle("produce", "g-share", data=b"20\n21\n22\n23\n24\n")
    some = dohle("consume", "g-share", "--group", "g-mine", "--count", "3").split()
    rest = dohle("consume", "g-share", "--group", "g-mine").split()
    assert len(some) == 3 and sorted(map(int, some + rest)) == list(range(20, 25)), (some, rest)
    assert dohle("consume", "g-share", "--group", "g-new", "--from", "end") == ""
    dohle("consume", "g-share", "--group", "g-new", "--tail", "3", code=2)
    dohle("consume", "g-share", "--group", "g-new", "--from", "12", code=2)
    dohle("consume", "g-none", "--group", "g-new", code=1)


def test_groups():
    dohle("topic", "create", "g-words", "--partitions", "1")
    dohle("produce", "g-words", data=b"a\nb\nc\nd\n")
    reader = member("g-words")
    try:
        said = json.loads(dohle("group", "describe", "g-read", "--json"))
        assert (said["type"], said["state"], len(said["members"])) == ("classic", "Stable", 1), said
        assert said["members"][0]["partitions"] == [{"topic": "g-words", "partition": 0}], said
        assert " holds g-words-0\n" in dohle("group", "describe", "g-read")
        dohle("group", "delete", "g-read", code=1)
        assert "NON_EMPTY_GROUP" in dohle.errors, dohle.errors
        dohle("group", "reset-offsets", "g-read", "--to-earliest", "--topic", "g-words", code=1)
        assert "UNKNOWN_MEMBER_ID" in dohle.errors, dohle.errors
    finally:
        reader.terminate()
        reader.wait()
    dohle("group", "reset-offsets", "g-read", "--to-offset", "3", "--topic", "g-words", "--dry-run")
    assert lines(dohle("group", "reset-offsets", "g-read", "--to-offset", "3", "--topic", "g-words", "--json")) == [
        {"topic": "g-words", "partition": 0, "offset": 3, "executed": True}]
    said = json.loads(dohle("group", "describe", "g-read", "--json"))
    assert said["state"] == "Empty", said
    assert said["offsets"] == [{"topic": "g-words", "partition": 0, "committed": 3, "end": 4, "lag": 1}], said
    for way, offset in (("--to-earliest", 0), ("--to-latest", 4)):
        dohle("group", "reset-offsets", "g-read", way)
        assert json.loads(dohle("group", "describe", "g-read", "--json"))["offsets"][0]["committed"] == offset
    dohle("group", "reset-offsets", "g-read", "--to-time", "99999999999999")
    assert "  4  4  0\n" in dohle("group", "describe", "g-read")
    assert dohle("group", "delete", "g-read") == 'deleted group "g-read"\n'
    dohle("group", "describe", "g-read", code=1)
    assert "there is no classic or consumer group" in dohle.errors, dohle.errors


def test_group_errors():
    dohle("group", "reset-offsets", "g-none", code=2)
    dohle("group", "reset-offsets", "g-none", "--to-earliest", "--to-latest", code=2)
    dohle("group", "reset-offsets", "g-none", "--to-latest", code=1)
    assert "name its topics by --topic" in dohle.errors, dohle.errors
    dohle("group", "reset-offsets", "g-none", "--to-latest", "--topic", "g-nothing", code=1)
    assert 'there is no topic "g-nothing"' in dohle.errors, dohle.errors
    dohle("group", "delete", "g-none", code=1)
    assert "GROUP_ID_NOT_FOUND" in dohle.errors, dohle.errors


ALL = [test for name, test in list(globals().items()) if name.startswith("test_")]
