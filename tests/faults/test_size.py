"""A million records: no call may stall the others."""

from __future__ import annotations

import json

import pytest

from include.ytdlp_ops.queues.doctor import examine
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.reading import pages, waiting
from include.ytdlp_ops.queues.recovery import requeue, sweep, trim
from tests.queueing import URL, begun, url_of
from tests.servers import Valkey

MILLION = 1_000_000


def fill(queue: Queue, count: int) -> None:
    """Records, leases, due times and waiting elements, as many of each."""
    for start in range(0, count, 5000):
        urls = [url_of(number) for number in range(start, min(start + 5000, count))]
        records = {url: json.dumps({"url": url, "id": url, "token": "t", "title": "x" * 100}) for url in urls}
        pipeline = queue.client.pipeline(transaction=False)
        pipeline.hset(queue.keys.result, mapping=records)
        pipeline.hset(queue.keys.fail, mapping={f"{url}&f": record for url, record in records.items()})
        pipeline.zadd(queue.keys.due, {f"{url}&f": 1 << 50 for url in urls})
        pipeline.rpush(queue.keys.inbox, *(f"{url}w"[:60] for url in urls))
        pipeline.execute()


@pytest.mark.slow
def test_48_a_million_records_and_no_call_longer_than_100_ms(server: Valkey, patient: Queue) -> None:
    fill(patient, MILLION)
    patient.client.config_set("slowlog-log-slower-than", 100_000)
    patient.client.slowlog_reset()

    patient.depths()
    patient.counters()
    sweep(patient)
    for record in patient.claim(100).records:
        patient.release(record)
    patient.finish(begun(patient), Place.RESULT, {})
    patient.cancel(URL)
    patient.submit([url_of(number) for number in range(500)])
    assert trim(patient, Place.RESULT, older_than_ms=3_600_000, most=100) == 0
    page = next(pages(patient, Place.FAIL))
    assert requeue(patient, Place.FAIL, page) == len(page)
    assert sum(len(page) for page in waiting(patient)) > MILLION - 200
    list(examine(patient))

    slow = [entry for entry in patient.client.slowlog_get(10) if b"SLOWLOG" not in entry["command"]]  # type: ignore[union-attr]  # typed as awaitable too
    assert slow == []
