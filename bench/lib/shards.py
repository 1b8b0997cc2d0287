"""One shard against several: what a second processor brings, and what crossing between shards costs.

Each load goes to twelve partitions over 64 connections, in the order 1 N N 1, medians; the server's CPU from its clock."""
import os
import statistics
import subprocess

import loads
import servers

COUNTS = (1, 3)


class Sharded(servers.DohleReplicated):
    def __init__(self, count):
        super().__init__()
        self.count = count

    def __enter__(self):
        self.node = servers.Node({**servers.COMMON, "dohle.ack.durability": self.durability, "offsets.topic.num.partitions": "12",
                                    "dohle.shards": str(self.count)})
        self.address, self.close = self.node.address, self.node.__exit__
        self.launch(self.node)
        return self


def figures(server, scale):
    """(load, requests a second, server's CPU us each)"""
    loads.until_first(server)
    for name, options in (("produce 1 x 100 B, one at a time", {}), ("produce 1 x 100 B, 5 at a time", {"depth": 5}),
                          ("produce 150 x 100 B, 5 at a time", {"records": 150, "depth": 5})):
        topic = f"shards{options.get('records', 1)}-{options.get('depth', 1)}"
        said = loads.produce(server, scale, topic, partitions=12, connections=64, **options)
        yield name, said["requests"] / said["seconds"], loads.each_us(said)
    beat = loads.said_by(loads.GROUPS, "beat", server, members=2000, group_size=100, links=1000, seconds=scale.seconds,
                         warmup=scale.warmup, depth=(1, 16), rate=400, bare=False)
    for name, said in zip(("Heartbeat, one at a time", "Heartbeat, 16 at a time"), beat["loads"]):
        yield name, said["requests"] / said["seconds"], loads.each_us(said)


def main(words):
    scale = loads.FULL if "--full" in words else loads.QUICK
    subprocess.run(["make", "-s", "build", "build/bench/replay", "build/bench/groups"], cwd=loads.ROOT, check=True)
    found = {}
    for count in (*COUNTS, *reversed(COUNTS)):
        with Sharded(count) as server:
            for name, rate, cpu_us in figures(server, scale):
                found.setdefault(name, {}).setdefault(count, []).append((rate, cpu_us))
    print(f"{os.cpu_count()} processors, {' and '.join(map(str, COUNTS))} shards, load {os.getloadavg()[0]:.1f}")
    print("| load | " + " | ".join(f"{c} shard{'s' * (c > 1)}, requests a second | CPU us each" for c in COUNTS) + " |")
    print("| --- |" + " --- | --- |" * len(COUNTS))
    for name, by_count in found.items():
        cells = [f"{statistics.median(r for r, _ in by_count[c]):,.0f} | {statistics.median(u for _, u in by_count[c]):.2f}"
                 for c in COUNTS]
        print(f"| {name} | {' | '.join(cells)} |")
    return 0
