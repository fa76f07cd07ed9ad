"""From a claimed item to its end: however a stage's work goes, there is one record, or the item is handed back."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import (
    CancelRequested,
    ConfigurationError,
    DownloadFailed,
    ExtractionRefused,
    LeaseLost,
    OpsServerUnavailable,
    Refusal,
)
from include.ytdlp_ops.queues.backoff import MAX_ATTEMPTS
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.limits import Limits
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.records import Record
from include.ytdlp_ops.queues.resting import forget, rest, rested, resting, why_resting
from include.ytdlp_ops.stages.running import Ended, RunningItem, Terminated
from include.ytdlp_ops.stages.working import Runner, claim_by_hand, work_on

if TYPE_CHECKING:
    from redis import Redis

URL = "https://www.youtube.com/watch?v=dQw4w9WgXcQ"
FULL_DISK = DownloadFailed(Code.DISK, "no space left")
RUNNER = Runner(host="here", dag_id="a_dag", run_id="a_run")


@pytest.fixture
def queue(redis_client: Redis) -> Queue:
    return Queue(redis_client, Stage.AUTH)


def claimed(queue: Queue, element: str = URL) -> Record:
    queue.submit([element])
    (record,) = queue.claim(1).records
    return record


def raising(error: BaseException) -> Ended:
    raise error


def work(queue: Queue, error: BaseException, element: str = URL) -> tuple[Ended, Record]:
    record = claimed(queue, element)
    ended = work_on(queue, record["id"], record["token"], lambda _: raising(error), runner=RUNNER)
    found = queue.find(URL)
    return ended, found[1] if found else {}


@pytest.mark.parametrize(
    ("error", "place", "code"),
    [
        (ExtractionRefused(Code.PRIVATE, "Private video"), Place.SKIPPED, Code.PRIVATE),
        (ExtractionRefused(Code.UPCOMING, "in 2 hours", retry_after=7200), Place.DEFERRED, Code.UPCOMING),
        (ExtractionRefused(Code.BOT_CHECK, "not a bot", egress="e1"), Place.FAIL, Code.BOT_CHECK),
        (OpsServerUnavailable("ops server 127.0.0.1:1 refused"), Place.FAIL, Code.OPS_SERVER_UNAVAILABLE),
        (ZeroDivisionError("a bug"), Place.FAIL, Code.UNKNOWN),
    ],
    ids=lambda value: getattr(value, "code", type(value).__name__) if isinstance(value, Exception) else "",
)
def test_each_kind_of_error_leaves_its_record(queue: Queue, error: Exception, place: Place, code: Code) -> None:
    ended, record = work(queue, error)

    assert (ended.place, ended.code) == (place, code)
    assert {where: depth for where, depth in queue.depths().items() if depth} == {place: 1}
    assert record["code"] == code
    assert record["message"]
    assert record["finished_at"]
    assert (record["host"], record["dag_id"], record["run_id"]) == ("here", "a_dag", "a_run")


def test_a_failure_that_may_pass_says_when_it_is_tried_again(queue: Queue) -> None:
    _, record = work(queue, Refusal(Code.NETWORK, "reset", retry_after=90))

    assert record["retryable"] is True
    assert record["retry_at"] > record["finished_at"]
    assert queue.client.zcard(queue.keys.due) == 1


def test_the_last_attempt_is_a_dead_letter(queue: Queue) -> None:
    _, record = work(queue, Refusal(Code.NETWORK, "reset"), f'{{"url": "{URL}", "attempt": {MAX_ATTEMPTS}}}')

    assert record["retryable"] is False
    assert "retry_at" not in record
    assert queue.client.zcard(queue.keys.due) == 0


def test_a_refusal_says_through_which_egress(queue: Queue) -> None:
    _, record = work(queue, ExtractionRefused(Code.BOT_CHECK, "not a bot", egress="e1", account="a1"))

    assert (record["egress"], record["account"], record["outcome"]) == ("e1", "a1", Outcome.ROTATE)


def test_a_terminated_run_hands_its_item_back_unchanged(queue: Queue) -> None:
    ended, _ = work(queue, Terminated("told to end"))

    assert ended.place is None
    assert {place: depth for place, depth in queue.depths().items() if depth} == {"inbox": 1}
    assert queue.claim(1).records[0]["attempt"] == 1


def test_what_is_this_hosts_fault_goes_back_to_the_others_unchanged(queue: Queue) -> None:
    ended, _ = work(queue, DownloadFailed(Code.DISK, "no space on /srv"))

    assert ended.place is None
    assert queue.claim(1, host="here").records == []
    (record,) = queue.claim(1, host="elsewhere").records
    assert record["attempt"] == 1
    assert record["released_because"] == "disk on here: no space on /srv"


def test_what_comes_back_to_the_host_at_fault_is_put_off(queue: Queue) -> None:
    work(queue, ConfigurationError("no ffmpeg"))
    (record,) = queue.claim(1).records

    ended = work_on(
        queue, record["id"], record["token"], lambda _: raising(ConfigurationError("no ffmpeg")), runner=RUNNER
    )

    assert (ended.place, ended.code) == (Place.DEFERRED, Code.CONFIGURATION)


def test_a_cancelled_item_ends_as_skipped(queue: Queue) -> None:
    def cancelled_meanwhile(running: RunningItem) -> Ended:
        queue.cancel(URL)
        running.confirm()
        return running.done({})

    record = claimed(queue)
    ended = work_on(queue, record["id"], record["token"], cancelled_meanwhile, runner=RUNNER)

    assert (ended.place, ended.code) == (Place.SKIPPED, Code.CANCELLED)


def test_a_heartbeat_hears_of_a_cancellation(queue: Queue) -> None:
    queue.running_lease_ms = 120
    record = claimed(queue)
    begun = queue.begin(record["id"], record["token"], host="here")

    with RunningItem(queue, begun) as running:
        queue.cancel(URL)
        running._thread.join(10)

        assert isinstance(running.lost(), CancelRequested)


def test_a_start_waits_for_the_limit_of_its_egress(queue: Queue) -> None:
    Limits(queue.client, queue.keys).set_limit("egress:e1", 600, burst=1)
    record = claimed(queue)
    begun = queue.begin(record["id"], record["token"], host="here")

    with RunningItem(queue, begun) as running:
        started = time.monotonic()
        running.await_start("egress:e1")
        running.await_start("egress:e1")

    assert time.monotonic() - started >= 0.09


def test_a_limit_of_nothing_puts_the_item_off(queue: Queue) -> None:
    Limits(queue.client, queue.keys).set_limit("egress:e1", 0)
    record = claimed(queue)

    def limited(running: RunningItem) -> Ended:
        running.await_start("egress:e1")
        return running.done({})

    ended = work_on(queue, record["id"], record["token"], limited, runner=RUNNER)

    assert (ended.place, ended.code) == (Place.DEFERRED, Code.LIMITED)


def test_a_run_whose_claim_is_over_touches_nothing(queue: Queue) -> None:
    record = claimed(queue)
    work_on(queue, record["id"], record["token"], lambda running: running.done({"made": 1}), runner=RUNNER)

    with pytest.raises(LeaseLost):
        work_on(queue, record["id"], record["token"], lambda running: running.done({"made": 2}), runner=RUNNER)

    place, found = queue.find(URL) or ("", {})
    assert (place, found["made"]) == (Place.RESULT, 1)


def test_heartbeats_carry_the_progress_while_the_work_goes_on(queue: Queue) -> None:
    queue.running_lease_ms = 120
    record = claimed(queue)
    seen = threading.Event()

    def slow(running: RunningItem) -> Ended:
        running.report(downloaded_bytes=7)
        watching = threading.Thread(target=watch)
        watching.start()
        watching.join(10)
        return running.done({})

    def watch() -> None:
        while not seen.is_set():
            found = queue.find(URL)
            if found and found[1].get("progress") == {"downloaded_bytes": 7}:
                seen.set()

    begun = queue.begin(record["id"], record["token"], host="here")
    with RunningItem(queue, begun) as running:
        slow(running)

    assert seen.is_set()


def test_a_heartbeat_notices_that_the_item_is_lost(queue: Queue) -> None:
    queue.running_lease_ms = 120
    record = claimed(queue)
    begun = queue.begin(record["id"], record["token"], host="here")

    with RunningItem(queue, begun) as running:
        queue.client.hdel(queue.keys.progress, URL)
        running._thread.join(10)

        assert isinstance(running.lost(), LeaseLost)
        with pytest.raises(LeaseLost):
            running.confirm()


def test_by_hand_a_url_is_claimed_past_the_inbox(queue: Queue) -> None:
    queue.submit(["aaaaaaaaaaa"])

    record = claim_by_hand(queue, "dQw4w9WgXcQ")

    assert record is not None
    assert record["id"] == URL
    assert queue.depths()["inbox"] == 1


def test_by_hand_without_a_url_the_next_that_waits_is_claimed(queue: Queue) -> None:
    queue.submit(["aaaaaaaaaaa"])

    record = claim_by_hand(queue, None)

    assert record is not None
    assert record["id"].endswith("aaaaaaaaaaa")
    assert claim_by_hand(queue, None) is None


def test_a_host_whose_disk_is_full_rests_and_takes_nothing_of_the_stage(queue: Queue) -> None:
    queue.submit([URL, "https://example.org/other"])
    (record,) = queue.claim(1, host="here").records
    told: list[str] = []
    runner = Runner(host="here", node="celery@here", take_no_more=lambda: told.append("no more"))

    ended = work_on(queue, record["id"], record["token"], lambda _: raising(FULL_DISK), runner=runner)

    assert (ended.place, told) == (None, ["no more"])
    refused = queue.claim(2, host="here")
    assert (refused.records, refused.closed) == ([], "here rests: disk on here: no space left")
    assert len(queue.claim(2, host="elsewhere").records) == 2
    assert [(each.host, each.node) for each in resting(queue)] == [("here", "celery@here")]


def test_a_rest_ends_with_its_time_or_when_a_person_resumes(queue: Queue) -> None:
    rest(queue, "tired", "disk", for_ms=1)
    rest(queue, "sick", "disk", for_ms=60_000)
    until_rested(queue, "tired")

    queue.resume()

    assert [each.host for each in rested(queue)] == ["sick", "tired"]
    assert why_resting(queue, "sick") == ""
    forget(queue, "sick")
    assert [each.host for each in resting(queue)] == ["tired"]


def test_what_is_not_ours_among_the_resting_hosts_is_over_at_once(queue: Queue) -> None:
    queue.client.hset(queue.keys.resting, "odd", "no JSON")

    assert why_resting(queue, "odd") == ""
    assert [each.host for each in rested(queue)] == ["odd"]


def until_rested(queue: Queue, host: str) -> None:
    end = time.monotonic() + 10
    while why_resting(queue, host):
        assert time.monotonic() < end
