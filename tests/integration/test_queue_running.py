"""Begin, heartbeat, finish and release: only the owner of the token changes anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from include.ytdlp_ops.errors import BadInput, LeaseLost, WrongKeyType
from include.ytdlp_ops.models import UrlItem
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.queue import Queue, Record
from tests.queueing import URL, begun, claimed, everything, format_job, inbox_of, record_in, where

Step = Callable[[Queue, Record], Any]


def begin(queue: Queue, record: Record) -> Record:
    return queue.begin(record["id"], record["token"], host="there")


def finish_result(queue: Queue, record: Record) -> None:
    queue.finish(record, Place.RESULT, {"path": "/x"}, push=[(Stage.DL, format_job())])


def finish_fail(queue: Queue, record: Record) -> None:
    queue.finish(record, Place.FAIL, {"code": "network"}, due_in_ms=1000)


STEPS: list[Step] = [begin, Queue.heartbeat, finish_result, finish_fail]


def test_begin_gives_the_run_a_token_of_its_own(queue: Queue) -> None:
    claim = claimed(queue)

    record = queue.begin(URL, claim["token"], host="here", dag_id="d", run_id="r")

    assert record["token"] != claim["token"]
    assert (record["state"], record["host"], record["dag_id"], record["run_id"]) == ("running", "here", "d", "r")
    assert record == record_in(queue, Place.PROGRESS)
    assert record["started_at"] == record["heartbeat_at"]


def test_the_running_lease_takes_the_place_of_the_claim_lease(queue: Queue) -> None:
    begun(queue)

    deadline = queue.steps.command("zscore", queue.keys.leases, URL)

    assert 0 < deadline - queue.now_ms() <= 120_000


def test_a_second_delivery_of_the_same_run_is_not_the_owner(queue: Queue) -> None:
    claim = claimed(queue)
    begin(queue, claim)
    before = everything(queue.client)

    with pytest.raises(LeaseLost):
        begin(queue, claim)

    assert everything(queue.client) == before


def test_begin_repeated_after_a_lost_reply_gives_the_same_record(queue: Queue) -> None:
    claim = claimed(queue)
    keys = [queue.keys.progress, queue.keys.leases]
    args = [URL, claim["token"], "run-token", 1000, '"host":"x"']

    first = queue.steps.run("begin", keys, args)
    again = queue.steps.run("begin", keys, args)

    assert again == first


@pytest.mark.parametrize("step", STEPS)
def test_a_stale_token_changes_nothing(queue: Queue, step: Step) -> None:
    record = begun(queue)
    before = everything(queue.client)

    with pytest.raises(LeaseLost):
        step(queue, {**record, "token": "stale"})

    assert everything(queue.client) == before


@pytest.mark.parametrize("step", STEPS)
def test_an_item_that_is_gone_stays_gone(queue: Queue, step: Step) -> None:
    record = begun(queue)
    queue.client.flushall()

    with pytest.raises(LeaseLost):
        step(queue, record)

    assert everything(queue.client) == {}


def test_a_release_with_a_stale_token_changes_nothing(queue: Queue) -> None:
    record = begun(queue)
    before = everything(queue.client)

    assert not queue.release({**record, "token": "stale"})
    assert everything(queue.client) == before


@pytest.mark.parametrize("junk", ["", "null", "7", "[]", "{}", '{"token":null}', '{"token":7}', "\x00", '{"id":'])
def test_a_damaged_progress_record_belongs_to_nobody(queue: Queue, junk: str) -> None:
    record = begun(queue)
    queue.client.hset(queue.keys.progress, URL, junk)
    before = everything(queue.client)

    for step in STEPS:
        with pytest.raises(LeaseLost):
            step(queue, record)

    assert not queue.release(record)
    assert everything(queue.client) == before


def test_a_heartbeat_extends_the_lease_and_shows_the_progress(queue: Queue) -> None:
    record = begun(queue)
    queue.client.zadd(queue.keys.leases, {URL: 1})

    queue.heartbeat(record, {"downloaded_bytes": 5, "speed": float("nan"), "note": "\udcff"})

    seen = record_in(queue, Place.PROGRESS)
    assert seen["progress"] == {"downloaded_bytes": 5, "speed": None, "note": "?"}
    assert (seen["token"], seen["state"]) == (record["token"], "running")
    deadline = queue.steps.command("zscore", queue.keys.leases, URL)
    assert deadline > queue.now_ms()


def test_a_result_is_the_items_one_place(queue: Queue) -> None:
    record = begun(queue)

    finish_result(queue, record)

    assert where(queue) == ["result"]
    assert queue.client.zcard(queue.keys.leases) == 0
    done = record_in(queue, Place.RESULT)
    assert done["path"] == "/x"
    assert done["finished_at"] >= done["claimed_at"]
    assert done.keys() & {"state", "progress", "heartbeat_at"} == set()


def test_what_comes_next_is_pushed_with_the_result(queue: Queue) -> None:
    dl = Queue(queue.client, "dl")
    jobs = [(Stage.DL, format_job("299")), (Stage.PUBLISH, UrlItem(url=URL)), (Stage.DL, format_job("140"))]

    queue.finish(begun(queue), Place.RESULT, {}, push=jobs)

    assert [job["format_id"] for job in inbox_of(dl)] == ["299", "140"]
    assert [item["url"] for item in inbox_of(Queue(queue.client, "publish"))] == [URL]


def test_a_finish_repeated_after_a_lost_reply_is_done_once(queue: Queue) -> None:
    record = begun(queue)
    finish_result(queue, record)
    before = everything(queue.client)

    finish_result(queue, record)

    assert everything(queue.client) == before


@pytest.mark.parametrize(("first", "second"), [(finish_result, finish_fail), (finish_fail, finish_result)])
def test_of_two_ends_the_first_wins(queue: Queue, first: Step, second: Step) -> None:
    record = begun(queue)
    first(queue, record)
    before = everything(queue.client)

    with pytest.raises(LeaseLost):
        second(queue, record)

    assert everything(queue.client) == before


def test_a_retryable_failure_has_a_due_time(queue: Queue) -> None:
    finish_fail(queue, begun(queue))

    due = queue.steps.command("zscore", queue.keys.due, URL)

    assert 0 < due - queue.now_ms() <= 1000
    assert record_in(queue, Place.FAIL)["retry_at"] > record_in(queue, Place.FAIL)["finished_at"]


@pytest.mark.parametrize("place", [Place.PROGRESS, Place.DEFERRED])
def test_what_is_no_end_is_refused(queue: Queue, place: Place) -> None:
    record = begun(queue)

    with pytest.raises(BadInput, match="due_in_ms"):
        queue.finish(record, place, {})

    assert where(queue) == ["progress"]


def test_ends_are_counted_by_code(queue: Queue) -> None:
    finish_fail(queue, begun(queue))

    assert queue.counters() == {"claimed": 1, "fail": 1, "fail:network": 1}


def test_a_counter_that_is_no_number_stops_nothing(queue: Queue) -> None:
    queue.client.hset(queue.keys.counters, mapping={"claimed": "x", "result": "y"})

    finish_result(queue, begun(queue))

    assert where(queue) == ["result"]


def test_a_released_item_is_at_the_head_unchanged(queue: Queue) -> None:
    record = begun(queue, json.dumps({"url": URL, "tags": ["a"], "ticket": 7, "attempt": 3}))
    queue.submit(["https://example.org/other"])

    assert queue.release(record)

    head = inbox_of(queue)[0]
    assert {name: head[name] for name in ("url", "tags", "ticket", "attempt")} == {
        "url": URL, "tags": ["a"], "ticket": 7, "attempt": 3,
    }  # fmt: skip
    assert head.keys() & {"token", "state", "claimed_at", "host"} == set()
    assert queue.client.zcard(queue.keys.leases) == 0


def test_a_release_repeated_after_a_lost_reply_pushes_once(queue: Queue) -> None:
    record = begun(queue)

    assert [queue.release(record), queue.release(record)] == [True, False]
    assert where(queue) == ["inbox"]


def test_what_an_item_did_before_survives_a_release(queue: Queue) -> None:
    queue.finish(begun(queue), Place.RESULT, {"path": "/first"})

    queue.release(begun(queue, json.dumps({"url": URL, "force": True})))
    queue.finish(begin(queue, queue.claim(1).records[0]), Place.RESULT, {})

    assert record_in(queue, Place.RESULT)["previous"]["path"] == "/first"


@pytest.mark.parametrize("key", ["progress", "leases"])
@pytest.mark.parametrize("step", [*STEPS, Queue.release])
def test_a_key_of_the_wrong_type_is_named_and_nothing_is_written(queue: Queue, key: str, step: Step) -> None:
    record = begun(queue)
    queue.client.delete(getattr(queue.keys, key))
    queue.client.rpush(getattr(queue.keys, key), "wrong")
    before = everything(queue.client)

    with pytest.raises(WrongKeyType, match=getattr(queue.keys, key)):
        step(queue, record)

    assert everything(queue.client) == before


@pytest.mark.parametrize("key", ["result", "due", "counters", "circuit", "dl inbox"])
def test_a_finish_that_can_not_write_everything_writes_nothing(queue: Queue, key: str) -> None:
    record = begun(queue)
    name = "queue_dl_format_tasks" if key == "dl inbox" else getattr(queue.keys, key)
    queue.client.delete(name)
    queue.client.set(name, "wrong")
    before = everything(queue.client)

    with pytest.raises(WrongKeyType, match=name):
        (finish_fail if key == "due" else finish_result)(queue, record)

    assert everything(queue.client) == before


def test_depths_and_places_are_told(queue: Queue) -> None:
    finish_result(queue, begun(queue))
    queue.submit(["https://example.org/other"])

    assert queue.depths() == {
        "inbox": 1, "progress": 0, "result": 1, "fail": 0, "skipped": 0, "deferred": 0,
    }  # fmt: skip
    found = queue.find(URL)
    assert found is not None
    assert (found[0], found[1]["path"]) == (Place.RESULT, "/x")
    assert queue.find("https://example.org/other") is None
