#!/usr/bin/env python3
"""The lines that main.go reads: every golden vector that is a request or response, and our own samples."""
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOHLE = os.environ.get("DOHLE", str(ROOT / "build/dohle"))


def dohle(*arguments):
    return subprocess.run([DOHLE, *arguments], capture_output=True, check=True, text=True).stdout


def kind(name):
    return "request" if name.endswith("Request") else "response" if name.endswith("Response") else None


def main():
    apis = json.loads(dohle("wire", "list", "--format", "json"))
    keys = {api["name"] + side: api["key"] for api in apis for side in ("Request", "Response")}
    with gzip.open(ROOT / "test/golden/vectors/kafka.tsv.gz", "rt") as vectors:
        for line in vectors:
            name, version, _, _, hexes, text = line.rstrip("\n").split("\t") if line[0] != "#" else (None,) * 6
            if name in keys:
                print(keys[name], version, kind(name), hexes, text, sep="\t")
    for name, key in keys.items():
        first, _, last = next(api["knownVersions"] for api in apis if api["key"] == key).partition("-")
        for version in range(int(first), int(last or first) + 1):
            table = dohle("wire", "show", name, "--version", str(version), "--format", "tsv").splitlines()
            body = int(next(row for row in table if row.split("\t")[:2] == ["1", name]).split("\t")[4])
            frame = dohle("wire", "show", name, "--version", str(version), "--format", "hex").strip()
            text = dohle("wire", "show", name, "--version", str(version), "--format", "json")
            print(key, version, kind(name), frame[2 * body:], json.dumps(json.loads(text)), sep="\t")


sys.exit(main())
