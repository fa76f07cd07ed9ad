"""Claim: out of the inbox and into progress in one step, each item once."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter

import pytest

from include.ytdlp_ops.models import MAX_ELEMENT_BYTES, UrlItem
from include.ytdlp_ops.queues import recovery
from include.ytdlp_ops.queues.connecting import address_of, connect
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.records import unescape
from tests.queueing import URL, begun, claimed, everything, failed, format_job, inbox_of, record_in, url_of, where
from tests.servers import Valkey


def push(queue: Queue, *elements: str | bytes) -> None:
    queue.client.rpush(queue.keys.inbox, *elements)


def test_an_empty_inbox_gives_nothing_and_writes_nothing(queue: Queue) -> None:
    claim = queue.claim(10)

    assert (claim.records, claim.taken, claim.closed) == ([], 0, "")
    assert everything(queue.client) == {}


def test_fewer_items_than_asked_for_are_all_claimed(queue: Queue) -> None:
    push(queue, url_of(1), url_of(2))

    claim = queue.claim(10)

    assert [record["url"] for record in claim.records] == [url_of(1), url_of(2)]
    assert queue.depths()["inbox"] == 0


def test_more_items_than_asked_for_stay_in_order(queue: Queue) -> None:
    push(queue, *map(url_of, range(5)))

    claim = queue.claim(2)

    assert [record["url"] for record in claim.records] == [url_of(0), url_of(1)]
    assert inbox_of(queue) == [url_of(2), url_of(3), url_of(4)]


def test_no_more_than_one_step_can_carry_are_claimed_at_once(queue: Queue) -> None:
    push(queue, *map(url_of, range(600)))

    assert len(queue.claim(10_000).records) == 500
    assert queue.depths() | {"inbox": 100, "progress": 500} == queue.depths()


def test_a_claimed_item_has_a_token_a_lease_and_its_first_attempt(queue: Queue) -> None:
    before = queue.now_ms()

    record = claimed(queue)

    assert record == record_in(queue, Place.PROGRESS)
    assert (record["state"], record["attempt"], record["stage"], len(record["token"])) == (
        "claimed",
        1,
        "auth",
        32,
    )
    deadline = queue.steps.command("zscore", queue.keys.leases, URL)
    assert before + 600_000 <= deadline <= queue.now_ms() + 600_000


def test_one_request_id_claims_once(queue: Queue) -> None:
    push(queue, *map(url_of, range(5)))

    first = queue.claim(2, request_id="r")
    again = queue.claim(2, request_id="r")

    assert again.records == first.records
    assert queue.depths()["progress"] == 2


def test_the_same_url_a_hundred_times_runs_once(queue: Queue) -> None:
    push(queue, *[URL, "dQw4w9WgXcQ", f"https://youtu.be/{URL[-11:]}", json.dumps({"url": URL})] * 25)

    claims = [queue.claim(10) for _ in range(5)]

    assert sum(len(claim.records) for claim in claims) == 1
    assert sum(claim.taken for claim in claims) == 100
    assert (queue.depths()["inbox"], queue.depths()["progress"]) == (0, 1)
    assert record_in(queue, Place.PROGRESS)["duplicates"] == 99
    assert queue.counters() == {"claimed": 1, "copies_dropped": 99}


def test_copies_are_counted_on_the_end_of_what_they_copy(queue: Queue) -> None:
    record = begun(queue)
    push(queue, URL, URL)
    queue.claim(1)

    queue.heartbeat(record)
    queue.finish(record, Place.RESULT, {})

    assert record_in(queue, Place.RESULT)["duplicates"] == 2


def test_a_url_asked_for_with_other_formats_while_it_runs_waits_its_turn(queue: Queue) -> None:
    record = begun(queue)
    push(queue, json.dumps({"url": URL, "formats": "ba"}), url_of(1))

    claim = queue.claim(5)

    assert ([one["url"] for one in claim.records], claim.later) == ([url_of(1)], 1)
    queue.finish(record, Place.RESULT, {"path": "/first"})
    (then,) = queue.claim(5).records
    assert (then["formats"], then["attempt"], then["previous"]["path"]) == ("ba", 1, "/first")
    assert where(queue) == ["progress"]


def test_a_claim_ends_where_all_that_waits_waits_for_another_run(queue: Queue) -> None:
    begun(queue)
    push(queue, *[json.dumps({"url": URL, "formats": str(number)}) for number in range(30)])

    claim = queue.claim(4)

    assert claim.records == []
    assert sorted(int(element["formats"]) for element in inbox_of(queue)) == list(range(30))


def test_what_is_done_is_not_run_again(queue: Queue) -> None:
    queue.finish(begun(queue), Place.RESULT, {})
    push(queue, URL)

    claim = queue.claim(1)

    assert (claim.records, claim.dropped) == ([], 1)
    assert record_in(queue, Place.RESULT)["submitted_again"] == 1
    assert queue.counters()["already_done"] == 1


def test_force_runs_again_what_is_done_and_keeps_its_record(queue: Queue) -> None:
    queue.finish(begun(queue), Place.RESULT, {"path": "/first"})

    record = begun(queue, json.dumps({"url": URL, "force": True}))
    queue.finish(record, Place.RESULT, {"path": "/second"})

    assert where(queue) == ["result"]
    done = record_in(queue, Place.RESULT)
    assert (done["path"], done["previous"]["path"], done["attempt"]) == ("/second", "/first", 1)


@pytest.mark.parametrize(
    ("place", "due_in_ms"),
    [(Place.FAIL, 60_000), (Place.FAIL, None), (Place.SKIPPED, None), (Place.DEFERRED, 60_000)],
)
def test_what_ended_otherwise_is_a_new_request_when_asked_for_again(
    queue: Queue, place: Place, due_in_ms: int | None
) -> None:
    queue.finish(begun(queue, json.dumps({"url": URL, "attempt": 4})), place, {"code": "x"}, due_in_ms=due_in_ms)
    push(queue, json.dumps({"url": URL, "attempt": 4}))

    (record,) = queue.claim(1).records

    assert where(queue) == ["progress"]
    assert (record["attempt"], record["previous"]["code"], record["previous"]["attempt"]) == (1, "x", 4)
    assert queue.client.zcard(queue.keys.due) == 0


@pytest.mark.parametrize(
    "old",
    [
        b"not json", b"", b"\xff\x00\\x41\n", b"[1]", b'{"a":NaN}', b'{"a":007}', b'{"title":"\xff"}',
        b'{"a":"\t"}', b'{"a":' * 300 + b"1" + b"}" * 300, b'{\n "url": "x"\n}',
        b'{"finished_at":"2026-01-01T00:00:00.000Z","a":[nan]}',
    ],
)  # fmt: skip
def test_a_record_that_no_step_wrote_is_kept_byte_by_byte_when_its_item_is_asked_for_again(
    queue: Queue, old: bytes
) -> None:
    queue.steps.command("hset", queue.keys.fail, URL, old)

    record = begun(queue)

    assert unescape(record["previous"]["raw"]) == old
    queue.finish(record, Place.RESULT, {})
    assert unescape(record_in(queue, Place.RESULT)["previous"]["raw"]) == old


BAD = {
    "empty": b"",
    "blank": b"  \t",
    "not UTF-8": b"\xff\xfe",
    "NUL": b"\x00",
    "broken JSON": b'{"url":',
    "a list": b'["dQw4w9WgXcQ"]',
    "a number": b"17",
    "no URL": b'{"tags":["a"]}',
    "NaN": b'{"url":"dQw4w9WgXcQ","x":NaN}',
    "half a character": b'{"url":"dQw4w9WgXcQ","x":"\\ud83d"}',
    "deep": b"[" * 20_000,
    "file": b"file:///etc/passwd",
    "quotes": b"'\"; DROP --",
}


@pytest.mark.parametrize("element", BAD.values(), ids=BAD.keys())
def test_an_element_that_is_no_item_is_in_fail_with_its_bytes_at_once(queue: Queue, element: bytes) -> None:
    push(queue, element, url_of(1))

    claim = queue.claim(1)

    assert ([one["url"] for one in claim.records], claim.refused) == ([url_of(1)], 1)
    record = record_in(queue, Place.FAIL, f"bad_input:{hashlib.sha1(element).hexdigest()}")
    assert unescape(record["raw"]) == element
    assert (record["code"], record["retryable"]) == ("bad_input", False)
    assert record["message"]
    assert recovery.sweep(queue) == recovery.Swept()


@pytest.mark.parametrize("size", [MAX_ELEMENT_BYTES + 1, 10_000_000])
def test_an_over_long_element_is_in_fail_unseen_and_its_bytes_are_kept(queue: Queue, size: int) -> None:
    element = b"x" * size
    push(queue, element, url_of(1))

    claim = queue.claim(1)

    assert (len(claim.records), claim.refused) == (1, 1)
    item_id = f"bad_input:{hashlib.sha1(element).hexdigest()}"
    assert record_in(queue, Place.FAIL, item_id)["raw_bytes"] == size
    assert queue.steps.command("hget", queue.keys.oversized, item_id) == element


def test_an_inbox_of_bad_elements_alone_is_emptied(queue: Queue) -> None:
    push(queue, *[f"bad {number}" for number in range(200)])

    claim = queue.claim(10)

    assert (claim.records, claim.refused, queue.depths()["fail"]) == ([], 200, 200)


def test_a_forged_id_token_or_state_is_not_believed(queue: Queue) -> None:
    forged = {"url": URL, "id": "other", "token": "mine", "state": "running", "attempt": 3, "finished_at": "x"}

    record = claimed(queue, json.dumps(forged))

    assert (record["id"], record["state"]) == (URL, "claimed")
    assert record["token"] != "mine"
    assert "finished_at" not in record


def test_hosts_that_handed_an_item_back_leave_it_to_others(queue: Queue) -> None:
    queue.release(begun(queue), reason="disk full", not_host="a")

    assert (queue.claim(1, host="a").records, queue.claim(1, host="a").later) == ([], 1)
    (record,) = queue.claim(1, host="b").records
    assert (record["url"], record["attempt"], record["released_because"]) == (URL, 1, "disk full")


def test_a_host_may_claim_again_after_its_time(queue: Queue) -> None:
    queue.release(begun(queue), not_host="a", not_host_ms=-1)

    assert len(queue.claim(1, host="a").records) == 1


def test_taking_an_item_goes_past_what_waits(queue: Queue) -> None:
    push(queue, url_of(1))

    record = queue.take(UrlItem(url=URL))

    assert record is not None
    assert record["state"] == "claimed"
    assert inbox_of(queue) == [url_of(1)]


def test_taking_a_copy_of_a_running_item_gives_nothing(queue: Queue) -> None:
    claimed(queue)

    assert queue.take(UrlItem(url=URL)) is None
    assert where(queue) == ["progress"]


def test_taking_other_formats_of_a_running_item_queues_them(queue: Queue) -> None:
    claimed(queue)

    assert queue.take(UrlItem(url=URL, formats="ba")) is None
    assert where(queue) == ["inbox", "progress"]


def test_format_jobs_have_ids_of_their_own(redis_client: object, valkey: Valkey) -> None:
    queue = Queue(connect(address_of(valkey.url)), "dl")
    push(queue, format_job("299").to_inbox(), format_job("140").to_inbox(), format_job("299").to_inbox())

    claim = queue.claim(5)

    assert [one["id"] for one in claim.records] == ["youtube:dQw4w9WgXcQ:299", "youtube:dQw4w9WgXcQ:140"]
    assert claim.dropped == 1
    queue.client.close()


@pytest.mark.slow
def test_eight_claimers_on_one_inbox_claim_each_item_once(queue: Queue, valkey: Valkey) -> None:
    total = 10_000
    push(queue, *map(url_of, range(total)))
    taken: Counter[str] = Counter()
    lock = threading.Lock()

    def claim_all() -> None:
        client = connect(address_of(valkey.url))
        mine = Queue(client, "auth")
        while records := mine.claim(100).records:
            with lock:
                taken.update(record["id"] for record in records)
        client.close()

    threads = [threading.Thread(target=claim_all) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(taken) == set(map(url_of, range(total)))
    assert set(taken.values()) == {1}
    assert queue.depths() | {"inbox": 0, "progress": total} == queue.depths()


WRONG = [
    "inbox", "progress", "leases", "result", "fail", "skipped", "deferred", "due", "oversized", "pause", "circuit",
    "limits", "buckets", "counters",
]  # fmt: skip


@pytest.mark.parametrize("key", WRONG)
def test_a_key_of_the_wrong_type_is_named_and_nothing_is_written(queue: Queue, key: str) -> None:
    from include.ytdlp_ops.errors import WrongKeyType

    failed(queue, url_of(1))
    push(queue, URL, "bad")
    queue.client.delete(getattr(queue.keys, key))
    queue.client.set(getattr(queue.keys, key), "wrong")
    before = everything(queue.client)

    with pytest.raises(WrongKeyType, match=rf"{getattr(queue.keys, key)} is a string, not a .*RENAME"):
        queue.claim(1)

    assert everything(queue.client) == before
