"""Reports for people: chosen, and written as JSON and pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from include.ytdlp_ops.ledger.charts import draw
from include.ytdlp_ops.ledger.reporting import REPORTS, Report, Span, report
from include.ytdlp_ops.queues.asking import Files

ALL = "all"


def reports_of(engine: sa.Engine, name: str, *, since_hours: float, queue_base: str | None = None) -> list[Report]:
    """
    One report or all of them, of the last hours.

    :raises BadInput: for a name that is none.
    """
    now = datetime.now(UTC)
    span = Span(since=now - timedelta(hours=since_hours), until=now + timedelta(minutes=1), queue_base=queue_base)
    return [report(engine, each, span) for each in (REPORTS if name == ALL else [name])]


def written(reports: Sequence[Report], files: Files, *, chart: str | None = None) -> list[str]:
    """
    Write each report as JSON, and as a picture if a kind is given.

    :returns: where the files are.
    """
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    addresses = []
    for each in reports:
        contents = {"json": json.dumps(each.as_json(), ensure_ascii=False, indent=1).encode()}
        if chart:
            contents[chart] = draw(each, chart)
        for kind, content in contents.items():
            name = f"report-{each.name}-{stamp}.{kind}"
            with files.create(name) as stream:
                stream.write(content)
            addresses.append(files.address(name))
    return addresses
