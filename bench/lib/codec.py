"""Workload W1: reading and writing messages, ours beside kafka-clients (JMH), franz-go's kmsg and the Rust crate kafka-protocol.

One after the other on one core, over the same 64 variants of each message (`build/bench/codec samples`), each checked to be
written as it was read. The figure is the fastest round: what else the machine did can only have slowed it. Instructions of ours
by callgrind. A library whose toolchain is not here is left out and named.

Encode writes all bytes into one buffer. Where they are mostly records that is a copy, which nobody does faster than memcpy: `copy`
is that memcpy. `send` is what clients and brokers do instead, ours as theirs: frame, header and fields around the records, which stay
where they are (kafka-clients: SendBuilder; the other two libraries have no such way).
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
from datetime import date
from pathlib import Path

import kafka

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "build/bench/codec"
PEERS = ROOT / "bench/peers"
COUNTED = 6400
WITH_RECORDS = ("FetchResponse-16", "ProduceRequest-9")
# What decoding and encoding must be faster than Java's by (docs/performance.md).
GOALS = {("HeartbeatRequest-4", "decode"): 5, ("FetchRequest-16", "decode"): 3, ("BrokerHeartbeatRequest-2", "decode"): 1}
ENCODE_GOAL = 3


def goal_of(name, way):
    encodes = "send" if name in WITH_RECORDS else "encode"
    return ENCODE_GOAL if way == encodes else GOALS.get((name, way))


def pinned():
    core = str(max(os.sched_getaffinity(0)))
    return ["taskset", "-c", core] + (["nice", "-n", "-19"] if os.geteuid() == 0 else [])


def run(command, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stdout[-800:]}")
    return done.stdout


def need(toolchain):
    done = subprocess.run([str(ROOT / "test/toolchains/need"), toolchain], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stdout.strip() or f"no {toolchain}")


def lines(text):
    """{(sample, way): nanoseconds} of lines `NAME WAY NANOSECONDS`."""
    rows = re.findall(r"^(\w+-\d+) (\w+) ([\d.]+)$", text, re.M)
    return {(name, way): float(value) for name, way, value in rows}


def ours(samples, place, quick):
    return lines(run([*pinned(), PROGRAM, "time", 30 if quick else 300]))


def java(samples, place, quick):
    reason = kafka.available()
    if reason is not None:
        raise RuntimeError(reason)
    jars = ROOT / "build/jmh-libs"
    if not (jars / "complete").exists():
        run(["mvn", "-q", "-B", "-f", PEERS / "java/pom.xml", "dependency:copy-dependencies", f"-DoutputDirectory={jars}"])
        (jars / "complete").touch()
    path = ":".join(str(jar) for jar in sorted(jars.glob("*.jar")))
    classes = f"{place}/classes:{path}:{kafka.LIBS}/*"
    run(["javac", "-d", f"{place}/classes", "-cp", classes, "-processorpath", path, PEERS / "java/CodecBench.java"])
    times = ["-f", 1, "-wi", 3, "-w", 1, "-i", 5, "-r", 1] if quick else ["-f", 2, "-wi", 5, "-w", 1, "-i", 10, "-r", 1]
    rows = {}
    for ways, names in ("decode|encode", sorted(path.name for path in Path(samples).iterdir())), ("send", WITH_RECORDS):
        run([*pinned(), "java", "-cp", classes, "org.openjdk.jmh.Main", f"CodecBench.({ways})", *times, "-jvmArgs",
             f"-Dsamples={samples} -Xmx512m", "-p", "sample=" + ",".join(names), "-rf", "json", "-rff", f"{place}/jmh.json"])
        for row in json.loads(Path(place, "jmh.json").read_text()):
            rounds = [value for fork in row["primaryMetric"]["rawData"] for value in fork]
            rows[row["params"]["sample"], row["benchmark"].rsplit(".", 1)[1]] = min(rounds)
    return rows


def kmsg(samples, place, quick):
    need("go")
    text = run([*pinned(), "go", "test", "-run", "none", "-bench", ".", "-cpu", 1, "-count", 5 if quick else 10, "-benchtime",
                "50ms" if quick else "300ms"], cwd=PEERS / "kmsg", env=dict(os.environ, SAMPLES=str(samples)))
    rows = {}
    for name, way, value in re.findall(r"^BenchmarkCodec/(\w+-\d+)/(\w+)\s+\d+\s+([\d.]+) ns/op", text, re.M):
        rows[name, way] = min(float(value), rows.get((name, way), float("inf")))
    return rows


def rust(samples, place, quick):
    need("rust")
    run(["cargo", "build", "-q", "--release", "--locked", "--manifest-path", PEERS / "rust/Cargo.toml", "--target-dir",
         ROOT / "build/rust"])
    return lines(run([*pinned(), ROOT / "build/rust/release/codec", samples, 30 if quick else 300]))


def counted(place):
    """Instructions of ours per message, harness included."""
    run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={place}/count", PROGRAM, "count"])
    rows = {}
    for path in Path(place).glob("count.*"):
        text = path.read_text()
        name, way = re.search(r"^desc: Trigger: Client Request: (\S+) (\S+)", text, re.M).groups()
        rows[name, way] = int(re.search(r"^totals: (\d+)", text, re.M)[1]) / COUNTED
    return rows


LIBRARIES = {"dohle": ours, "kafka-clients": java, "kmsg": kmsg, "kafka-protocol": rust}


def ratio(rows, key):
    mine, theirs = rows["dohle"].get(key), rows.get("kafka-clients", {}).get(key)
    return theirs / mine if mine and theirs else None


def show(rows, instructions):
    print(f"{'ns per message':32} {'way':6} " + " ".join(f"{name:>14}" for name in rows) + "   Java/ours  goal   instructions")
    missed = []
    for key in rows["dohle"]:
        goal = goal_of(*key)
        times = ratio(rows, key)
        if goal and times and times < goal:
            missed.append(f"{key[0]} {key[1]}")
        cells = " ".join(f"{rows[name][key]:14.1f}" if key in rows[name] else f"{'-':>14}" for name in rows)
        print(f"{key[0]:32} {key[1]:6} {cells} {f'{times:.1f}' if times else '-':>11} {goal or '-':>5} {instructions.get(key, 0):14.0f}")
    print("below its goal: " + (", ".join(missed) or "nothing"))


def main(words):
    subprocess.run(["make", "-s", "build/bench/codec"], cwd=ROOT, check=True)
    quick = "--full" not in words
    rows, left_out = {}, {}
    with tempfile.TemporaryDirectory(prefix="dohle-codec-") as place:
        samples = Path(place, "samples")
        samples.mkdir()
        run([PROGRAM, "samples", samples])
        for name, library in LIBRARIES.items():
            try:
                rows[name] = library(samples, place, quick)
            except RuntimeError as reason:
                left_out[name] = str(reason)
                print(f"without {name}: {reason}")
        instructions = counted(place) if shutil.which("valgrind") else {}
    show(rows, instructions)
    result = {"date": date.today().isoformat(), "rows": [{"message": key[0], "way": key[1], "ns": {name: rows[name][key] for name in rows if key in rows[name]},
                        "java_ratio": ratio(rows, key), "goal": goal_of(*key),
                        "instructions": instructions.get(key)} for key in rows["dohle"]], "left_out": left_out}
    (ROOT / "bench/results/codec.json").write_text(json.dumps(result, indent=1) + "\n")
    return 0
