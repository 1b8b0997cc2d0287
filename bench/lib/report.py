"""The page of the last results: a table of ratios and a plot for each figure, one file, no scripts."""
import html
import json
from pathlib import Path

RESULTS = Path(__file__).resolve().parent.parent / "results"
COLOURS = {"dohle sync": "#1f6f8b", "dohle replicated": "#3fa7c4", "kafka default": "#8a8f98", "kafka tuned": "#b4b8bf",
           "kafka flush": "#6d7480", "kfake": "#7b9e5c", "tansu": "#a3763f",
           "limit": "#d9822b", "limit sync": "#d9822b"}
STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
table{border-collapse:collapse;width:100%}th,td{text-align:right;padding:.25rem .5rem;border-bottom:1px solid #d8dde3}
th:first-child,td:first-child{text-align:left}figure{margin:1.5rem 0}figcaption{font-weight:600}svg{max-width:100%;height:auto}
.note{color:#57606a}svg text{fill:#1b1f24}
@media(prefers-color-scheme:dark){body{color:#e6e9ee;background:#14171b}svg text{fill:#e6e9ee}th,td{border-color:#333a43}}"""


def grouped(rows):
    """Rows of one figure together, in the order of the file."""
    figures = {}
    for row in rows:
        figures.setdefault((row["metric"], row["unit"]), []).append(row)
    return figures


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}" if value >= 10 else f"{value:.3g}"


def plot(rows):
    """A bar per server up to its median, with a line from its least to its largest value."""
    width, left, bar = 720, 150, 26
    scale = (width - left - 90) / (max(row["max"] for row in rows) or 1)
    parts = []
    for i, row in enumerate(rows):
        top = i * bar + 4
        parts.append(f'<text x="{left - 8}" y="{top + 14}" text-anchor="end" font-size="13">{html.escape(row["server"])}</text>')
        parts.append(f'<rect x="{left}" y="{top}" width="{max(row["median"] * scale, 1):.1f}" height="18" rx="2" '
                     f'fill="{COLOURS.get(row["server"], "#666")}"/>')
        parts.append(f'<path d="M{left + row["min"] * scale:.1f} {top + 9}H{left + row["max"] * scale:.1f}" stroke="currentColor" '
                     'stroke-width="2" opacity=".7"/>')
        parts.append(f'<text x="{left + row["max"] * scale + 8:.1f}" y="{top + 14}" font-size="13">{number(row["median"])}</text>')
    return (f'<svg viewBox="0 0 {width} {len(rows) * bar + 8}" role="img" aria-label="medians and spread">' + "".join(parts) + "</svg>")


def cells(rows):
    """What the table says of one figure: by server, then the ratio to the better Kafka and the share of the limit."""
    by_name = {row["server"]: row for row in rows}
    values = {name: number(row["median"]) for name, row in by_name.items()}
    best = by_name.get("dohle sync") or by_name.get("dohle replicated") or {}
    kept = by_name.get("dohle replicated") or best
    return values, kept.get("kafka_ratio"), kept.get("share_of_limit")


HEADS = ["dohle sync", "dohle replicated", "kafka default", "kafka tuned", "kafka flush", "kfake", "tansu", "limit"]


def table(results):
    """The same as text, for the terminal."""
    print(f"\n{'':48}" + "".join(f"{head:>18}" for head in HEADS) + "   Kafka/Dohle  of limit")
    for (metric, unit), rows in grouped(results["rows"]).items():
        values, ratio, share = cells(rows)
        print(f"{metric[:47]:48}" + "".join(f"{values.get(head, '-'):>18}" for head in HEADS) +
              f"{ratio if ratio else '-':>14}{f'{share:.0%}' if share else '-':>10}  {unit}")
    for line in results["void"]:
        print("void: " + line)
    for line in results.get("left_out", []):
        print("no time for: " + line)
    if results["gates_failed"]:
        print("the machine was not quiet: " + ", ".join(results["gates_failed"]))


def page(results):
    lines = ["<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width,initial-scale=1'>",
             f"<title>Dohle: measured</title><style>{STYLE}</style><h1>Dohle beside Apache Kafka 4.4 and the limit</h1>",
             f"<p class=note>{results['date']}, {html.escape(results['machine'])}, scale {results['scale']}, revision {results['git']}; "
             f"steal {results['steal']:.1%}, other processes {results['others_cores']} cores. Less is better everywhere. Bars are medians, "
             "lines the spread. The limit is what no broker can leave out, measured in the same run. The ratio is the better Kafka row to "
             "Dohle <em>replicated</em>, which makes the same promise as Kafka; <em>sync</em> has every acknowledged record on disk."]
    lines += [f"<p><strong>{html.escape(gate)}</strong>" for gate in results["gates_failed"]]
    lines += [f"<p><strong>void: {html.escape(line)}</strong>" for line in results["void"]]
    lines += [f"<p>no time for: {html.escape(', '.join(results['left_out']))}" for _ in results.get("left_out", [])[:1]]
    lines.append("<table><tr><th>figure" + "".join(f"<th>{head}" for head in HEADS) + "<th>Kafka / Dohle<th>of limit")
    for (metric, unit), rows in grouped(results["rows"]).items():
        values, ratio, share = cells(rows)
        lines.append(f"<tr><td>{html.escape(metric)}, {html.escape(unit)}" + "".join(f"<td>{values.get(head, '')}" for head in HEADS) +
                     f"<td>{ratio or ''}<td>{f'{share:.0%}' if share else ''}")
    lines.append("</table>")
    for (metric, unit), rows in grouped(results["rows"]).items():
        lines.append(f"<figure><figcaption>{html.escape(metric)}, {html.escape(unit)}</figcaption>{plot(rows)}</figure>")
    return "\n".join(lines) + "\n"


def main(words):
    results = json.loads((RESULTS / "latest.json").read_text())
    (RESULTS / "latest.html").write_text(page(results))
    print(f"wrote {RESULTS / 'latest.html'}")
    return 0
