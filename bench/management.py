"""What operators wait for: requeueing many, looking at a million, archiving into SQL, taking jobs in from it."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from bench.figures import Figure, gives
from include.ytdlp_ops.ledger.archiving import archive
from include.ytdlp_ops.ledger.connecting import migrate, open_engine
from include.ytdlp_ops.ledger.intake import take_in
from include.ytdlp_ops.ledger.schema import pending_jobs
from include.ytdlp_ops.queues.connecting import address_of, connect
from include.ytdlp_ops.queues.filtering import Filter
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.listing import first_page
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.requeueing import take_back
from include.ytdlp_ops.queues.surveying import survey
from tests.databases import postgres
from tests.servers import Valkey

REQUEUED = 100_000
ARCHIVED = 20_000
JOBS = 20_000
INTAKES = 4
MILLION = 1_000_000
THOUSAND = 1000


@contextmanager
def _queue() -> Iterator[tuple[Queue, str]]:
    with tempfile.TemporaryDirectory() as folder, Valkey(Path(folder) / "redis") as server:
        client = connect(address_of(server.url))
        yield Queue(client, "auth", patience_seconds=60), server.url
        client.close()


@contextmanager
def _ledger() -> Iterator[str]:
    with postgres() as url:
        engine = open_engine(url)
        migrate(engine)
        engine.dispose()
        yield url


def _fill(queue: Queue, place: Place, many: int) -> None:
    """Records like those that a worker leaves; one in ten thousand met a bot check."""
    for start in range(0, many, 5000):
        records = {}
        for number in range(start, min(start + 5000, many)):
            url = f"https://www.youtube.com/watch?v={number:011d}"
            records[url] = json.dumps(
                {
                    "url": url, "id": url, "token": f"{number:032d}", "attempt": 1, "host": "h1", "egress": "e1",
                    "code": "bot_check" if number % 10_000 == 0 else "network", "tags": ["bench"],
                    "submitted_at": "2026-01-01T00:00:00.000Z", "finished_at": "2026-01-01T00:10:00.000Z",
                    "path": f"/srv/out/{number}.mp4", "bytes": 1000 + number, "title": "x" * 60,
                },
                separators=(",", ":"),
            )  # fmt: skip
        queue.client.hset(queue.keys.hash_of(place), mapping=records)


def _seconds(action: Callable[[], object]) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


@gives("requeue_100k_s")
def requeue() -> dict[str, Figure]:
    """A hundred thousand failures back into their inbox; goal under a minute."""
    with _queue() as (queue, _):
        _fill(queue, Place.FAIL, REQUEUED)
        seconds = _seconds(lambda: take_back(queue, Place.FAIL, limit=REQUEUED, dry_run=False))
        assert queue.depths()["inbox"] == REQUEUED
    return {"requeue_100k_s": Figure(value=seconds, unit="s", against="goal 60")}


@gives("inspect_1k_s", "inspect_1m_s", "list_1m_s", "list_whole_1m_s", "management_longest_call_ms")
def look() -> dict[str, Figure]:
    """Inspect, and list by a rare code, at a million records (goal 2 s); the longest call (goal 50 ms)."""
    with _queue() as (queue, _):
        _fill(queue, Place.FAIL, THOUSAND)
        few = min(_seconds(lambda: survey(queue)) for _ in range(5))
        _fill(queue, Place.FAIL, MILLION)
        queue.client.config_set("slowlog-log-slower-than", 1000)
        queue.client.slowlog_reset()
        many = min(_seconds(lambda: survey(queue)) for _ in range(3))
        rare = Filter(code="bot_check")
        page = min(_seconds(lambda: first_page(queue, Place.FAIL, rare, limit=1000)) for _ in range(3))
        whole = _seconds(lambda: first_page(queue, Place.FAIL, rare, limit=1000, longest_seconds=600))
        entries = queue.client.slowlog_get(1000)
    longest = max((entry["duration"] for entry in entries), default=0) / 1000  # type: ignore[union-attr]  # typed as awaitable too
    return {
        "inspect_1k_s": Figure(value=few, unit="s"),
        "inspect_1m_s": Figure(value=many, unit="s", against="goal 2"),
        "list_1m_s": Figure(value=page, unit="s", against="one answer, with the cursor to go on; goal 2"),
        "list_whole_1m_s": Figure(value=whole, unit="s", against="all 100 of 1,000,000 by code"),
        "management_longest_call_ms": Figure(value=longest, unit="ms", against="goal 50"),
    }


@gives("archive_rows_per_s")
def archiving() -> dict[str, Figure]:
    """Results a second into PostgreSQL and, shortened, back into Redis; larger is better."""
    with _queue() as (queue, _), _ledger() as url:
        _fill(queue, Place.RESULT, ARCHIVED)
        engine = open_engine(url)
        seconds = _seconds(lambda: archive(queue, engine))
        engine.dispose()
    return {"archive_rows_per_s": Figure(value=ARCHIVED / seconds, unit="/s", against=f"{ARCHIVED:,} results")}


@gives("intake_rows_per_s")
def intake() -> dict[str, Figure]:
    """Rows a second from PostgreSQL into the inbox, by four intakes at once; larger is better."""
    with _queue() as (queue, redis_url), _ledger() as url:
        engine = open_engine(url)
        urls = [{"url": f"https://www.youtube.com/watch?v={number:011d}"} for number in range(JOBS)]
        with engine.begin() as connection:
            connection.execute(sa.insert(pending_jobs), urls)
        engine.dispose()
        seconds = _seconds(lambda: _take_in_at_once(redis_url, url))
        assert queue.depths()["inbox"] == JOBS
    return {
        "intake_rows_per_s": Figure(value=JOBS / seconds, unit="/s", against=f"{JOBS:,} rows, {INTAKES} intakes")
    }


def _take_in_at_once(redis_url: str, ledger_url: str) -> None:
    children = []
    for _ in range(INTAKES):
        if not (child := os.fork()):
            status = 1
            try:
                take_in(Queue(connect(address_of(redis_url)), "auth"), open_engine(ledger_url), most=JOBS)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    if any(statuses):
        raise RuntimeError("an intake failed")
