"""The agent of kcat, one kcat a call; see README.md for what an agent answers. `read` serves the judge too."""
import json
import subprocess
import sys
import time


def kcat(address, *arguments, data=None, seconds=60):
    done = subprocess.run(["kcat", "-b", address, *arguments], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=seconds, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"kcat {' '.join(arguments)}: {done.stderr.decode()[-500:]}")
    return done.stdout


def read(address, topic):
    """Every record of the topic, in the form of an agent's answer."""
    records = []
    for line in kcat(address, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-J", "-X", "fetch.wait.max.ms=50").splitlines():
        r = json.loads(line)
        flat = r.get("headers", [])
        records.append({"p": r["partition"], "o": r["offset"], "k": r["key"], "v": r["payload"], "t": r["ts"],
                        "h": [list(pair) for pair in zip(flat[::2], flat[1::2])]})
    return records


def shape(record):
    """What kcat can only set for a whole call: partition, headers, null value, no key."""
    return (record["p"], tuple(map(tuple, record["h"])), record["v"] is None, record["k"] is None)


def write(ask):
    """Neighbours of one shape go in one call, since a call sets the shape of all it writes."""
    records, at = ask["records"], 0
    while at < len(records):
        end = at
        while end < len(records) and shape(records[end]) == shape(records[at]):
            end += 1
        partition, headers, null, no_key = shape(records[at])
        words = ["-P", "-t", ask["topic"], "-p", str(partition), "-z", ask.get("codec", "none"), "-X", "message.max.bytes=1040000"]
        for name, value in headers:
            words += ["-H", f"{name}={value}"]
        if null:
            words += ["-Z"]
        if not no_key:
            words += ["-K", "\x01"]
        if ask.get("idempotent"):
            words += ["-X", "enable.idempotence=true"]
        lines = [("" if no_key else r["k"] + "\x01") + (r["v"] or "") + "\n" for r in records[at:end]]
        kcat(ask["address"], *words, data="".join(lines).encode())
        at = end
    return {}


def offset_by_time(ask):
    said = kcat(ask["address"], "-Q", "-t", f"{ask['topic']}:0:{ask['timestamp']}").decode()
    return {"offset": int(said.split("offset")[1].split()[0])}


def load(ask):
    """kcat says of no record whether it was acknowledged: it ends well only if all of them were. -E: go on without a broker."""
    with subprocess.Popen(["kcat", "-E", "-b", ask["address"], "-P", "-t", ask["topic"], "-p", "0", "-X", "enable.idempotence=true",
                           "-X", "reconnect.backoff.max.ms=500", "-X", "linger.ms=5"], stdin=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        sent, limit = 0, time.monotonic() + ask["seconds"]
        try:
            while time.monotonic() < limit:
                process.stdin.write(b"".join(b"load-%07d\n" % i for i in range(sent, sent + 50)))
                process.stdin.flush()
                sent += 50
                time.sleep(0.005)
            process.stdin.close()
        except BrokenPipeError:
            pass  # It ended; its errors say why.
        errors = process.stderr.read().decode()
    if process.returncode != 0:
        raise RuntimeError(f"kcat: {errors[-500:]}")
    return {"sent": sent, "failed": []}


def version():
    said = subprocess.run(["kcat", "-V"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return said.split("Version ")[1].split()[0] + " librdkafka " + said.split("librdkafka ")[1].split()[0]


def main():
    for line in sys.stdin:
        ask = json.loads(line)
        try:
            said = {"hello": lambda: {"version": version()}, "write": lambda: write(ask), "load": lambda: load(ask),
                    "read": lambda: {"records": read(ask["address"], ask["topic"])}, "time": lambda: offset_by_time(ask)}[ask["do"]]()
        except Exception as reason:  # Whatever goes wrong is the answer.
            said = {"error": f"{type(reason).__name__}: {reason}"}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
