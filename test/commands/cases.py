"""The everyday commands as scenarios that hold for any broker; both suites run them."""
import json
import os
import subprocess

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


ALL = [test for name, test in list(globals().items()) if name.startswith("test_")]
