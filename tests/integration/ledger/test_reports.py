"""Reports say what the rows say, on every database; pictures are pictures."""

from __future__ import annotations

import json
import statistics
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.ledger.charts import draw
from include.ytdlp_ops.ledger.reporting import REPORTS, Report, Span, report
from include.ytdlp_ops.ledger.schema import outcomes, pending_jobs

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = Span(since=NOON - timedelta(hours=12), until=NOON + timedelta(hours=12))


def put(ledger: sa.Engine, **row: Any) -> None:
    given: dict[str, Any] = {
        "item_hash": "h", "queue_base": "queue2", "stage": "dl", "item_id": "i", "place": "result", "attempt": 1,
        "submitted_at": NOON, "started_at": NOON, "finished_at": NOON, **row,
    }  # fmt: skip
    with ledger.begin() as connection:
        many = connection.scalar(sa.select(sa.func.count()).select_from(outcomes))
        connection.execute(sa.insert(outcomes), {"outcome_id": str(many), **given})


def rows(ledger: sa.Engine, name: str, span: Span = DAY) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = report(ledger, name, span).as_json()["rows"]
    return found


def test_throughput_counts_each_hour(ledger: sa.Engine) -> None:
    put(ledger, bytes=5)
    put(ledger, bytes=7, finished_at=NOON + timedelta(minutes=59, seconds=59.999))
    put(ledger, place="fail", finished_at=NOON + timedelta(minutes=60))

    found = rows(ledger, "throughput")

    noon = round(NOON.timestamp() * 1000)
    assert [(row["hour"] - noon, row["done"], row["failed"], row["bytes"]) for row in found] == [
        (0, 2, 0, 12),
        (3_600_000, 0, 1, 0),
    ]


def test_times_are_those_of_the_items(ledger: sa.Engine) -> None:
    seconds = [each / 7 for each in range(1, 121)]
    for each in seconds:
        put(ledger, finished_at=NOON + timedelta(milliseconds=round(each * 1000)))

    waiting, running = sorted(rows(ledger, "times"), key=lambda row: row["what"], reverse=True)

    assert (waiting["items"], waiting["p99"]) == (120, 0)
    assert running["average"] == pytest.approx(statistics.mean(seconds), abs=0.001)
    assert [running[name] for name in ("p50", "p95", "p99")] == pytest.approx(
        [seconds[59], seconds[113], seconds[118]], abs=0.001
    )


def test_failures_are_told_by_code_egress_account_host_and_day(ledger: sa.Engine) -> None:
    for day in (0, 0, 1):
        put(ledger, place="fail", code="bot_check", egress="e", account=None, host="h",
            finished_at=NOON + timedelta(days=day))  # fmt: skip
    put(ledger)

    found = rows(ledger, "failures", Span(since=DAY.since, until=DAY.until + timedelta(days=1)))

    assert [(row["code"], row["egress"], row["account"], row["host"], row["items"]) for row in found] == [
        ("bot_check", "e", None, "h", 1),
        ("bot_check", "e", None, "h", 2),
    ]


def test_retries_tell_at_which_attempt_items_end(ledger: sa.Engine) -> None:
    put(ledger, place="fail")
    put(ledger, attempt=2)
    put(ledger, attempt=2)

    found = rows(ledger, "retries")

    assert [(row["attempt"], row["done"], row["failed"]) for row in found] == [(1, 0, 1), (2, 2, 0)]


def test_bytes_are_summed_by_destination(ledger: sa.Engine) -> None:
    put(ledger, destination="s3://b/a", bytes=1 << 40)
    put(ledger, destination="s3://b/a", bytes=1)
    put(ledger, destination="/srv", bytes=2)

    found = rows(ledger, "destinations")

    assert [(row["destination"], row["files"], row["bytes"]) for row in found] == [
        ("s3://b/a", 2, (1 << 40) + 1),
        ("/srv", 1, 2),
    ]


def test_the_seeds_own_average(ledger: sa.Engine) -> None:
    with ledger.begin() as connection:
        for seconds in (1, 2, 6.5):
            done = {"url": "x", "status": "result", "pending_time": NOON}
            connection.execute(
                sa.insert(pending_jobs), {**done, "completed_time": NOON + timedelta(seconds=seconds)}
            )

    (row,) = rows(ledger, "jobs")

    assert (row["status"], row["jobs"]) == ("result", 3)
    assert row["average_seconds"] == pytest.approx(9.5 / 3, abs=0.001)


def test_what_ended_elsewhere_or_at_another_time_is_left_out(ledger: sa.Engine) -> None:
    put(ledger, finished_at=DAY.until)
    put(ledger, queue_base="other")
    mine = Span(since=DAY.since, until=DAY.until, queue_base="queue2")

    assert rows(ledger, "throughput", mine) == []
    assert len(rows(ledger, "throughput")) == 1


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_every_report_is_a_table_json_and_a_picture_full_or_empty(ledger: sa.Engine, name: str) -> None:
    empty = report(ledger, name, DAY)
    put(ledger, destination="/srv/x", bytes=12, finished_at=NOON + timedelta(seconds=3))
    put(ledger, place="fail", code="network", attempt=3)
    with ledger.begin() as connection:
        job = {
            "url": "x",
            "status": "skipped",
            "pending_time": NOON,
            "completed_time": NOON + timedelta(seconds=1),
        }
        connection.execute(sa.insert(pending_jobs), job)

    full = report(ledger, name, DAY)

    assert empty.rows == ()
    assert full.rows
    assert len(full.as_table()) == len(full.rows) + 3
    assert json.loads(json.dumps(full.as_json()))["name"] == name
    for each in (empty, full):
        assert draw(each, "png").startswith(b"\x89PNG")
        assert b"<svg" in draw(each, "svg")


def test_an_unknown_report_and_an_unknown_kind_of_picture_are_named(ledger: sa.Engine) -> None:
    with pytest.raises(BadInput, match="report 'nonsense' is none of throughput"):
        report(ledger, "nonsense", DAY)
    with pytest.raises(BadInput, match="chart 'gif' is none of png"):
        draw(Report(name="jobs", title="", columns=(), rows=()), "gif")
