"""What brings items back: stalled, due, by hand; and what forgets old records."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from include.ytdlp_ops.errors import LeaseLost
from include.ytdlp_ops.queues.connecting import address_of, connect
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.reading import ids_until
from include.ytdlp_ops.queues.records import unescape
from include.ytdlp_ops.queues.recovery import Swept, sweep
from tests.queueing import (
    URL,
    begun,
    claimed,
    everything,
    failed,
    format_job,
    inbox_of,
    make_due,
    record_in,
    seen,
    stall,
    url_of,
    where,
)
from tests.servers import Valkey

HOUR_MS = 3_600_000


# -- stalled -------------------------------------------------------------------------------------------------


def test_an_empty_queue_is_swept_without_writing(queue: Queue) -> None:
    assert sweep(queue) == Swept()
    assert everything(queue.client) == {}


def test_what_holds_its_lease_stays(queue: Queue) -> None:
    begun(queue)
    before = everything(queue.client)

    assert sweep(queue) == Swept()
    assert everything(queue.client) == before


@pytest.mark.parametrize("start", [claimed, begun])
def test_a_stalled_item_waits_again_with_its_attempt_counted(queue: Queue, start: Any) -> None:
    start(queue, json.dumps({"url": URL, "ticket": 7}))
    stall(queue)

    assert sweep(queue) == Swept(returned=1)

    (element,) = inbox_of(queue)
    assert (element["url"], element["attempt"], element["ticket"]) == (URL, 2, 7)
    assert where(queue) == ["inbox"]
    assert queue.client.zcard(queue.keys.leases) == 0


def test_the_attempt_counts_on_to_the_dead_letter(queue: Queue) -> None:
    queue.submit([URL])

    for _ in range(5):
        queue.claim(1)
        stall(queue)
        sweep(queue)

    assert where(queue) == ["fail"]
    record = record_in(queue, Place.FAIL)
    assert (record["attempt"], record["code"], record["retryable"]) == (5, "stalled", False)
    assert sweep(queue) == Swept()


def test_the_owner_of_a_swept_item_is_refused(queue: Queue) -> None:
    record = begun(queue)
    stall(queue)
    sweep(queue)
    before = everything(queue.client)

    with pytest.raises(LeaseLost):
        queue.finish(record, Place.RESULT, {})

    assert everything(queue.client) == before


def test_a_heartbeat_between_look_and_sweep_wins(queue: Queue) -> None:
    record = begun(queue)
    ((item_id, raw),) = seen(queue, Place.PROGRESS)
    queue.heartbeat(record, {"downloaded_bytes": 1})

    moved = queue.move(Place.PROGRESS, [(item_id, raw)], counter="x", inbox=queue.keys.inbox, element="y")

    assert not moved
    assert where(queue) == ["progress"]


def test_a_lease_without_a_record_is_dropped(queue: Queue) -> None:
    queue.client.zadd(queue.keys.leases, {URL: 1})

    assert sweep(queue) == Swept()
    assert queue.client.zcard(queue.keys.leases) == 0


@pytest.mark.parametrize("raw", [b"", b"not json", b"[]", b"{}", b"\xff", b'{"tags":5}', b'{"url":"\\ud800"}'])
def test_a_stalled_entry_that_can_not_be_read_is_in_fail_whole(queue: Queue, raw: bytes) -> None:
    dl = Queue(queue.client, "dl")
    dl.steps.command("hset", dl.keys.progress, "some id", raw)
    dl.client.zadd(dl.keys.leases, {"some id": 1})

    assert sweep(dl) == Swept(dead=1)

    record = record_in(dl, Place.FAIL, "some id")
    assert (record["id"], record["retryable"]) == ("some id", False)
    assert "raw" not in record or unescape(record["raw"]) == raw
    assert dl.depths()["progress"] == 0


def test_an_entry_under_an_id_that_is_no_text_is_moved_too(queue: Queue) -> None:
    queue.client.hset(queue.keys.progress, b"\xff\xfe", b"damage")  # type: ignore[arg-type]  # typed without bytes
    queue.client.zadd(queue.keys.leases, {b"\xff\xfe": 1})

    assert sweep(queue) == Swept(dead=1)
    assert queue.client.hexists(queue.keys.fail, b"\xff\xfe")  # type: ignore[arg-type]  # typed without bytes


def test_what_an_item_did_before_survives_a_stall(queue: Queue) -> None:
    queue.finish(begun(queue), Place.RESULT, {"path": "/first"})
    begun(queue, json.dumps({"url": URL, "force": True}))
    stall(queue)

    sweep(queue)

    (record,) = queue.claim(1).records
    assert (record["attempt"], record["previous"]["path"]) == (2, "/first")


def test_two_sweepers_return_each_item_once(queue: Queue, valkey: Valkey) -> None:
    queue.submit([url_of(number) for number in range(1000)])
    for _ in range(2):
        queue.claim(500)
    stall(queue)
    done: list[Swept] = []

    def run() -> None:
        client = connect(address_of(valkey.url))
        done.append(sweep(Queue(client, "auth")))
        client.close()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(swept.returned for swept in done) == 1000
    assert sorted(element["url"] for element in inbox_of(queue)) == [url_of(number) for number in range(1000)]


# -- older tools ---------------------------------------------------------------------------------------------


def test_an_entry_of_an_older_tool_is_left_alone_while_it_may_be_alive(queue: Queue) -> None:
    queue.client.hset(queue.keys.progress, URL, "running")

    assert [sweep(queue), sweep(queue)] == [Swept(), Swept()]
    assert where(queue) == ["progress"]


@pytest.mark.parametrize(
    "record",
    [
        {"url": URL, "claimed_at": "2020-01-01T00:00:00Z"},
        {"url": URL, "heartbeat_at": "2020-01-01T00:00:00"},
        {"timestamp": 1_577_836_800},
        {"url": URL, "updated_at": 1_577_836_800_000.0},
    ],
)
def test_an_old_entry_of_an_older_tool_is_requeued_due_to_age(
    queue: Queue, record: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    queue.client.hset(queue.keys.progress, URL, json.dumps(record))

    assert sweep(queue) == Swept(returned=1, adopted=1)

    assert [(element["url"], element["attempt"]) for element in inbox_of(queue)] == [(URL, 2)]
    assert "requeued due to age" in caplog.text


def test_age_is_measured_from_the_last_sign_of_life(queue: Queue) -> None:
    now = queue.now_ms() / 1000
    record = {"url": URL, "claimed_at": "2020-01-01T00:00:00Z", "heartbeat_at": now - 60}
    queue.client.hset(queue.keys.progress, URL, json.dumps(record))

    assert sweep(queue) == Swept()
    assert sweep(queue, stale_after_ms=59_000) == Swept(returned=1, adopted=1)


def test_an_entry_that_tells_no_time_is_old_when_it_was_seen_long_ago(queue: Queue) -> None:
    queue.client.hset(queue.keys.progress, URL, "running")
    sweep(queue)
    queue.client.zincrby(queue.keys.orphans, -7 * HOUR_MS, URL)

    assert sweep(queue) == Swept(returned=1, adopted=1)
    sweep(queue)
    assert queue.client.exists(queue.keys.orphans, queue.keys.progress) == 0


def test_an_entry_with_a_token_and_no_lease_gets_one(queue: Queue) -> None:
    begun(queue)
    queue.client.delete(queue.keys.leases)

    assert sweep(queue, stale_after_ms=0) == Swept()

    assert queue.client.zcard(queue.keys.leases) == 1
    stall(queue)
    assert sweep(queue) == Swept(returned=1)


# -- due -----------------------------------------------------------------------------------------------------


def test_what_is_not_due_stays(queue: Queue) -> None:
    failed(queue, due_in_ms=60_000)

    assert sweep(queue) == Swept()
    assert where(queue) == ["fail"]


def test_a_due_failure_waits_again_with_its_attempt_counted(queue: Queue) -> None:
    failed(queue, due_in_ms=0)
    make_due(queue)

    assert sweep(queue) == Swept(promoted=1)

    assert [(element["url"], element["attempt"]) for element in inbox_of(queue)] == [(URL, 2)]
    assert where(queue) == ["inbox"]
    assert queue.claim(1).records[0]["attempt"] == 2


@pytest.mark.parametrize("outcome", ["defer", "operator"])
def test_a_deferral_does_not_count_as_an_attempt(queue: Queue, outcome: str) -> None:
    queue.finish(begun(queue), Place.DEFERRED, {"code": "upcoming", "outcome": outcome}, due_in_ms=0)
    make_due(queue)

    assert sweep(queue) == Swept(promoted=1)
    assert inbox_of(queue)[0]["attempt"] == 1


def test_a_dead_letter_is_never_due(queue: Queue) -> None:
    failed(queue)

    assert sweep(queue) == Swept()
    assert where(queue) == ["fail"]


def test_a_due_time_that_nothing_waits_for_is_dropped(queue: Queue) -> None:
    queue.client.zadd(queue.keys.due, {"gone": 1})

    assert sweep(queue) == Swept()
    assert queue.client.exists(queue.keys.due) == 0


def test_more_due_items_than_a_page_are_all_promoted(queue: Queue) -> None:
    total = 1300
    records = {url_of(number): json.dumps({"url": url_of(number), "code": "network"}) for number in range(total)}
    queue.client.hset(queue.keys.fail, mapping=records)
    queue.client.zadd(queue.keys.due, dict.fromkeys(records, 7))

    assert sweep(queue) == Swept(promoted=total)
    assert queue.depths()["inbox"] == total


def dl_queue(queue: Queue) -> Queue:
    return Queue(queue.client, "dl", patience_seconds=0)


def test_failed_formats_of_a_video_go_back_by_way_of_auth_together(queue: Queue) -> None:
    queue.finish(begun(queue, json.dumps({"url": URL, "formats": "140,299"})), Place.RESULT, {})
    dl = dl_queue(queue)
    for format_id in ("299", "140"):
        failed(dl, format_job(format_id, attempt=2, tags=["t"], profile="p").to_inbox(), due_in_ms=0)
    make_due(dl)

    assert sweep(dl) == Swept(promoted=2)

    (record,) = queue.claim(5).records
    assert (record["url"], set(record["formats"].split(","))) == (URL, {"299", "140"})
    assert (record["attempt"], record["tags"], record["profile"]) == (3, ["t"], "p")
    assert dl.depths()["fail"] == 0


def test_a_format_asked_for_before_is_not_taken_for_done_when_it_goes_back(queue: Queue) -> None:
    queue.finish(begun(queue, json.dumps({"url": URL, "formats": "299"})), Place.RESULT, {})
    dl = dl_queue(queue)
    failed(dl, format_job("299").to_inbox(), due_in_ms=0)
    make_due(dl)

    sweep(dl)

    (record,) = queue.claim(5).records
    assert (record["formats"], record["attempt"]) == ("299", 2)


def test_more_formats_than_a_selector_can_name_go_back_in_parts(queue: Queue) -> None:
    dl = dl_queue(queue)
    names = [f"{'f' * 100}{number}" for number in range(12)]
    for name in names:
        failed(dl, format_job(name).to_inbox(), due_in_ms=0)
    make_due(dl)

    assert sweep(dl) == Swept(promoted=12)

    parts = [element["formats"].split(",") for element in inbox_of(queue)]
    assert sorted(name for part in parts for name in part) == sorted(names)
    assert max(map(len, parts)) < 12


def test_an_unreadable_record_does_not_keep_the_others_from_going_back(queue: Queue) -> None:
    dl = dl_queue(queue)
    failed(dl, format_job("299").to_inbox(), due_in_ms=0)
    dl.client.hset(dl.keys.fail, "broken", "damage")
    dl.client.zadd(dl.keys.due, {"broken": 5})
    make_due(dl)

    assert sweep(dl) == Swept(promoted=2)
    assert [element["formats"] for element in inbox_of(queue)] == ["299"]
    assert inbox_of(dl) == ["damage"]


# -- paging --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaves_every", [0, 1, 3])
def test_a_page_after_the_other_shows_each_id_once_whether_it_leaves_or_stays(
    queue: Queue, leaves_every: int
) -> None:
    ids = [f"{number:04d}" for number in range(1700)]
    queue.client.zadd(queue.keys.leases, dict.fromkeys(ids, 7))
    queue.client.zadd(queue.keys.leases, {"not yet": 9})

    shown = []
    for page in ids_until(queue, queue.keys.leases, 8):
        shown += page
        if leaves_every:
            queue.client.zrem(queue.keys.leases, *page[::leaves_every])

    assert shown == ids
