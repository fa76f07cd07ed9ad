"""Cancel: wherever the item is, and whoever is faster."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from include.ytdlp_ops.errors import CancelRequested, LeaseLost, WrongKeyType
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue, Record
from include.ytdlp_ops.queues.recovery import Swept, sweep
from tests.queueing import URL, begun, claimed, everything, failed, inbox_of, record_in, url_of, where


def assert_skipped(queue: Queue) -> None:
    record = record_in(queue, Place.SKIPPED)
    assert where(queue) == ["skipped"]
    assert (record["code"], record["outcome"], record["retryable"]) == ("cancelled", "skip", False)
    assert record["finished_at"]
    assert "state" not in record
    assert queue.client.exists(queue.keys.leases, queue.keys.due) == 0
    assert queue.counters()["skipped:cancelled"] == 1


def test_an_unknown_item_is_told_so(queue: Queue) -> None:
    assert queue.cancel(URL) is None
    assert everything(queue.client) == {}


@pytest.mark.parametrize("element", [URL, "dQw4w9WgXcQ", json.dumps({"url": f"https://youtu.be/{URL[-11:]}"})])
def test_a_waiting_item_is_skipped_however_it_was_spelled(queue: Queue, element: str) -> None:
    queue.client.rpush(queue.keys.inbox, url_of(1), "junk", element, url_of(2))

    assert queue.cancel(URL) is Place.SKIPPED

    assert inbox_of(queue) == [url_of(1), "junk", url_of(2)]
    assert_skipped(queue)


def test_every_copy_that_waits_goes(queue: Queue) -> None:
    queue.client.rpush(queue.keys.inbox, *[URL, url_of(1)] * 700)

    queue.cancel(URL)

    assert inbox_of(queue) == [url_of(1)] * 700


def test_a_claimed_item_is_skipped_before_it_begins(queue: Queue) -> None:
    record = claimed(queue)

    assert queue.cancel(URL, reason="wrong list") is Place.SKIPPED

    assert_skipped(queue)
    assert record_in(queue, Place.SKIPPED)["message"] == "cancelled: wrong list"
    with pytest.raises(LeaseLost):
        queue.begin(URL, record["token"], host="here")


def test_a_running_item_hears_of_it_at_every_heartbeat_and_still_owns_its_end(queue: Queue) -> None:
    record = begun(queue)

    assert queue.cancel(URL, reason='say "why"') is Place.PROGRESS

    for _ in range(2):
        with pytest.raises(CancelRequested, match="finish it as skipped"):
            queue.heartbeat(record, {"downloaded_bytes": 1})
    assert record_in(queue, Place.PROGRESS)["cancel_requested"] == 'say "why"'
    queue.finish(record, Place.SKIPPED, {"code": "cancelled", "outcome": "skip", "retryable": False})
    assert_skipped(queue)


def test_a_running_item_that_is_handed_back_is_skipped_instead(queue: Queue) -> None:
    record = begun(queue)
    queue.cancel(URL)

    assert queue.release(record)

    assert_skipped(queue)


def test_a_running_item_that_stalls_is_skipped_instead(queue: Queue) -> None:
    begun(queue)
    queue.cancel(URL)
    queue.client.zadd(queue.keys.leases, {URL: 1})

    assert sweep(queue) == Swept(cancelled=1)

    assert_skipped(queue)


@pytest.mark.parametrize("place", [Place.RESULT, Place.SKIPPED, Place.FAIL])
def test_a_new_request_for_what_has_ended_is_withdrawn_and_the_old_end_stays(queue: Queue, place: Place) -> None:
    queue.finish(begun(queue), place, {"code": "x"})
    queue.client.rpush(queue.keys.inbox, json.dumps({"url": URL, "force": True}))

    assert queue.cancel(URL) is Place.SKIPPED

    assert where(queue) == [place]
    assert record_in(queue, place)["code"] == "x"


@pytest.mark.parametrize("start", [claimed, begun])
def test_what_waits_behind_a_running_item_is_withdrawn_too(queue: Queue, start: Callable[[Queue], Record]) -> None:
    start(queue)
    queue.client.rpush(queue.keys.inbox, json.dumps({"url": URL, "formats": "ba"}))

    queue.cancel(URL)

    assert "inbox" not in where(queue)


def test_a_running_item_that_is_done_first_is_done(queue: Queue) -> None:
    record = begun(queue)
    queue.cancel(URL)

    queue.finish(record, Place.RESULT, {"path": "/x"})

    assert where(queue) == ["result"]


def test_what_would_be_tried_again_is_not(queue: Queue) -> None:
    failed(queue, due_in_ms=60_000)

    assert queue.cancel(URL) is Place.SKIPPED
    assert_skipped(queue)


def test_what_was_deferred_is_skipped(queue: Queue) -> None:
    queue.finish(begun(queue), Place.DEFERRED, {"code": "upcoming"}, due_in_ms=60_000)

    assert queue.cancel(URL) is Place.SKIPPED
    assert_skipped(queue)


def test_what_is_done_stays_done(queue: Queue) -> None:
    queue.finish(begun(queue), Place.RESULT, {})

    assert queue.cancel(URL) is None
    assert where(queue) == ["result"]


def test_a_new_request_after_a_cancel_runs(queue: Queue) -> None:
    queue.submit([URL])
    queue.cancel(URL)

    queue.submit([URL])

    assert len(queue.claim(1).records) == 1
    assert where(queue) == ["progress"]


def test_a_key_of_the_wrong_type_is_named_and_nothing_is_written(queue: Queue) -> None:
    queue.submit([URL])
    queue.client.delete(queue.keys.counters)
    queue.client.set(queue.keys.counters, "wrong")
    before = everything(queue.client)

    with pytest.raises(WrongKeyType, match=queue.keys.counters):
        queue.cancel(URL)

    assert everything(queue.client) == before
