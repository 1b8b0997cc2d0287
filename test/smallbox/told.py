"""What docs/smallbox.md tells, as it happens: two scenarios whose commands and outputs are written down as they run.

Numbers, times and ids are blanked to compare (masked()); the page shows one real run (`test/smallbox/run-test --tell` makes it anew).
"""
import os
import re
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from dohle import DOHLE, Node, free_port

MIB = 1 << 20
TOLD = ("is full", "has space again", "changes of the metadata", "takes changes again")  # Not: slow requests and the like.
PLACES = (("HOST", "127.0.0.1:9092"), ("HTTP", "127.0.0.1:9644"), ("DATA", "/var/lib/dohle"))


def masked(line):
    line = re.sub(r"(dohle-doctor)[-\w]*\w", r"\1", line)
    line = re.sub(r"(?<![\w-])[\w-]{22}(?![\w-])", "ID", line)
    line = re.sub(r"\(\d+(\.\d+)? ms\)", "", line)
    line = re.sub(r"records? (was|were)", "records were", re.sub(r"\d[\d,.]*", "0", line))
    line = re.sub(r"0 records?, 0 \w+", "0 records", line)
    return re.sub(r"\s+", " ", line).strip()


class Story:
    def __init__(self, node, http):
        self.node, self.http, self.lines, self.heard = node, http, [], 0
        self.real = {"HOST": node.address, "HTTP": f"127.0.0.1:{http}", "DATA": node.directory}

    def shown(self, text):
        for name, place in PLACES:
            text = text.replace(self.real[name], place)
        return text

    def note(self, text):
        self.lines.append(f"# {text}")

    def dohle(self, arguments, data=None, keep=None):
        """A command of ours; its output, or the lines with `keep` in them."""
        done = subprocess.run([DOHLE, *arguments.replace("HOST", self.node.address).split()], input=data, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60)
        said = done.stdout.decode().splitlines()
        self.lines.append(self.shown(f"$ dohle {arguments}".replace("HOST", self.node.address)))
        self.lines += [self.shown(line) for line in said if keep is None or any(k in line for k in keep)]
        return done.returncode, "\n".join(said)

    def get(self, page, keep=None):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/{page}", timeout=10) as answer:
                said = answer.read().decode().splitlines()
        except urllib.error.HTTPError as refused:
            said = refused.read().decode().splitlines()
        some = f" | grep -E '^({'|'.join(keep)})'" if keep else ""
        self.lines.append(f"$ curl -s 127.0.0.1:9644/{page}{some}")
        self.lines += [line for line in said if keep is None or line.startswith(tuple(keep))]

    def log(self, wait):
        """What the node has said since, when this is among it."""
        for _ in range(200):
            said = Path(self.node.log.name).read_text(errors="replace").splitlines()
            if any(wait in line for line in said[self.heard:]):
                break
            time.sleep(0.1)
        else:
            raise AssertionError(f"the node never said: {wait}; so far:\n" + "\n".join(self.lines + said[self.heard:]))
        self.lines += [self.shown(f"dohle: {line}") for line in said[self.heard:] if any(words in line for words in TOLD)]
        self.heard = len(said)

    def skip_log(self):
        self.heard = len(Path(self.node.log.name).read_text(errors="replace").splitlines())


def records(count):
    return b"".join(b"%0999d\n" % i for i in range(count))


def fill(disk, left):
    free = os.statvfs(disk)
    with open(os.path.join(disk, "filler"), "wb") as f:
        os.posix_fallocate(f.fileno(), 0, free.f_bavail * free.f_frsize - left)


def full_disk(disk):
    """`disk` is a file system of 256 MiB. Returns the transcript."""
    http = free_port()
    settings = {"dohle.http.listener": f"127.0.0.1:{http}", "log.segment.delete.delay.ms": "500", "dohle.shards": "1"}
    with Node(settings, data=os.path.join(disk, "data")) as node:
        story = Story(node, http)
        node.kcat("-P", "-t", "old", data=records(90000), seconds=60)
        story.dohle("topic create orders -b HOST")
        story.dohle("produce orders -b HOST", data=b"the first order\n")
        story.skip_log()
        story.note("another program fills the disk but for 1 MiB; a reserve of 64 MiB was taken at the start, so nothing changes yet")
        fill(disk, MIB)
        story.dohle("produce orders -b HOST", data=records(1000))
        story.get("readyz")
        story.note("the reserve goes to what has been given offsets; then what is produced is refused (the client tries again for a while)")
        for _ in range(120):
            before = len(story.lines)
            code, _ = story.dohle("produce orders -b HOST -X message.timeout.ms=3000", data=records(1000))
            if code != 0 and "is full" in node.said():
                break
            del story.lines[before:]
        assert code != 0
        story.log("is full")
        story.note("so is what changes the metadata; reading goes on, and the node is ready for it")
        story.dohle("topic create invoices -b HOST")
        story.log("changes of the metadata are refused")
        story.dohle("consume orders -b HOST --count 1")
        story.get("readyz")
        story.get("metrics", keep=("dohle_log_directories_full", "dohle_metadata_refused_total"))
        story.dohle("doctor HOST --write")
        story.note("a topic can be deleted: 256 KiB are kept for saying so; when its files are gone (log.segment.delete.delay.ms, here half a second) it goes on by itself, in the same process")
        story.dohle("topic delete old -b HOST")
        story.log("takes changes again")
        story.dohle("topic create invoices -b HOST")
        story.dohle("produce orders -b HOST", data=records(1000))
        story.get("metrics", keep=("dohle_log_directories_full", "dohle_metadata_refused_total"))
        assert node.stop() == 0
        return story.lines


def memory_cap():
    """64 MiB for all, of which 40 MiB are counted. Returns the transcript."""
    http = free_port()
    kept = ("dohle_memory_bytes", "process_resident_memory_bytes", "dohle_metadata_refused_total")
    settings = {"dohle.http.listener": f"127.0.0.1:{http}", "dohle.memory.max": str(64 * MIB), "dohle.shards": "1"}
    with Node(settings) as node:
        story = Story(node, http)
        story.skip_log()
        node.kcat("-P", "-t", "orders", data=records(1000))
        story.note("partitions cost memory for good: when the last eighth of it is reached, no more are made")
        for i in range(1, 20):
            before = len(story.lines)
            code, _ = story.dohle(f"topic create wide{i} --partitions 4000 --timeout 60 -b HOST")
            if code != 0:
                break
            if i > 1:
                del story.lines[before:]
        assert code != 0
        story.log("changes of the metadata are refused")
        story.get("metrics", keep=kept)
        story.note("everything else goes on")
        story.get("readyz")
        story.dohle("produce orders -b HOST", data=records(1000))
        story.dohle("doctor HOST --write")
        story.note("and when a topic is deleted, there is room again")
        story.dohle("topic delete wide1 -b HOST")
        for _ in range(100):  # Its memory comes back when its replicas are gone.
            before = len(story.lines)
            code, _ = story.dohle("topic create narrow --partitions 3 -b HOST")
            if code == 0:
                break
            del story.lines[before:]
            time.sleep(0.2)
        story.log("takes changes again")
        story.get("metrics", keep=kept)
        assert node.stop() == 0
        return story.lines


# ---- the page ----

def quoted(page, name):
    found = re.search(rf"<!-- told: {name} -->\n```console\n(.*?)```\n", page, re.S)
    assert found, f"docs/smallbox.md tells no {name}"
    return found.group(1).splitlines()


def compare(page, name, lines):
    """Each line that the page quotes was said now, too."""
    said = {masked(line) for line in lines}
    missing = [line for line in quoted(page, name) if line and masked(line) not in said]
    assert not missing, "the page quotes what was not said:\n" + "\n".join(missing) + "\nsaid:\n" + "\n".join(lines)


def replace(page, name, lines):
    text = f"<!-- told: {name} -->\n```console\n" + "\n".join(lines) + "\n```\n"
    return re.sub(rf"<!-- told: {name} -->\n```console\n.*?```\n", lambda _: text, page, flags=re.S)
