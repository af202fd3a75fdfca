"""Tables for people."""

import math
import statistics

from .cases import BUDGETS, CASES

#: Heading, figure, and how it is printed.
COLUMNS = [
    ("IOPS", "iops", "{:,.0f}"),
    ("MB/s", "bytes_per_second", "{:,.0f}"),
    ("mean us", "latency_us", "{:,.1f}"),
    ("p99 us", "p99_us", "{:,.0f}"),
    ("max us", "max_us", "{:,.0f}"),
    ("server CPU s/1k", "server_cpu_us", "{:.4f}"),
    ("client CPU s/1k", "client_cpu_us", "{:.4f}"),
]


def value(figures: dict, key: str, form: str) -> str:
    number = figures[key]
    if key == "bytes_per_second":
        number /= 1e6
    if key.endswith("cpu_us"):
        # Microseconds per I/O are milliseconds per 1,000 I/Os.
        number /= 1e3
    return form.format(number)


def ratio(own: dict, other, key: str) -> str:
    if other is None or not other[key]:
        return "-"
    return f"{own[key] / other[key]:.2f}"


def table(medium: str, results: dict) -> str:
    """`results`: case name → system name → figures."""
    heads = ["case", "system", *(head for head, _, _ in COLUMNS), "IOPS/file", "CPU/file", "IOPS/raw", "lat/raw"]
    rows = [heads]
    for case in CASES:
        by_system = results.get(case.name, {})
        file, raw = by_system.get("nbdkit-file"), by_system.get("raw")
        for index, (system, figures) in enumerate(by_system.items()):
            row = [case.name if index == 0 else "", system]
            row += [value(figures, key, form) for _, key, form in COLUMNS]
            row += [ratio(figures, file, "iops"), ratio(figures, file, "server_cpu_us")]
            row += [ratio(figures, raw, "iops"), ratio(figures, raw, "latency_us")]
            rows.append(row)
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    lines = [f"\n{medium}"]
    for row in rows:
        left = [row[0].ljust(widths[0]), row[1].ljust(widths[1])]
        right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:])]
        lines.append("  ".join(left + right).rstrip())
    return "\n".join(lines)


def verdicts(all_results: dict) -> list[dict]:
    """Every budget whose two sides were measured."""
    found = []
    for budget in BUDGETS:
        by_system = all_results.get(budget.medium, {}).get(budget.case, {})
        verdict = budget.verdict(by_system.get("drystone"), by_system.get(budget.against))
        if verdict is not None:
            reached, met = verdict
            found.append({
                "budget": f"{budget.medium}, {budget.case}: {budget.what} / {budget.against}",
                "bound": f"{'<=' if budget.at_most else '>='} {budget.bound}",
                "ratio": round(reached, 3),
                "met": met,
            })  # fmt: skip
    return found


def budget_lines(found: list[dict]) -> str:
    if not found:
        return "\nno budget could be checked: drystone or its counterpart was not measured"
    lines = ["\nbudgets (drystone / the other)"]
    for one in found:
        word = "pass" if one["met"] else "MISS"
        lines.append(f"  {word}  {one['ratio']:6.2f}  {one['bound']:8}  {one['budget']}")
    return "\n".join(lines)


class Interval:
    """A geometric mean of ratios with its 95 % interval (normal; pairs are many)."""

    def __init__(self, ratios: list[float]):
        logs = [math.log(ratio) for ratio in ratios]
        middle = statistics.mean(logs)
        half = 1.96 * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
        self.mean, self.low, self.high = math.exp(middle), math.exp(middle - half), math.exp(middle + half)

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f} {self.high:.3f}]"


def before_lines(runs: list[dict], now: str, before: str) -> str:
    """Ratios of two releases, round by round: what a change costs."""
    lines = ["\nthis release / the one before (geometric mean of the rounds' ratios, 95 % interval)"]
    for medium, case in dict.fromkeys((run["medium"], run["case"]) for run in runs):
        sides = [[run for run in runs if (run["medium"], run["case"], run["system"]) == (medium, case, name)]
                 for name in (now, before)]  # fmt: skip
        cells = []
        for word, key in (("server CPU per I/O", "server_cpu_us"), ("IOPS", "iops")):
            cells.append(f"{word} {Interval([own[key] / other[key] for own, other in zip(*sides)])}")
        lines.append(f"  {medium}, {case}: " + ", ".join(cells))
    return "\n".join(lines)
