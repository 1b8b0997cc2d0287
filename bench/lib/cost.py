"""What single requests cost, in figures that repeat: instructions, system calls, allocations, private memory.

bench/cost.c makes the requests; callgrind and strace count. The record in bench/results/cost.json names the compiler and the
class of CPU it was made with; elsewhere the figures are printed and not judged.
"""
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RECORD = ROOT / "bench/results/cost.json"
PROGRAM = ROOT / "build/bench/cost"
COUNT = 200
# Case and durability. What waits for a disk wakes threads by chance, so `sync` is counted in system calls only.
CASES = [("heartbeat", "replicated"), ("consumer_heartbeat", "replicated"), ("produce_1", "replicated"), ("produce_150", "replicated"), ("fetch_150", "replicated"),
         ("produce_1", "sync")]
CLIENT_CALLS = {"writev", "recvmsg"}
CHANCE_CALLS = {"futex"}  # Which thread comes first decides whether one has to sleep.
TOLERANCE = 0.01


def missing():
    """Why the costs cannot be counted here, or None."""
    lacks = [tool for tool in ("valgrind", "strace") if shutil.which(tool) is None]
    if lacks:
        return "needs " + " and ".join(lacks)
    with tempfile.NamedTemporaryFile() as out:
        traced = subprocess.run(["strace", "-o", out.name, "true"], stderr=subprocess.PIPE)
    return None if traced.returncode == 0 else "strace may not trace here"


def compiler():
    return subprocess.run(["gcc", "--version"], stdout=subprocess.PIPE, text=True).stdout.splitlines()[0]


def cpu_class():
    """Vendor and family: libraries choose their routines by it."""
    fields = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M))
    return f"{fields.get('vendor_id', '?')} family {fields.get('cpu family', '?')}"


class Directory:
    def __enter__(self):
        self.path = Path(tempfile.mkdtemp(prefix="dohle-cost-"))
        return self.path

    def __exit__(self, *unused):
        shutil.rmtree(self.path, ignore_errors=True)


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stdout[-500:]}")
    return done.stdout


def instructions(case, durability):
    with Directory() as place:
        run("valgrind", "-q", "--tool=callgrind", "--toggle-collect=node_turn", f"--callgrind-out-file={place}/out", PROGRAM,
            place / "data", durability, case, COUNT)
        blocks = [int(re.search(r"^totals: (\d+)", path.read_text(), re.M)[1]) for path in place.glob("out.*")]
    return min(blocks) / COUNT


def system_calls(case, durability):
    """By name, of one request."""
    def counted(count):
        with Directory() as place:
            said = run("strace", "-f", "-c", "-o", place / "calls", PROGRAM, place / "data", durability, case, count)
            rows = [line.split() for line in (place / "calls").read_text().splitlines()]
            requests = int(said.split()[-4])
        return requests, {row[-1]: int(row[3]) for row in rows if len(row) >= 5 and row[3].isdigit() and row[-1] != "total"}
    (few, before), (many, after) = counted(COUNT // 4), counted(COUNT * 2)
    each = {name: round((calls - before.get(name, 0)) / (many - few), 1) for name, calls in after.items()}
    return {name: calls for name, calls in sorted(each.items()) if calls and name not in CLIENT_CALLS}


def allocations(case, durability):
    with Directory() as place:
        words = run(PROGRAM, place / "data", durability, case, COUNT).split()
    return round(int(words[-2]) / int(words[-4]), 2)


def private_kib():
    """Private memory of a server that nobody has talked to; the smallest of three starts."""
    found = []
    for _ in range(3):
        with Directory() as place:
            server = subprocess.Popen([str(ROOT / "build/dohle"), "start", "--data", str(place / "data"), "--set",
                                       "listeners=PLAINTEXT://127.0.0.1:0", "--set", "dohle.http.listener="],
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            try:
                server.stdout.readline()
                found.append(int(re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{server.pid}/status").read_text())[1]))
            finally:
                server.kill()
                server.wait()
    return min(found)


def measure():
    subprocess.run(["make", "-s", "build/bench/cost", "build/dohle"], cwd=ROOT, check=True)
    figures = {"private KiB before the first connection": private_kib()}
    for case, durability in CASES:
        name = f"{case} {durability}"
        if durability == "replicated":
            figures[f"{name}: instructions"] = round(instructions(case, durability))
            figures[f"{name}: allocations"] = allocations(case, durability)
        calls = system_calls(case, durability)
        figures[f"{name}: system calls"] = round(sum(n for call, n in calls.items() if call not in CHANCE_CALLS), 1)
        print(f"  {name}: " + ", ".join(f"{call} {n}" for call, n in calls.items()), flush=True)
    each = "{} replicated: instructions"
    figures["instructions per further record of a produce request"] = round(
        (figures[each.format("produce_150")] - figures[each.format("produce_1")]) / 149, 1)
    return figures


def same_machine(record):
    return record.get("compiler") == compiler() and record.get("cpu") == cpu_class()


def compare(figures, record):
    """Names of the figures that are not what the record says, or not in it; prints all beside it."""
    worse = [name for name in record["figures"] if name not in figures]
    for name in worse:
        print(f"  {name}: recorded and not measured")
    for name, value in figures.items():
        was = record["figures"].get(name)
        change = "" if not was else f"{(value - was) / was:+.1%}"
        may_differ = 0 if was is None else max(was * TOLERANCE, 8 if "KiB" in name else 0.05)
        note = ""
        if was is None or abs(value - was) > may_differ:
            worse.append(name)
            note = "  NOT RECORDED" if was is None else "  MORE" if value > was else "  LESS"
        print(f"  {name:56} {value:>10} recorded {was!s:>10} {change:>7}{note}")
    return worse


def main(words):
    figures = measure()
    if "--record" in words:
        RECORD.write_text(json.dumps({"compiler": compiler(), "cpu": cpu_class(), "figures": figures}, indent=2) + "\n")
    record = json.loads(RECORD.read_text())
    worse = compare(figures, record)
    if not same_machine(record):
        print(f"not judged: recorded with {record['compiler']} on {record['cpu']}, this is {compiler()} on {cpu_class()}")
        return 0
    return 1 if worse else 0
