"""Nothing of a bench outlives it: no process, no file, however it ends.

All that the bench writes lies in one directory, and all that it starts inherits a mark in its environment. A janitor, a process
of its own session, waits on a pipe; when the bench is gone (also by SIGKILL, which closes the pipe too), it kills what has the
mark and removes the directory.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MARK = "DOHLE_BENCH_DIRECTORY"


def marked(directory):
    """Processes that have the mark of this directory."""
    mark = f"{MARK}={directory}".encode()
    for place in Path("/proc").iterdir():
        if not place.name.isdigit() or int(place.name) == os.getpid():
            continue
        try:
            if mark in (place / "environ").read_bytes().split(b"\0") and (place / "stat").read_text().rsplit(") ", 1)[1][0] != "Z":
                yield int(place.name)
        except OSError:
            pass  # Gone, or another user's.


def sweep(directory):
    """Kill until there is none: what is killed may just have started another."""
    while pids := list(marked(directory)):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)
    shutil.rmtree(directory, ignore_errors=True)


class Guard:
    def __enter__(self):
        signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
        self.directory = tempfile.mkdtemp(prefix="dohle-bench-")
        self.janitor = subprocess.Popen([sys.executable, __file__, self.directory], stdin=subprocess.PIPE, start_new_session=True)
        tempfile.tempdir = os.environ["TMPDIR"] = os.environ[MARK] = self.directory
        return Path(self.directory)

    def __exit__(self, *unused):
        del os.environ[MARK]
        tempfile.tempdir = None
        self.janitor.stdin.close()
        self.janitor.wait()


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.read()
    sweep(sys.argv[1])
