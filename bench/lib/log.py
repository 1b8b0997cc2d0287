"""What the log costs beside its floor (bench/log.c): `./dev bench log [--quick|--full]`.

Append and read beside bare pwritev and sendfile of the same bytes, in turns, so that what else runs on the machine meets both;
commits by the number of dirty partitions; opening and recovery by size. CPU seconds and ratios; clock seconds where they are
the point. Writes bench/results/log.json.
"""
import json
import os
import platform
import shutil
import subprocess
import tempfile
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "build/bench/log"
PAIRS = {"append": "write", "read": "send"}  # What is measured, and its floor.


def run(folder, *arguments, **environment):
    directory = Path(folder) / "log"
    shutil.rmtree(directory, ignore_errors=True)
    done = subprocess.run([str(PROGRAM), arguments[0], str(directory), *map(str, arguments[1:])], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
    shutil.rmtree(directory, ignore_errors=True)
    if done.returncode != 0:
        raise RuntimeError(f"{arguments}: {done.stderr}")
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def beside_floor(folder, rounds, total, rows):
    for what, floor in PAIRS.items():
        for batch in (1_000_000, 16_384):
            for record in (100, 1024, 102_400):
                if record > batch:
                    continue
                costs = {what: [], floor: []}
                millions = []
                for i in range(rounds):
                    for name in (what, floor) if i % 2 == 0 else (floor, what):
                        said = run(folder, name, record, batch, total)
                        costs[name].append(said["cpu_s_per_gb"])
                        if name == what:
                            millions.append(said["cpu_s_per_million"])
                # The least of each: what else runs here, and pages that the machine has to find first, only add.
                ours, bare = min(costs[what]), min(costs[floor])
                ratio = ours / bare
                rows.append({"bench": what, "record_bytes": record, "batch_bytes": batch, "cpu_s_per_gb": round(ours, 4),
                             "floor_cpu_s_per_gb": round(bare, 4), "ratio": round(ratio, 2),
                             "cpu_s_per_million_records": round(min(millions), 4)})
                print(f"  {what:6} records {record:>7} batches {batch:>8}: {ours:.3f} CPU-s per GB, floor {bare:.3f}, {ratio:.2f} times; "
                      f"{min(millions):.3f} per million records", flush=True)


def commits(folder, full, rows):
    for foreign in (0, 256 << 20):
        for logs in (1, 8, 64, 1000):
            said = run(folder, "commit", logs, (3 if foreign else 10) * (3 if full else 1), foreign)
            rows.append({"bench": "commit", "dirty_partitions": logs, "foreign_bytes": foreign, **said})
            print(f"  commit {logs:>5} partitions, {foreign >> 20:>3} MiB foreign: {said['ms_per_round']:.1f} ms, "
                  f"{said['cpu_ms_per_round']:.2f} ms CPU", flush=True)


def opening(folder, full, rows):
    sizes = [(10, 1, 0), (1000, 1, 0), (10, 16 << 20, 0), (10, 16 << 20, 64 << 20)]
    if full:
        sizes += [(10_000, 1, 0), (50, 64 << 20, 64 << 20), (50, 128 << 20, 0)]
    for logs, size, unmarked in sizes:
        said = run(folder, "open", logs, size, unmarked)
        rows.append({"bench": "open", "partitions": logs, "bytes_each": size, "unmarked_bytes": unmarked, **said})
        print(f"  open {logs:>6} of {size >> 20:>4} MiB, {unmarked >> 20} MiB unmarked: clean start {said['clean_start_s']:.4f} s, "
              f"an append to each {said['append_each_s']:.2f} s ({said['commit_files']:.0f} files in {said['commits']:.0f} commits); "
              f"after a kill: start {said['unclean_start_s']:.4f} s, first append {said['first_append_s']:.3f} s, "
              f"all recovered {said['all_recovered_s']:.2f} s", flush=True)


def main(words):
    full = "--full" in words
    rows = []
    subprocess.run(["make", "-s", "build/bench/log"], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory(prefix="dohle-bench-") as folder:
        beside_floor(folder, 9 if full else 5, 1_000_000_000 if full else 200_000_000, rows)
        commits(folder, full, rows)
        opening(folder, full, rows)
    results = {"date": date.today().isoformat(), "machine": f"{os.cpu_count()} x {platform.machine()}",
               "scale": "full" if full else "quick", "rows": rows}
    (ROOT / "bench/results/log.json").write_text(json.dumps(results, indent=2) + "\n")
    return 0
