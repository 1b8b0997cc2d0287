#!/usr/bin/env python3
"""Compare schema/ with the schemas inside Apache Kafka's jars, field by field.

usage: compare.py JARS [SCHEMA]

JARS is a directory with the jars of two releases (see pom.xml beside this file); the release with the
higher number is the one we follow, the other one supplies the versions that it has dropped. SCHEMA is
our schema directory, by default the one of this tree. Every fact must be the same in both directions;
descriptions and comments are ours and must differ; each version after a message's first has a comment that names it. Closes with "N passed, N failed".
"""
import collections
import json
import os
import re
import subprocess
import sys
import zipfile

# Messages that only the older release has: early access formats, and names that were changed later.
OLD_ONLY = {
    "ListClientMetricsResourcesRequest", "ListClientMetricsResourcesResponse",
    "ShareGroupPartitionMetadataKey", "ShareGroupPartitionMetadataValue",
}
# Versions that both releases have with different bytes. All were unstable or early access in the older
# one, and we follow the newer.
REDEFINED = {("ReadShareGroupStateSummaryResponse", 0), ("ShareGroupMetadataValue", 0)}
# A version of a renamed API: same key and bytes, other name.
RENAMED = {"ListConfigResourcesRequest": "ListClientMetricsResourcesRequest",
           "ListConfigResourcesResponse": "ListClientMetricsResourcesResponse"}
MAX_VERSION = 32767

passed = 0
failures = []


def check(good, where, fact, ours="", theirs=""):
    global passed
    if good:
        passed += 1
    else:
        failures.append(f"{where}: {fact}: ours {ours!r}, theirs {theirs!r}")


def same(ours, theirs, where, fact):
    """Equal in type too: "1" and 1, true and 1 are different facts."""
    check(json.dumps(ours) == json.dumps(theirs), where, fact, ours, theirs)


def strip_comments(text):
    """Blank out // and /* */ outside strings."""
    token = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.S)
    return token.sub(lambda m: m.group(0) if m.group(0)[0] == '"' else " ", text)


def without_doubt(pairs):
    """The object of these pairs. Kafka's files repeat a key here and there; that is fine if they agree."""
    out = {}
    for key, value in pairs:
        if out.setdefault(key, value) != value:
            raise ValueError(f"key {key} twice in {pairs}")
    return out


def parse(text):
    return json.loads(strip_comments(text), object_pairs_hook=without_doubt)


def notes(text):
    """The sentences of a schema's comment lines, as words."""
    blocks = [[]]
    for line in text.splitlines():
        match = re.match(r"\s*//\s*(.*\S)", line)
        blocks[-1].append(match[1]) if match else blocks.append([])
    sentences = [s for block in blocks for s in re.split(r"(?<=[.;:])\s+", " ".join(block))]
    return [tuple(plain(sentence)) for sentence in sentences if sentence]


def load_jars(directory):
    """{release: {message name: schema}} of all jars in the directory, and the sentences of their comments."""
    releases, sentences = collections.defaultdict(dict), set()
    for file in sorted(os.listdir(directory)):
        match = re.fullmatch(r"kafka-[a-z-]+-(\d+)\.(\d+)\.(\d+)\.jar", file)
        if not match:
            continue
        release = tuple(int(n) for n in match.groups())
        with zipfile.ZipFile(os.path.join(directory, file)) as jar:
            for entry in jar.namelist():
                if re.fullmatch(r"(common/)?(message|metadata)/\w+\.json", entry):
                    text = jar.read(entry).decode("utf-8")
                    sentences.update(notes(text))
                    schema = parse(text)
                    assert schema["name"] not in releases[release], entry
                    releases[release][schema["name"]] = schema
    return releases, sentences


def load_ours(directory):
    ours = {}
    for file in sorted(os.listdir(directory)):
        with open(os.path.join(directory, file), encoding="utf-8") as f:
            schema = parse(f.read())
        check(file == schema["name"] + ".json", file, "file name", file, schema["name"])
        ours[schema["name"]] = schema
    return ours


def span(text, top=MAX_VERSION):
    """The versions that a range means, as (first, last); first > last when there are none."""
    if text in (None, "none"):
        return 0, -1
    if text.endswith("+"):
        return int(text[:-1]), top
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def within(version, text):
    first, last = span(text)
    return first <= version <= last


def versions_of(schema):
    first, last = span(schema["validVersions"])
    return range(first, last + 1)


def text_of(versions):
    if not versions:
        return "none"
    return str(versions[0]) if len(versions) == 1 else f"{versions[0]}-{versions[-1]}"


def exists(field, version):
    return within(version, field.get("versions", field.get("taggedVersions")))


def facts(thing):
    return {k: v for k, v in thing.items() if k not in ("about", "fields", "commonStructs")}


def compare_fields(ours, new, old, old_only, where):
    """Our fields must be the new ones, in order, and between them those old ones that a dropped version had."""
    old_by_name = {f["name"]: f for f in old}
    new_by_name = {f["name"]: f for f in new}
    expected = [f["name"] for f in new]
    kept = [f["name"] for f in ours if f["name"] in new_by_name]
    check(kept == expected, where, "fields and their order", kept, expected)
    for field in ours:
        name = field["name"]
        here = f"{where}.{name}"
        before = old_by_name.get(name)
        if name in new_by_name:
            theirs = facts(new_by_name[name])
            mine = facts(field)
            # An old version without the field needs to know that the field may be left out.
            if before and before.get("ignorable") and "ignorable" not in theirs:
                if any(not exists(before, v) for v in old_only):
                    check(mine.pop("ignorable", None) is True, here, "ignorable", None, True)
            same(list(mine), list(theirs), here, "keys and their order")
            for key in sorted(set(mine) | set(theirs)):
                same(mine.get(key), theirs.get(key), here, key)
            compare_fields(field.get("fields", []), new_by_name[name].get("fields", []),
                           (before or {}).get("fields", []), old_only, here)
        else:
            check(before is not None, here, "a field that neither release has")
            if before is not None:
                check(any(exists(before, v) for v in old_only), here, "a field of no dropped version")
                same(list(facts(field)), list(facts(before)), here, "keys and their order")
                for key in sorted(set(facts(field)) | set(facts(before))):
                    same(field.get(key), before.get(key), here, key)
                compare_fields(field.get("fields", []), before.get("fields", []), [], [], here)
    for field in old:
        if field["name"] not in new_by_name and any(exists(field, v) for v in old_only):
            check(field["name"] in [f["name"] for f in ours], f"{where}.{field['name']}", "missing field")


def compare_message(ours, new, old, where):
    if old is not None and new["type"] in ("coordinator-key", "coordinator-value"):
        old = None  # the newer release numbers the keys of its records in another way; see compare_coordinator
    if new["validVersions"] == "none":
        mine = {k: v for k, v in facts(ours).items() if k != "servedVersions"}
        same(mine, facts(old), where, "facts")
        same(ours.get("servedVersions"), "none", where, "servedVersions")
        compare_fields(ours["fields"], old["fields"], [], [], where)
        compare_fields(ours.get("commonStructs", []), old.get("commonStructs", []), [], [], where + "#")
        return
    served = list(versions_of(new))
    old_only = [v for v in (versions_of(old) if old else []) if v not in served]
    expected = {}
    for key, value in facts(new).items():
        if key == "validVersions" and old_only:
            expected[key] = text_of(sorted(old_only + served))
            expected["servedVersions"] = value
            deprecated = [v for v in old_only if within(v, old.get("deprecatedVersions"))]
            if deprecated:
                expected["deprecatedVersions"] = text_of(deprecated)
        else:
            expected[key] = value
    same(list(facts(ours)), list(expected), where, "keys and their order")
    for key in sorted(set(facts(ours)) | set(expected)):
        same(facts(ours).get(key), expected.get(key), where, key)
    same([k for k in ours if k in ("fields", "commonStructs")],
         [k for k in new if k in ("fields", "commonStructs")], where, "sections")
    old = old or {}
    compare_fields(ours["fields"], new["fields"], old.get("fields", []), old_only, where)
    compare_fields(ours.get("commonStructs", []), new.get("commonStructs", []), old.get("commonStructs", []),
                   old_only, where + "#")


def shape(schema, version, names=True, tags=True):
    """What one version holds: its fields in order of the wire, with all that decoding depends on."""
    structs = {s["name"]: s["fields"] for s in schema.get("commonStructs", [])}

    def walk(fields, path, out):
        for field in fields:
            if not exists(field, version):
                continue
            tagged = within(version, field.get("taggedVersions"))
            if tagged and not tags:
                continue
            kind = field["type"]
            item = kind[2:] if kind.startswith("[]") else kind
            inner = field.get("fields") or structs.get(item)
            if inner is not None:
                kind = kind.replace(item, "struct")
            flexible = within(version, field.get("flexibleVersions", schema.get("flexibleVersions")))
            name = f"{path}{field['name']}" if names else f"{path.count('.')}"
            out.append((name, kind, within(version, field.get("nullableVersions")), flexible,
                        int(field["tag"]) if tagged else None))
            if inner is not None:
                walk(inner, name + ".", out)
        return out

    return walk(schema.get("fields", []), "", [])


def compare_versions(ours, new, old, where):
    """Version by version: names, order, types, nulls, tags."""
    served = list(versions_of(new))
    for version in versions_of(ours):
        reference = new if version in served else old
        mine, theirs = shape(ours, version), shape(reference, version)
        check(mine == theirs, where, f"version {version}",
              [f for f in mine if f not in theirs], [f for f in theirs if f not in mine])
    for version in versions_of(old) if old else []:
        if (where, version) in REDEFINED:
            continue
        mine, theirs = shape(ours, version, False, False), shape(old, version, False, False)
        check(mine == theirs, where, f"bytes of version {version} in the older release", mine, theirs)


def compare_coordinator(ours, old, where):
    """A record of a coordinator: the older release counts the number of a key as its version."""
    if ours["type"] == "coordinator-key" and old["type"] != "coordinator-key":
        last = versions_of(old)[-1]
        same(ours["apiKey"], last, where, "apiKey")
        mine, theirs = shape(ours, 0, False), shape(old, last, False)
        check(mine == theirs, where, "bytes in the older release", mine, theirs)
    else:
        for version in versions_of(old):
            if (where, version) in REDEFINED:
                continue
            mine, theirs = shape(ours, version, False, False), shape(old, version, False, False)
            check(mine == theirs, where, f"bytes of version {version} in the older release", mine, theirs)


def all_fields(schema):
    def walk(fields, path):
        for field in fields:
            yield path + field["name"], field
            yield from walk(field.get("fields", []), path + field["name"] + ".")
    yield from walk(schema.get("fields", []), "")
    yield from walk(schema.get("commonStructs", []), "#")


def plain(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def compare_words(ours, originals):
    """Each field has a description, and it is our own."""
    theirs = set()
    for schema in originals:
        for _, field in all_fields(schema):
            theirs.add(tuple(plain(field.get("about", ""))))
    copies = 0
    for name, schema in ours.items():
        for path, field in all_fields(schema):
            about = field.get("about", "")
            here = f"{name}.{path}"
            check(bool(about.strip()), here, "no description")
            check(about.endswith(".") and "\n" not in about, here, "not one sentence with a full stop", about)
            words = tuple(plain(about))
            copied = len(words) > 4 and words in theirs
            copies += copied
            check(not copied, here, "description copied", about)
    print(f"{copies} descriptions equal to an original of more than four words")


def compare_notes(directory, ours, theirs):
    """Each version after the first has a note that names it, and the notes are our own."""
    for name, schema in ours.items():
        with open(os.path.join(directory, name + ".json"), encoding="utf-8") as f:
            sentences = notes(f.read())
        for words in sentences:
            check(len(words) <= 4 or words not in theirs, name, "note copied", " ".join(words))
        noted, text = set(), " ".join(" ".join(words) for words in sentences)
        for first, last in re.findall(r"\bversions? (\d+)(?: (?:to |and )?(\d+)\b)?", text):
            noted.update(range(int(first), max(int(first), int(last or 0)) + 1))
        missing = [v for v in list(versions_of(schema))[1:] if v not in noted]
        check(not missing, name, "versions without a note", missing)


def compare_errors(jars, release, file):
    """errors.json against the table inside the newer release's clients jar, which only Java can read."""
    here = os.path.dirname(os.path.abspath(__file__))
    clients = os.path.join(jars, "kafka-clients-" + ".".join(map(str, release)) + ".jar")
    logging = [os.path.join(jars, f) for f in os.listdir(jars) if f.startswith("slf4j-api-")]
    run = subprocess.run(["java", "-cp", os.pathsep.join([clients] + logging),
                          os.path.join(here, "PrintErrors.java")], check=True, capture_output=True, text=True)
    theirs = [line.split("\t") for line in run.stdout.splitlines()]
    with open(file, encoding="utf-8") as f:
        ours = parse(f.read())
    check([e["code"] for e in ours] == [int(t[0]) for t in theirs], "errors", "codes and their order",
          [e["code"] for e in ours], [int(t[0]) for t in theirs])
    originals = {tuple(plain(t[3])) for t in theirs}
    by_code = {int(t[0]): t for t in theirs}
    for error in ours:
        if error["code"] not in by_code:
            continue
        _, name, retriable, _ = by_code[error["code"]]
        where = f"errors.{name}"
        same(list(error), ["code", "name", "retriable", "message"], where, "keys and their order")
        same(error["name"], name, where, "name")
        same(error["retriable"], retriable == "true", where, "retriable")
        words = tuple(plain(error["message"]))
        check(bool(words) and error["message"].endswith("."), where, "message", error["message"])
        check(len(words) <= 4 or words not in originals, where, "message copied", error["message"])
    print(f"{len(ours)} errors")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folder = sys.argv[2] if len(sys.argv) == 3 else os.path.join(top, "schema")
    releases, sentences = load_jars(sys.argv[1])
    if len(releases) != 2:
        sys.exit(f"{sys.argv[1]} must hold the jars of two releases, not of {len(releases)}")
    old, new = (releases[r] for r in sorted(releases))
    ours = load_ours(os.path.join(folder, "messages"))
    for name in sorted(set(new) | set(old) | set(ours)):
        if name in new:
            check(name in ours, name, "no such file in schema/messages")
        elif name in old:
            check(name in OLD_ONLY, name, "only in the older release, and we do not know why")
            check(name not in ours, name, "we have a message that the newer release does not")
        else:
            check(False, name, "no release has such a message")
    for name in sorted(set(new) & set(ours)):
        before = old.get(RENAMED.get(name, name))
        if name in RENAMED:
            compare_message(ours[name], new[name], None, name)
            compare_versions(ours[name], new[name], before, name)
        elif before is not None and new[name]["type"] in ("coordinator-key", "coordinator-value"):
            compare_message(ours[name], new[name], None, name)
            compare_versions(ours[name], new[name], None, name)
            compare_coordinator(ours[name], before, name)
        else:
            compare_message(ours[name], new[name], before, name)
            compare_versions(ours[name], new[name], before, name)
    compare_words(ours, list(new.values()) + list(old.values()))
    compare_notes(os.path.join(folder, "messages"), ours, sentences)
    compare_errors(sys.argv[1], max(releases), os.path.join(folder, "errors.json"))
    for failure in failures[:200]:
        print("FAIL", failure)
    if len(failures) > 200:
        print(f"and {len(failures) - 200} more")
    fields = sum(1 for s in ours.values() for _ in all_fields(s))
    versions = sum(len(versions_of(s)) for s in ours.values())
    print(f"{len(ours)} messages, {fields} fields, {versions} versions")
    print(f"{passed} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


main()
