"""Reports as pictures: PNG for chats and mails, SVG for pages; drawn without a screen."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.ledger.reporting import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("png", "svg")
MOST_BARS = 15
_COLOURS = ("#2f6f9f", "#d98324", "#5b8c5a", "#a23e48", "#7b6d8d", "#8d8d3f")


def draw(report: Report, kind: str) -> bytes:
    """
    One report as a picture.

    :param kind: ``png`` or ``svg``.
    :raises BadInput: for another kind.
    """
    if kind not in FORMATS:
        raise BadInput(f"chart {kind!r} is none of {', '.join(FORMATS)}")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.add_subplot()
    if report.rows:
        _DRAWN[report.name](axes, report)
    else:
        axes.text(0.5, 0.5, "nothing in this span of time", ha="center", va="center", color="grey")
        axes.set_axis_off()
    axes.set_title(report.title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, dpi=120, metadata={"Date": None} if kind == "svg" else None)
    return picture.getvalue()


def _throughput(axes: Axes, report: Report) -> None:
    """Lines: what was done in each hour, stage by stage."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    stages: dict[str, dict[datetime, int]] = defaultdict(dict)
    for row in _dicts(report):
        stages[row["stage"]][datetime.fromtimestamp(row["hour"] / 1000, UTC)] = row["done"]
    for colour, (stage, hours) in zip(_COLOURS, sorted(stages.items()), strict=False):
        axes.plot(list(hours), list(hours.values()), marker="o", markersize=3, label=stage, color=colour)  # type: ignore[arg-type]  # moments are taken too
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]  # matplotlib leaves it untyped
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]  # as above
    axes.set_ylim(bottom=0)
    axes.set_ylabel("items done an hour")
    axes.legend(frameon=False)


def _times(axes: Axes, report: Report) -> None:
    """Bars beside each other: percentiles in seconds, on a scale of powers of ten."""
    rows = _dicts(report)
    for at, (colour, name) in enumerate(zip(_COLOURS, ("p50", "p95", "p99"), strict=False)):
        heights = [max(float(row[name]), 0.001) for row in rows]
        axes.bar([place + 0.27 * (at - 1) for place in range(len(rows))], heights, 0.27, label=name, color=colour)
    axes.set_xticks(range(len(rows)), [f"{row['stage']}\n{row['what']}" for row in rows])
    axes.set_yscale("log")
    axes.set_ylabel("seconds")
    axes.legend(frameon=False)


def _failures(axes: Axes, report: Report) -> None:
    """Bars: the most frequent codes of the whole span."""
    _bars(axes, _summed(report, "code", "items"), "items")


def _retries(axes: Axes, report: Report) -> None:
    """Bars: done and failed at each attempt, all stages together."""
    done, failed = _summed(report, "attempt", "done"), _summed(report, "attempt", "failed")
    attempts = sorted(done, key=int)
    axes.bar(attempts, [done[each] for each in attempts], label="done", color=_COLOURS[2])
    axes.bar(
        attempts,
        [failed[each] for each in attempts],
        bottom=[done[each] for each in attempts],
        label="failed",
        color=_COLOURS[3],
    )
    axes.set_xlabel("attempt")
    axes.set_ylabel("ends")
    axes.legend(frameon=False)


def _destinations(axes: Axes, report: Report) -> None:
    """Bars: gigabytes by destination."""
    sums = {name: size / 1e9 for name, size in _summed(report, "destination", "bytes").items()}
    _bars(axes, sums, "GB")


def _jobs(axes: Axes, report: Report) -> None:
    """Bars: seconds from pending to completed, by how it ended."""
    _bars(axes, _summed(report, "status", "average_seconds"), "seconds, on average")


def _bars(axes: Axes, sums: dict[str, float], unit: str) -> None:
    """Lying bars, the longest on top; what is not shown is summed up in the last."""
    ordered = sorted(sums.items(), key=lambda pair: -pair[1])
    shown, rest = ordered[:MOST_BARS], ordered[MOST_BARS:]
    if rest:
        shown.append((f"{len(rest)} others", sum(size for _, size in rest)))
    names = [name if len(name) <= 40 else f"…{name[-39:]}" for name, _ in shown]
    bars = axes.barh(range(len(shown)), [size for _, size in shown], color=_COLOURS[0])
    axes.bar_label(bars, labels=[f" {size:,.4g}" for _, size in shown])
    axes.set_yticks(range(len(shown)), names, parse_math=False)  # a path may hold two $
    axes.invert_yaxis()
    axes.set_xlabel(unit)


def _summed(report: Report, by: str, what: str) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for row in _dicts(report):
        sums[str(row[by])] += row[what] or 0
    return sums


def _dicts(report: Report) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = report.as_json()["rows"]
    return rows


_DRAWN: dict[str, Callable[[Axes, Report], None]] = {
    "throughput": _throughput,
    "times": _times,
    "failures": _failures,
    "retries": _retries,
    "destinations": _destinations,
    "jobs": _jobs,
}
