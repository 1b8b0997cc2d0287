"""How costs grow: memory by partitions, connections and members, and the CPU of a heartbeat by members.

    ./dev bench growth     a fresh server (replicated) for each point; writes bench/results/growth.json

`k` is the exponent of cost = b * x^k through the points (least squares of the logarithms): 1 is linear, 0 does not grow.
"""
import dataclasses
import json
import math
import subprocess
from datetime import date

import guard
import loads
import servers

RESULT = loads.ROOT / "bench/results/growth.json"
PARTITIONS, CONNECTIONS, MEMBERS = (100, 1_000, 10_000), (500, 2_000, 8_000), (2_000, 20_000, 200_000)


def exponent(points):
    logs = [(math.log(x), math.log(y)) for x, y in points]
    middle_x, middle_y = (sum(values) / len(logs) for values in zip(*logs))
    return sum((x - middle_x) * (y - middle_y) for x, y in logs) / sum((x - middle_x) ** 2 for x, _ in logs)


def measured(load, **scale):
    """What the load yields of a server that has done nothing else, by (metric's last words, unit)."""
    with servers.DohleReplicated() as server:
        loads.until_first(server)
        server.repeated = True  # Not the expiry of members.
        return {metric: value for metric, value, _ in load(server, dataclasses.replace(loads.QUICK, **scale))}


def members(count):
    with servers.DohleReplicated() as server:
        loads.until_first(server)
        said = list(loads.beats(server, loads.QUICK, count, "Heartbeat"))
    return {metric.split(" members, ")[1]: value for metric, value, _ in said}


def curves():
    yield "memory by partitions", "bytes", [
        (count, count * measured(loads.partitions, partitions=count)["resident per partition"]) for count in PARTITIONS]
    yield "memory by connections", "bytes", [
        (count, count * measured(loads.connections, connections=count)["resident per idle connection"]) for count in CONNECTIONS]
    by_members = {count: members(count) for count in MEMBERS}
    yield "memory by members", "bytes", [(count, count * said["resident"]) for count, said in by_members.items()]
    yield "CPU of a heartbeat by members", "us", [(count, said["one at a time"]) for count, said in by_members.items()]


def main(words):
    if words:
        print(__doc__)
        return 2
    subprocess.run(["make", "-s", "-j2", "build", "build/bench/replay", "build/bench/groups"], cwd=loads.ROOT, check=True)
    found = []
    with guard.Guard():
        for name, unit, points in curves():
            found.append({"curve": name, "unit": unit, "points": [[x, round(y, 2)] for x, y in points], "k": round(exponent(points), 3)})
            print(f"{name}: k = {exponent(points):.2f}; " + ", ".join(f"{x:,}: {y:,.1f} {unit}" for x, y in points), flush=True)
    RESULT.write_text(json.dumps({"date": date.today().isoformat(), "curves": found}, indent=1) + "\n")
    return 0
