"""What the ledger knows of a span of time, each report one query: the same on every database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.ledger.schema import outcomes, pending_jobs, unix_ms

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
MOST_ROWS = 1000
_o = outcomes.c
_done = _o.place == "result"
_Value = Any


@dataclass(frozen=True, kw_only=True)
class Report:
    """
    A table of figures.

    :param name: of the report.
    :param title: for people.
    :param columns: names, with their unit where there is one.
    :param rows: values, one list a row.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[_Value, ...], ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values: one object a row."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"name": self.name, "title": self.title, "rows": rows}

    def as_table(self) -> list[str]:
        """Lines for a log or a terminal."""
        cells = [self.columns, *(tuple(_shown(value) for value in row) for row in self.rows)]
        widths = [max(len(row[at]) for row in cells) for at in range(len(self.columns))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        return [self.title, *(line.rstrip() for line in lines), "" if self.rows else "(nothing)"]


@dataclass(frozen=True, kw_only=True)
class Span:
    """
    What is reported on.

    :param since: ends from this moment on.
    :param until: ends before this moment.
    :param queue_base: of one installation; of all, if not given.
    """

    since: datetime
    until: datetime
    queue_base: str | None = None

    def holds(self) -> sa.ColumnElement[bool]:
        """For outcomes."""
        within = sa.and_(_o.finished_at >= self.since, _o.finished_at < self.until)
        return within if self.queue_base is None else sa.and_(within, _o.queue_base == self.queue_base)


def report(engine: sa.Engine, name: str, span: Span) -> Report:
    """
    One report.

    :raises BadInput: for a name that is none of `REPORTS`.
    """
    if name not in REPORTS:
        raise BadInput(f"report {name!r} is none of {', '.join(REPORTS)}")
    title, columns, query = REPORTS[name]
    with engine.connect() as connection:
        rows = tuple(_plain(row) for row in connection.execute(query(span)).all())
    return Report(name=name, title=title, columns=columns, rows=rows)


def _throughput(span: Span) -> sa.Select[Any]:
    hour = (unix_ms(_o.finished_at) // HOUR_MS * HOUR_MS).label("hour")
    return (
        sa.select(
            hour,
            _o.stage,
            _count(_done),
            _count(_o.place == "fail"),
            _count(_o.place == "skipped"),
            sa.func.coalesce(sa.func.sum(_o.bytes), 0),
        )
        .where(span.holds())
        .group_by(hour, _o.stage)
        .order_by(hour, _o.stage)
    )


def _times(span: Span) -> sa.Select[Any]:
    """Waiting of first attempts (a later one waits for its time as well), running of those that were done."""
    waiting = _measured(span, "waiting", _o.submitted_at, _o.started_at, _o.attempt == 1)
    running = _measured(span, "running", _o.started_at, _o.finished_at, _done)
    each = sa.union_all(waiting, running).subquery()
    same = (each.c.what, each.c.stage)
    ranked = sa.select(
        *same,
        each.c.ms,
        sa.func.row_number().over(order_by=each.c.ms, partition_by=same).label("rank"),
        sa.func.count().over(partition_by=same).label("many"),
    ).subquery()
    r = ranked.c
    percentiles = [
        (sa.func.min(sa.case((r["rank"] * 100 >= r.many * percent, r.ms))) / 1000.0).label(f"p{percent}")
        for percent in (50, 95, 99)
    ]
    seconds = (sa.func.avg(r.ms) / 1000.0).label("average")
    return (
        sa.select(r.what, r.stage, sa.func.count(), seconds, *percentiles)
        .group_by(r.what, r.stage)
        .order_by(r.what, r.stage)
    )


def _failures(span: Span) -> sa.Select[Any]:
    day = (unix_ms(_o.finished_at) // DAY_MS * DAY_MS).label("day")
    by = (day, _o.stage, _o.code, _o.egress, _o.account, _o.host)
    return (
        sa.select(*by, sa.func.count())
        .where(span.holds(), _o.place != "result")
        .group_by(*by)
        .order_by(day.desc(), sa.func.count().desc())
        .limit(MOST_ROWS)
    )


def _retries(span: Span) -> sa.Select[Any]:
    return (
        sa.select(_o.stage, _o.attempt, _count(_done), _count(_o.place == "fail"))
        .where(span.holds(), _o.attempt.is_not(None))
        .group_by(_o.stage, _o.attempt)
        .order_by(_o.stage, _o.attempt)
    )


def _destinations(span: Span) -> sa.Select[Any]:
    size = sa.func.coalesce(sa.func.sum(_o.bytes), 0)
    return (
        sa.select(_o.destination, _o.stage, sa.func.count(), size)
        .where(span.holds(), _done, _o.destination.is_not(None))
        .group_by(_o.destination, _o.stage)
        .order_by(size.desc())
        .limit(MOST_ROWS)
    )


def _average(span: Span) -> sa.Select[Any]:
    """The seed's own: AVG(completed_time - pending_time), here of the jobs that were done."""
    took = unix_ms(pending_jobs.c.completed_time) - unix_ms(pending_jobs.c.pending_time)
    within = sa.and_(pending_jobs.c.completed_time >= span.since, pending_jobs.c.completed_time < span.until)
    return (
        sa.select(pending_jobs.c.status, sa.func.count(), sa.func.avg(took) / 1000.0)
        .where(within)
        .group_by(pending_jobs.c.status)
        .order_by(pending_jobs.c.status)
    )


def _count(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.sum(sa.case((condition, 1), else_=0))


def _measured(
    span: Span,
    what: str,
    since: sa.ColumnElement[datetime],
    until: sa.ColumnElement[datetime],
    condition: sa.ColumnElement[bool],
) -> sa.Select[Any]:
    ms = (unix_ms(until) - unix_ms(since)).label("ms")
    named = sa.literal(what, sa.String(16)).label("what")
    return sa.select(named, _o.stage, ms).where(span.holds(), condition, since.is_not(None), until.is_not(None))


def _plain(row: Sequence[Any]) -> tuple[_Value, ...]:
    """Databases give sums and averages as decimals of their own."""
    return tuple(value if isinstance(value, (str, int, float, type(None))) else _number(value) for value in row)


def _number(value: Any) -> float | int:
    return int(value) if value == int(value) else float(value)


def _shown(value: _Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, int) and value > 1 << 40 and value % HOUR_MS == 0:
        return f"{datetime.fromtimestamp(value / 1000, UTC):%Y-%m-%d %H:%M}"
    return f"{value:,}" if isinstance(value, int) else str(value)


REPORTS: dict[str, tuple[str, tuple[str, ...], Callable[[Span], sa.Select[Any]]]] = {
    "throughput": (
        "Throughput per hour (UTC)",
        ("hour", "stage", "done", "failed", "skipped", "bytes"),
        _throughput,
    ),
    "times": (
        "Waiting until the first start, and running until done, in seconds",
        ("what", "stage", "items", "average", "p50", "p95", "p99"),
        _times,
    ),
    "failures": (
        "What was not done, and where",
        ("day", "stage", "code", "egress", "account", "host", "items"),
        _failures,
    ),
    "retries": ("Ends by attempt", ("stage", "attempt", "done", "failed"), _retries),
    "destinations": ("Bytes by destination", ("destination", "stage", "files", "bytes"), _destinations),
    "jobs": ("Jobs from SQL: AVG(completed_time - pending_time)", ("status", "jobs", "average_seconds"), _average),
}
"""Reports by name: title, columns and query."""
