"""A Kafka server of its own for a test session: the fixture `dohle` is its address."""
import json
import os
import subprocess

import pytest


def start_dohle(*topics):
    command = [os.environ.get("DOHLE", "dohle"), "start", "--test", "--log-level", "warn"]
    for topic in topics:
        command += ["--topic", topic]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return process, json.loads(process.stdout.readline())["bootstrap"]


@pytest.fixture(scope="session")
def dohle():
    process, address = start_dohle("words:3")
    yield address
    process.communicate()  # Closes its standard input, with which it ends.
