"""Requeueing by hand, and forgetting old records."""

from __future__ import annotations

import json

import pytest

from include.ytdlp_ops.errors import BadInput, WrongKeyType
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.recovery import requeue, trim
from tests.queueing import (
    URL,
    begun,
    everything,
    failed,
    inbox_of,
    seen,
    url_of,
    where,
)

HOUR_MS = 3_600_000


# -- by hand -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [Place.FAIL, Place.SKIPPED, Place.RESULT, Place.DEFERRED])
def test_an_ended_item_requeued_by_hand_begins_anew(queue: Queue, place: Place) -> None:
    queue.finish(begun(queue, json.dumps({"url": URL, "attempt": 5})), place, {"code": "x"}, due_in_ms=60_000)

    assert requeue(queue, place, seen(queue, place)) == 1

    assert (where(queue), inbox_of(queue)[0]["attempt"]) == (["inbox"], 1)
    assert queue.client.zcard(queue.keys.due) == 0


def test_a_dry_run_tells_and_moves_nothing(queue: Queue) -> None:
    failed(queue)
    before = everything(queue.client)

    assert requeue(queue, Place.FAIL, seen(queue, Place.FAIL), dry_run=True) == 1
    assert everything(queue.client) == before


def test_what_changed_since_it_was_seen_stays(queue: Queue) -> None:
    failed(queue)
    pairs = seen(queue, Place.FAIL)
    failed(queue, code="other")
    before = everything(queue.client)

    assert requeue(queue, Place.FAIL, pairs) == 0
    assert everything(queue.client) == before


def test_a_requeue_repeated_after_a_lost_reply_pushes_once(queue: Queue) -> None:
    failed(queue)
    pairs = seen(queue, Place.FAIL)

    assert [requeue(queue, Place.FAIL, pairs), requeue(queue, Place.FAIL, pairs)] == [1, 0]
    assert where(queue) == ["inbox"]


@pytest.mark.parametrize("element", [b"bad \xff", b"x" * 70_000])
def test_a_bad_element_requeued_by_hand_comes_back_byte_by_byte(queue: Queue, element: bytes) -> None:
    queue.client.rpush(queue.keys.inbox, element)
    queue.claim(1)

    assert requeue(queue, Place.FAIL, seen(queue, Place.FAIL)) == 1

    assert queue.client.lrange(queue.keys.inbox, 0, -1) == [element]
    assert queue.depths()["fail"] == 0


def test_running_items_are_not_requeued_by_hand(queue: Queue) -> None:
    with pytest.raises(BadInput, match="in progress"):
        requeue(queue, Place.PROGRESS, [(URL, b"{}")])


@pytest.mark.parametrize("key", ["progress", "leases", "inbox", "counters"])
def test_a_key_of_the_wrong_type_is_named_and_nothing_is_written(queue: Queue, key: str) -> None:
    name = getattr(queue.keys, key)
    queue.client.hset(queue.keys.progress, URL, "damage")
    queue.client.delete(name)
    queue.client.set(name, "wrong")
    before = everything(queue.client)

    with pytest.raises(WrongKeyType, match=name):
        queue.move(
            Place.PROGRESS, [(URL, b"damage")], counter="x", inbox=queue.keys.inbox, element="y", only_past=False
        )

    assert everything(queue.client) == before


# -- trimming ------------------------------------------------------------------------------------------------


def test_old_results_are_forgotten_and_young_ones_kept(queue: Queue) -> None:
    queue.finish(begun(queue, url_of(1)), Place.RESULT, {})
    queue.client.hset(
        queue.keys.result,
        mapping={
            "old": json.dumps({"id": "old", "finished_at": "2020-01-01T00:00:00.000Z"}),
            "timeless": json.dumps({"id": "timeless"}),
            "damaged": "damage",
        },
    )

    assert trim(queue, Place.RESULT, older_than_ms=HOUR_MS) == 1

    assert sorted(item_id for item_id, _ in seen(queue, Place.RESULT)) == sorted(
        ["timeless", "damaged", url_of(1)]
    )


def test_a_trim_forgets_no_more_than_it_may(queue: Queue) -> None:
    old = json.dumps({"finished_at": "2020-01-01T00:00:00Z"})
    queue.client.hset(queue.keys.skipped, mapping={str(number): old for number in range(1200)})

    assert trim(queue, Place.SKIPPED, older_than_ms=HOUR_MS, most=700) == 700
    assert queue.depths()["skipped"] == 500


@pytest.mark.parametrize("place", [Place.PROGRESS, Place.FAIL, Place.DEFERRED])
def test_what_is_not_at_its_end_is_not_trimmed(queue: Queue, place: Place) -> None:
    with pytest.raises(BadInput, match="not trimmed"):
        trim(queue, place, older_than_ms=0)
