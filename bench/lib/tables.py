"""The tables of docs/performance.md from bench/results/latest.json, codec.json and growth.json: every figure in them is of a command's run.

    ./dev bench tables           print what stands between the marks of the page
    ./dev bench tables --write   put it there
    ./dev bench tables --check   1 and the difference if the page says anything else (test/bench)
"""
import difflib
import json
import re
import statistics
from dataclasses import dataclass
from pathlib import Path

import report

PAGE = Path(__file__).resolve().parent.parent.parent / "docs/performance.md"
HEADS = ["dohle sync", "dohle replicated", "kafka default", "kafka tuned", "kafka flush", "kfake", "tansu", "limit"]
TITLES = ["Dohle `sync`", "Dohle `replicated`", "Kafka default", "Kafka tuned", "Kafka flush", "kfake", "tansu", "limit"]
MILLION, CPU = "CPU s per million records", "CPU us each"


@dataclass
class Target:
    """`measured`: figures, each against its own `must`. `note`: what no run can make false, or a function of the results."""
    name: str
    must: str
    measured: tuple
    note: object = ""


@dataclass
class Ratio:
    """The better Kafka row to Dohle's."""
    metric: str
    unit: str
    must: float
    server: str = "dohle replicated"


@dataclass
class Most:
    metric: str
    unit: str
    must: float
    server: str = "dohle replicated"


@dataclass
class Codec:
    """Java to Dohle, reading or writing one message."""
    message: str
    way: str
    must: float


@dataclass
class Growth:
    """The exponent of a curve of `./dev bench growth`."""
    curve: str
    must: float


def changes(protocol):
    return [f"1,000 members, {protocol}: {step}" for step in ("all join", "one joins", "one leaves", "a tenth leave")]


def echo_note(results):
    """How far below Kafka the least server is that can answer at all."""
    metric = "Heartbeat, 2,000 members, one at a time"
    limit, own = (results.medians.get((metric, CPU, server)) for server in ("limit", "dohle replicated"))
    best = results.value(Ratio(metric, CPU, 1, "limit"))
    if not limit or not own or not best:
        return ""
    return f"the limit, an echo, is itself {best:.1f} times below the better Kafka row: what is not in it is {1 - limit / own:.0%} of the cost"


def codec_note(results):
    return f"`./dev bench codec` of {results.codec_date}" if results.codec_date else "`./dev bench codec`"


def growth_note(results):
    return (f"`./dev bench growth` of {results.growth['date']}, by up to "
            + ", ".join(f"{curve['points'][-1][0]:,}" for curve in results.growth["curves"]))


def installed_note(results):
    sizes = [(server, value) for (metric, _, server), value in results.medians.items() if metric == "installed"]
    return "; ".join(f"{server}: {value:,.1f} MiB" for server, value in sizes if server in ("dohle replicated", "kafka default"))


FIRST = "exec to first acknowledged record"
GROWTH = {"memory by partitions": 1.05, "memory by connections": 1.05, "memory by members": 1.05, "CPU of a heartbeat by members": 0.1}
TARGETS = [
    Target("T1 Heartbeat decode", "5", (Codec("HeartbeatRequest-4", "decode", 5),), codec_note),
    Target("T2 ConsumerGroupHeartbeat, BrokerHeartbeat decode", "3, 1.2",
           (Codec("ConsumerGroupHeartbeatRequest-1", "decode", 3), Codec("BrokerHeartbeatRequest-2", "decode", 1.2)),
           codec_note),
    Target("T3 Metadata encode", "5", (Codec("MetadataResponse-12", "encode", 5),), codec_note),
    Target("T4 Fetch decode, 30 partitions", "3", (Codec("FetchRequest-16", "decode", 3),), codec_note),
    Target("T5 produce 150 x 100 B, CPU", "4", (Ratio("produce 150 x 100 B", MILLION, 4),)),
    Target("T6 produce 1 KiB, CPU per GB", "1.7", (Ratio("produce 950 x 1 KiB", "CPU s per GB", 1.7),)),
    Target("T7 produce 100 KiB, CPU per GB", "1.3", (Ratio("produce 10 x 100 KiB", "CPU s per GB", 1.3),)),
    Target("T8 produce lz4, zstd, CPU per GB", "1.2, 1.2",
           (Ratio("produce 150 x 1 KiB, lz4", "CPU s per GB before compression", 1.2),
            Ratio("produce 150 x 1 KiB, zstd", "CPU s per GB before compression", 1.2)),
           "both decompress every batch and look at its records"),
    Target("T9, T10 small produce, alone and 5 at a time", "8, 20",
           (Ratio("produce 1 x 100 B, 64 connections", CPU, 8), Ratio("produce 1 x 100 B, 1 connection, 5 at a time", CPU, 20))),
    Target("T11 acknowledged and delivered p50", "2, 2",
           (Ratio("1,000 records a second, acknowledged, p50", "us", 2), Ratio("1,000 records a second, delivered, p50", "us", 2))),
    Target("T12 delivered p99.9 at 10,000 a second", "2", (Ratio("10,000 records a second by tens, delivered, p99.9", "us", 2),),
           "of a virtual machine whose own noise is milliseconds: it says little"),
    Target("T13 durable acknowledgements, 1 and 64 producers", "1.5, 5",
           (Ratio("durable 1 x 100 B, 1 connections, between two answers", "us", 1.5, "dohle sync"),
            Ratio("durable 1 x 100 B, 64 connections, between two answers", "us", 5, "dohle sync"))),
    Target("T14 catch-up fetch by 1 MiB, CPU per GB", "1.2", (Ratio("fetch by 1 MiB", "CPU s per GB", 1.2),)),
    Target("T15 1,000 consumers that wait, CPU", "10", (Ratio("1,000 consumers that wait", "CPU ms per minute", 10),)),
    Target("T16 " + FIRST, "100, 30 ms", (Ratio(FIRST, "ms", 100), Most(FIRST, "ms", 30)),
           "ten waits for the disk, one after the other, are in it (*Waits for the disk at a start*, below)"),
    Target("T17 the same with 500 partitions", "50", (Ratio(FIRST + ", 500 partitions", "ms", 50),)),
    Target("T18 resident when idle", "50", (Ratio("resident when idle", "MiB", 50),)),
    Target("T19 bytes installed", "50", (Ratio("installed", "MiB", 50),), installed_note),
    Target("T20 memory per idle connection", "512 B", (Most("resident per idle connection", "bytes", 512),)),
    Target("T21 create a partition", "10", (Ratio("create a partition", "us each", 10),)),
    Target("T22 resident per partition", "20", (Ratio("resident per partition", "bytes", 20),),
           "Kafka's figure is what its heap happens to grow by, which no two runs have alike (*A partition that nobody touches*, below)"),
    Target("T23 heartbeat alone", "8", (Ratio("Heartbeat, 2,000 members, one at a time", CPU, 8),),
           echo_note),
    Target("T23 heartbeat coalesced", "30", (Ratio("Heartbeat, 2,000 members, 16 at a time", CPU, 30),)),
    Target("T24 resident per member", "5", (Ratio("Heartbeat, 2,000 members, resident", "bytes each", 5),)),
    Target("T25 rebalance, classic, CPU: " + ", ".join(name.split(": ")[1] for name in changes("classic")), "5 each",
           tuple(Ratio(name + ", server", "CPU ms", 5) for name in changes("classic")),
           "in time the two cores that servers and a thousand clients share decide"),
    Target("T26 rebalance, consumer protocol, CPU", "10 each", tuple(Ratio(name + ", server", "CPU ms", 10) for name in changes("consumer")),
           "the second of gathering is in both, and heartbeats, each a request of its own, are most of the CPU (*A thousand members*, below)"),
    Target("T26 the same, time", "1.5 each", tuple(Ratio(name, "ms", 1.5) for name in changes("consumer")),
           "both wait for the same second of gathering"),
    Target("T27 growth, k of " + ", ".join(GROWTH), "at most " + ", ".join(map(str, GROWTH.values())),
           tuple(Growth(curve, must) for curve, must in GROWTH.items()), growth_note),
]


class Results:
    def __init__(self, latest, codec, growth):
        self.latest, self.growth, self.codec_date = latest, growth, codec.get("date")
        self.medians = {(row["metric"], row["unit"], row["server"]): row["median"] for row in latest["rows"]}
        self.codec = {(row["message"], row["way"]): row["java_ratio"] for row in codec["rows"]}

    def value(self, wanted):
        """The figure that is held against `wanted.must`; None: not measured."""
        if isinstance(wanted, Codec):
            return self.codec.get((wanted.message, wanted.way))
        if isinstance(wanted, Growth):
            return next((curve["k"] for curve in self.growth["curves"] if curve["curve"] == wanted.curve), None)
        own = self.medians.get((wanted.metric, wanted.unit, wanted.server))
        if isinstance(wanted, Most):
            return own
        kafka = [value for (metric, unit, server), value in self.medians.items()
                 if (metric, unit) == (wanted.metric, wanted.unit) and server.startswith("kafka")]
        return min(kafka) / own if own and own > 0 and kafka else None


def plain(value):
    return f"{value:,.0f}" if value >= 20 else f"{value:.1f}"


def said_of(wanted, value):
    if value is None:
        return "not measured"
    if isinstance(wanted, Growth):
        return f"{value:.2f}"
    return f"{plain(value)} {'ms' if wanted.unit == 'ms' else 'B'}" if isinstance(wanted, Most) else plain(value)


def target_row(target, results):
    values = [(wanted, results.value(wanted)) for wanted in target.measured]
    held = [value <= wanted.must if isinstance(wanted, (Most, Growth)) else value >= wanted.must for wanted, value in values if value is not None]
    holds = "not measured" if not held else "yes" if all(held) else "no" if not any(held) else "in part"
    note = target.note(results) if callable(target.note) else target.note
    said = ", ".join(said_of(wanted, value) for wanted, value in values)
    return f"| {target.name} | {target.must} | {said} | {holds}{'; ' + note if note else ''} |"


def targets(results):
    return ["| target | must | measured | holds |", "| --- | --- | --- | --- |", *(target_row(target, results) for target in TARGETS)]


def figures(results):
    lines = ["| figure | " + " | ".join(TITLES) + " | Kafka / Dohle | of limit |", "| --- |" + " --- |" * (len(HEADS) + 2)]
    for (metric, unit), rows in report.grouped(results.latest["rows"]).items():
        values = {row["server"]: row["median"] for row in rows}
        own = values.get("dohle sync") if "kafka flush" in values and "kafka default" not in values else values.get("dohle replicated")
        kafka = min((value for name, value in values.items() if name.startswith("kafka")), default=None)
        cells = [report.number(values[head]) if head in values else "" for head in HEADS]
        cells.append(f"{kafka / own:.2f}" if kafka and own else "")
        cells.append(f"{values['limit'] / own:.0%}" if values.get("limit") and own else "")
        lines.append(f"| {metric}, {unit} | " + " | ".join(cells) + " |")
    return lines


def machine(results):
    latest = results.latest
    text = (f"`./dev bench --{latest['scale'].replace(', ', ' --')}`, {latest['date']}, revision {latest['git']}, {latest['machine']}; "
            f"others took {latest['others_cores']} cores, {latest['steal']:.1%} of the time was stolen.")
    spread = [max(row["values"]) / min(row["values"]) for row in latest["rows"] if len(row["values"]) > 1 and min(row["values"]) > 0]
    if spread:
        text += f" Of a figure's two values the larger was {statistics.median(spread):.2f} times the smaller, in the median."
    lines = [text]
    if latest["gates_failed"]:
        lines.append("The machine was not quiet: read the ratios of one row, not the figures of two days.")
    lines += [f"Void: {line}." for line in latest["void"]]
    if latest.get("left_out"):
        lines.append(f"Ten minutes were over before the second turn of: {', '.join(latest['left_out'])}.")
    if latest.get("warm"):
        lines.append("Warm-up before each load, not measured, requests (`java`: records): "
                     + ", ".join(f"{load} {count:,}" for load, count in latest["warm"].items()) + ".")
    return lines


BLOCKS = {"machine": machine, "figures": figures, "targets": targets}


def written(page, results):
    """The page with its blocks as the results have them."""
    for name, block in BLOCKS.items():
        mark = re.compile(rf"(<!-- bench:{name} -->\n).*?(<!-- /bench:{name} -->)", re.S)
        if len(mark.findall(page)) != 1:
            raise SystemExit(f"docs/performance.md has not one block bench:{name}")
        text = "\n".join(block(results)) + "\n"
        page = mark.sub(lambda found, text=text: found[1] + text + found[2], page)
    return page


def main(words):
    results = Results(*(json.loads((report.RESULTS / name).read_text()) for name in ("latest.json", "codec.json", "growth.json")))
    if not words:
        for block in BLOCKS.values():
            print("\n".join(block(results)) + "\n")
        return 0
    before = PAGE.read_text()
    after = written(before, results)
    if words == ["--write"]:
        PAGE.write_text(after)
        return 0
    if words != ["--check"]:
        print(__doc__)
        return 2
    print("\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), "docs/performance.md", "latest.json", lineterm="")))
    return 0 if before == after else 1
