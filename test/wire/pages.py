#!/usr/bin/env python3
"""The facts of a reference page, apart from its wording: what two pages must agree on.

    pages.py < PAGE        print the facts, one a line

A page is text: title, lead, facts block, legend, and for request and response a heading, the byte
layout, the object tree and the schema. Facts are everything but the lead, the meanings in the tree,
and the schema's `about` and comments.
"""
import json
import re
import sys

FACTS = ["API key", "Encoded at", "Flexible versions", "Headers", "Request versions", "Response versions",
         "Request size", "Response size"]
LEGEND = ["frame", "rpc header", "request body", "RecordBatch", "Record", "response body", "tagged_fields"]
PLACE = re.compile(r"^(.*\[0x[0-9a-f]{4,}, \d+B\])")


def block(lines, start, end):
    """The lines between the one that equals or begins with `start` and the one that does with `end`."""
    first = next(i for i, line in enumerate(lines) if line.startswith(start)) + 1
    rest = lines[first:]
    last = next((i for i, line in enumerate(rest) if end and line == end), len(rest))
    return rest[:last]


def schema_facts(text):
    tokens = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M), object_pairs_hook=list)
    found = []

    def walk(path, value):
        if isinstance(value, list) and value and isinstance(value[0], tuple):
            for key, inner in value:
                if key != "about":
                    walk(f"{path}.{key}", inner)
        elif isinstance(value, list):
            for i, inner in enumerate(value):
                walk(f"{path}[{i}]", inner)
        else:
            value = json.dumps(value) if isinstance(value, bool) else str(value)
            found.append(f"schema{path} = {value}")
    walk("", tokens)
    return found


def side_facts(lines):
    found = ["heading " + next(line for line in lines if line.endswith("on the wire"))]
    found.append(next(line for line in lines if line.startswith("byte layout")))
    layout = block(lines, "byte layout", "object tree")
    words = " ".join(layout).split()
    found.append("head " + " ".join(words[:16]))
    found += ["row " + word for word in words[16:] if re.fullmatch(r"[0-9a-f]{4}", word)]
    tree = block(lines, "object tree", "kafka message schema (.json)")
    found += ["tree " + PLACE.match(line)[1] for line in tree if line.strip()]
    found += schema_facts("\n".join(block(lines, "kafka message schema", None)))
    return found


def facts(text):
    lines = [line.rstrip() for line in text.splitlines()]
    request, response = lines.index("Request"), lines.index("Response")
    head = lines[:request]
    titles = [line for line in head if line.strip()]
    titles = [line for line in titles if line not in ("All Kafka APIs", "m manifester.io")]
    found = ["title " + titles[0]]
    words = " ".join(head)
    names = "|".join(FACTS)
    position = 0
    for name in FACTS:
        end = "" if name == FACTS[-1] else rf"\s+(?={names})"
        value = r"(\d+ bytes)" if name.endswith("size") else "(.*?)"
        match = re.compile(rf"{name}\s+{value}{end}").search(words, position)
        found.append(f"fact {name} = {match[1]}")
        position = match.end(1)
    tail = words[position:]
    for part in LEGEND:
        place = tail.find(part)
        assert place >= 0, f"the legend lacks {part}"
        tail = tail[place + len(part):]
        found.append("legend " + part)
    return found + side_facts(lines[request:response]) + side_facts(lines[response:])


if __name__ == "__main__":
    print("\n".join(facts(sys.stdin.read())))
