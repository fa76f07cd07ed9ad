"""The queue: what its safety costs beside bare commands, and what stays quick at a million records."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.figures import Figure, gives
from include.ytdlp_ops.queues.connecting import address_of, connect
from include.ytdlp_ops.queues.doctor import examine
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.reading import pages
from include.ytdlp_ops.queues.recovery import requeue, sweep, trim
from tests.servers import Valkey

ITEMS = 4000
ROUNDS = 5
BATCH = 50
SUBMITTED = 100_000
MILLION = 1_000_000


@contextmanager
def _queue() -> Iterator[Queue]:
    with tempfile.TemporaryDirectory() as folder, Valkey(Path(folder) / "redis") as server:
        client = connect(address_of(server.url))
        yield Queue(client, "auth", patience_seconds=60)
        client.close()


def _url(number: int) -> str:
    return f"https://www.youtube.com/watch?v={number:011d}"


def _elements(start: int, count: int) -> list[str]:
    return [
        json.dumps({"url": _url(number), "tags": ["bench", "queue"], "submitted_by": "bench", "priority": 3})
        for number in range(start, start + count)
    ]


def _seconds(action: Callable[[], object]) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def _claim_and_finish(queue: Queue) -> None:
    while records := queue.claim(BATCH).records:
        for record in records:
            queue.finish(record, Place.RESULT, {"path": "/srv/x"})


def _bare(queue: Queue) -> None:
    """What loses items: pop, then record, command by command."""
    number = 0
    while element := queue.client.lmove("bare", "taken", "LEFT", "RIGHT"):
        queue.client.hset("records", str(number), element)  # type: ignore[arg-type]  # typed as awaitable too
        number += 1


@gives("claim_finish_over_lmove_hset")
def claim_and_finish() -> dict[str, Figure]:
    """Claim and finish, item for item, beside a bare LMOVE and HSET of the same payload; goal at most 2."""
    ratios, bare = [], 0.0
    with _queue() as queue:
        for _ in range(ROUNDS):
            queue.client.flushdb()
            queue.client.rpush(queue.keys.inbox, *_elements(0, ITEMS))
            queue.client.rpush("bare", *_elements(0, ITEMS))
            bare = _seconds(lambda: _bare(queue))
            ratios.append(_seconds(lambda: _claim_and_finish(queue)) / bare)
    against = f"LMOVE + HSET, {bare / ITEMS * 1e6:.0f} us an item"
    return {"claim_finish_over_lmove_hset": Figure(value=statistics.median(ratios), unit="x", against=against)}


@gives("submit_per_s")
def submit() -> dict[str, Figure]:
    """Elements a second through `submit`, read and checked; larger is better."""
    elements = _elements(0, SUBMITTED)
    with _queue() as queue:
        seconds = _seconds(lambda: queue.submit(elements, request_id="bench"))
    return {"submit_per_s": Figure(value=SUBMITTED / seconds, unit="/s", against=f"{SUBMITTED} elements")}


@gives("sweep_10_of_100k_s")
def sweep_few() -> dict[str, Figure]:
    """One sweep that finds ten stalled items among a hundred thousand healthy ones."""
    with _queue() as queue:
        for start in range(0, 100_000, 5000):
            urls = [_url(number) for number in range(start, start + 5000)]
            queue.client.hset(queue.keys.progress, mapping={url: _record(url) for url in urls})
            queue.client.zadd(queue.keys.leases, dict.fromkeys(urls, 1 << 50))
        queue.client.zadd(queue.keys.leases, {_url(number): 1 for number in range(0, 100_000, 10_000)})
        seconds = _seconds(lambda: sweep(queue))
        assert queue.depths()["inbox"] == 10
    return {"sweep_10_of_100k_s": Figure(value=seconds, unit="s")}


@gives("claim_1m_over_1k", "longest_call_1m_ms")
def a_million() -> dict[str, Figure]:
    """Cost per claim with a million waiting beside a thousand (goal 1.1); the longest single call (goal 50 ms)."""
    with _queue() as queue:
        few, many = [], []
        _fill_inbox(queue, 1000)
        few += [_claim_cost(queue) for _ in range(10)]
        _fill_inbox(queue, MILLION)
        many += [_claim_cost(queue) for _ in range(10)]
        longest = _longest_call(queue)
    return {
        "claim_1m_over_1k": Figure(
            value=min(many) / min(few), unit="x", against=f"{min(few) * 1e6:.0f} us a claimed item at 1,000"
        ),
        "longest_call_1m_ms": Figure(
            value=longest, unit="ms", against="1,000,000 results, failures and due times"
        ),
    }


def _claim_cost(queue: Queue) -> float:
    records = queue.claim(BATCH).records  # warm, and out of the way
    begun = time.perf_counter()
    records += queue.claim(BATCH).records
    seconds = time.perf_counter() - begun
    for record in reversed(records):
        queue.release(record)
    return seconds / BATCH


def _fill_inbox(queue: Queue, count: int) -> None:
    queue.client.delete(queue.keys.inbox)
    for start in range(0, count, 5000):
        queue.client.rpush(queue.keys.inbox, *_elements(start, min(5000, count - start)))


def _longest_call(queue: Queue) -> float:
    """Everything that a fleet does all day, on a million records; the longest of its calls in ms."""
    for start in range(0, MILLION, 5000):
        urls = [_url(10 * MILLION + number) for number in range(start, start + 5000)]
        records = {url: _record(url) for url in urls}
        pipeline = queue.client.pipeline(transaction=False)
        pipeline.hset(queue.keys.result, mapping=records)
        pipeline.hset(queue.keys.fail, mapping={f"{url}f": record for url, record in records.items()})
        pipeline.zadd(queue.keys.due, {f"{url}f": 1 << 50 for url in urls})
        pipeline.execute()
    queue.client.config_set("slowlog-log-slower-than", 1000)
    queue.client.config_set("slowlog-max-len", 10_000)
    queue.client.slowlog_reset()

    _a_day(queue)

    entries = queue.client.slowlog_get(10_000)
    return max((entry["duration"] for entry in entries), default=0) / 1000  # type: ignore[union-attr]  # typed as awaitable too


def _a_day(queue: Queue) -> None:
    queue.depths()
    queue.counters()
    for record in queue.claim(500).records:
        queue.finish(record, Place.RESULT, {})
    queue.submit(_elements(20 * MILLION, 500))
    sweep(queue)
    trim(queue, Place.RESULT, older_than_ms=0, most=1)
    requeue(queue, Place.FAIL, next(pages(queue, Place.FAIL)))
    queue.cancel(_url(20 * MILLION + 499))
    for _ in examine(queue):
        pass


def _record(url: str) -> str:
    return json.dumps({"url": url, "id": url, "token": "t" * 32, "attempt": 1, "title": "x" * 100})
