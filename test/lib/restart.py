"""A command for a shell that makes this process restart a server, once: for `dohle check liveness --restart`.

    with Restart(node.stop, node.launch) as restart:
        subprocess.run([..., "--restart", restart.command])
"""
import shutil
import tempfile
import threading
from pathlib import Path


class Restart:
    def __init__(self, *steps):
        self.steps = steps
        self.directory = tempfile.mkdtemp(prefix="dohle-restart-")
        self.wanted, self.done = Path(self.directory, "wanted"), Path(self.directory, "done")
        self.command = f"touch {self.wanted}; while [ ! -e {self.done} ]; do sleep 0.1; done; [ ! -s {self.done} ]"
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.wait)

    def wait(self):
        while not self.wanted.exists():
            if self.over.wait(0.05):
                return
        said = ""
        try:
            for step in self.steps:
                step()
        except Exception as reason:  # The command fails then.
            said = repr(reason)
        self.done.write_text(said)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.over.set()
        self.thread.join()
        shutil.rmtree(self.directory)
