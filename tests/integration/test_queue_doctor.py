"""The doctor: names what breaks a promise, mends it, loses nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from include.ytdlp_ops.queues.doctor import examine
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue
from tests.queueing import URL, begun, claimed, everything, failed, record_in, url_of, where


def findings(queue: Queue, **options: Any) -> list[tuple[str, str, bool]]:
    return [(finding.promise, finding.item_id, finding.mended) for finding in examine(queue, **options)]


def put(queue: Queue, place: Place, record: Any, item_id: str = URL) -> None:
    queue.client.hset(
        queue.keys.hash_of(place), item_id, record if isinstance(record, str) else json.dumps(record)
    )


def test_an_empty_queue_is_well(queue: Queue) -> None:
    assert findings(queue, mend=True) == []
    assert everything(queue.client) == {}


def test_a_queue_at_work_is_well_and_left_alone(queue: Queue) -> None:
    for number, place in enumerate((Place.RESULT, Place.SKIPPED, Place.DEFERRED)):
        queue.finish(begun(queue, url_of(number)), place, {}, due_in_ms=1000 if place is Place.DEFERRED else None)
    failed(queue, url_of(3), due_in_ms=1000)
    failed(queue, url_of(4), retryable=False)
    begun(queue, url_of(5))
    claimed(queue, url_of(6))
    queue.submit([url_of(7)])
    queue.client.rpush(queue.keys.inbox, "junk")
    before = everything(queue.client)

    assert findings(queue, mend=True, expected=[url_of(number) for number in range(8)]) == []
    assert everything(queue.client) == before


def test_i1_a_submitted_item_that_is_nowhere_is_named(queue: Queue) -> None:
    queue.submit([url_of(1)])

    assert findings(queue, expected=[url_of(1), URL]) == [("I1", URL, False)]


@pytest.mark.parametrize(
    ("better", "worse"),
    [(Place.RESULT, Place.FAIL), (Place.SKIPPED, Place.DEFERRED), (Place.RESULT, Place.SKIPPED)],
)
def test_i2_of_two_ends_the_better_stays_and_keeps_the_other(queue: Queue, better: Place, worse: Place) -> None:
    put(queue, better, {"url": URL, "path": "/x", "previous": {"old": 1}})
    put(queue, worse, {"url": URL, "code": "network", "previous": {"older": 2}})
    queue.client.zadd(queue.keys.due, {URL: 1})
    assert ("I2", URL, False) in findings(queue)

    assert ("I2", URL, True) in findings(queue, mend=True)

    assert findings(queue) == []
    assert where(queue) == [better]
    record = record_in(queue, better)
    assert (record["path"], record["previous"]["code"]) == ("/x", "network")
    assert record["previous"]["previous"] == [{"older": 2}, {"old": 1}]


def test_i2_what_runs_and_has_ended_is_named_and_left_to_its_worker(queue: Queue) -> None:
    begun(queue)
    put(queue, Place.FAIL, {"url": URL})

    assert findings(queue, mend=True) == [("I2", URL, False)]
    assert where(queue) == ["progress", "fail"]


@pytest.mark.parametrize("record", ["damage", {"url": URL}, {"url": URL, "token": 5}])
def test_i3_what_runs_without_a_token_is_named(queue: Queue, record: Any) -> None:
    put(queue, Place.PROGRESS, record)

    assert findings(queue, mend=True) == [("I3", URL, False)]


def test_i4_what_runs_without_a_lease_gets_one(queue: Queue) -> None:
    record = begun(queue)
    queue.client.delete(queue.keys.leases)

    assert findings(queue) == [("I4", URL, False)]
    assert findings(queue, mend=True) == [("I4", URL, True)]

    assert findings(queue) == []
    queue.finish(record, Place.RESULT, {})
    assert where(queue) == ["result"]


@pytest.mark.parametrize("times", ["leases", "due"])
def test_i4_a_time_of_nothing_is_dropped(queue: Queue, times: str) -> None:
    queue.client.zadd(getattr(queue.keys, times), {URL: 1e15})

    assert findings(queue, mend=True) == [("I4", URL, True)]
    assert everything(queue.client).keys() == {queue.keys.counters.encode()}


@pytest.mark.parametrize("place", [Place.FAIL, Place.DEFERRED])
def test_i4_what_waits_for_no_time_gets_one(queue: Queue, place: Place) -> None:
    put(queue, place, {"url": URL, "retryable": True})

    assert findings(queue, mend=True) == [("I4", URL, True)]
    assert queue.client.zcard(queue.keys.due) == 1
    assert findings(queue) == []


def test_i5_what_would_be_tried_too_often_is_not(queue: Queue) -> None:
    failed(queue, json.dumps({"url": URL, "attempt": 5}), due_in_ms=1000, retryable=False)

    assert findings(queue, mend=True) == [("I5", URL, True)]
    assert findings(queue) == []
    assert where(queue) == ["fail"]


def test_i5_what_runs_too_often_is_named(queue: Queue) -> None:
    begun(queue, json.dumps({"url": URL, "attempt": 6}))

    assert findings(queue, mend=True) == [("I5", URL, False)]


def test_a_key_of_the_wrong_type_is_named_and_nothing_else_touched(queue: Queue) -> None:
    queue.client.set(queue.keys.fail, "x")
    queue.client.zadd(queue.keys.due, {URL: 1})
    before = everything(queue.client)

    assert findings(queue, mend=True) == [("key", queue.keys.fail, False)]
    assert everything(queue.client) == before


def test_a_finding_reads_as_a_sentence(queue: Queue) -> None:
    queue.client.zadd(queue.keys.leases, {"x": 1})

    (finding,) = examine(queue, mend=True)

    assert str(finding) == "I4 'x': queue2_auth_leases names what is not there (mended)"
