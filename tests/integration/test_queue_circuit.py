"""Pause, circuit breaker and limits: asked inside the claim."""

from __future__ import annotations

import threading

import pytest

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.models import UrlItem
from include.ytdlp_ops.queues.circuit import Breaker
from include.ytdlp_ops.queues.connecting import address_of, connect
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.limits import Limits
from include.ytdlp_ops.queues.queue import Queue, Record
from tests.queueing import URL, begun, claimed, url_of
from tests.servers import Valkey

BOT_CHECK = {"code": "bot_check", "outcome": "rotate"}


@pytest.fixture
def sensitive(queue: Queue) -> Queue:
    """A queue whose circuit opens for a minute, and which has work waiting."""
    queue.submit([url_of(number) for number in range(60)])
    return Queue(queue.client, "auth", patience_seconds=0, breaker=Breaker(cool_down_ms=60_000))


def run_one(queue: Queue, place: Place, outcome: Record) -> str:
    """Claim, begin and end one item; says why nothing could be claimed."""
    claim = queue.claim(1)
    if claim.closed:
        return claim.closed
    (record,) = claim.records
    queue.finish(queue.begin(record["id"], record["token"], host="here"), place, outcome)
    return ""


def cool_down(queue: Queue) -> None:
    """Let the cool-down be over."""
    queue.client.hset(queue.keys.circuit, "until_ms", "1")


def opened(queue: Queue) -> None:
    for _ in range(7):
        assert run_one(queue, Place.FAIL, BOT_CHECK) == ""


# -- pause ---------------------------------------------------------------------------------------------------


def test_a_paused_stage_claims_nothing_and_says_why(queue: Queue) -> None:
    queue.submit([URL])
    queue.pause("new proxies")

    claim = queue.claim(1)

    assert (claim.records, queue.depths()["inbox"]) == ([], 1)
    assert claim.closed.startswith("paused since 2")
    assert claim.closed.endswith("new proxies")
    assert queue.circuit().paused_reason == "new proxies"


def test_a_paused_stage_drains(queue: Queue) -> None:
    record = begun(queue)
    queue.pause("deploy")

    queue.heartbeat(record)
    queue.finish(record, Place.RESULT, {})

    assert queue.depths()["progress"] == 0


def test_a_resumed_stage_claims_again(queue: Queue) -> None:
    queue.submit([URL])
    queue.pause("deploy")

    queue.resume()

    assert len(queue.claim(1).records) == 1
    assert queue.circuit().may_claim


def test_pausing_one_stage_leaves_the_others_running(queue: Queue) -> None:
    queue.pause("x")

    assert Queue(queue.client, "dl").circuit().may_claim


def test_a_person_who_asks_for_one_item_gets_it_in_a_pause(queue: Queue) -> None:
    queue.pause("x")

    assert queue.take(UrlItem(url=URL)) is not None


def test_a_claim_asked_again_in_a_pause_gives_what_it_gave(queue: Queue) -> None:
    queue.submit([URL])
    first = queue.claim(1, request_id="r")
    queue.pause("x")

    assert queue.claim(1, request_id="r").records == first.records


# -- circuit breaker -----------------------------------------------------------------------------------------


def test_a_share_of_one_systemic_reason_opens_the_circuit(sensitive: Queue) -> None:
    for number in range(6):
        assert run_one(sensitive, Place.FAIL, BOT_CHECK) == "", number
    assert sensitive.circuit().may_claim

    run_one(sensitive, Place.FAIL, BOT_CHECK)

    circuit = sensitive.circuit()
    assert (circuit.state, circuit.reason, circuit.share) == ("open", "bot_check", "7 of the last 20")
    claim = sensitive.claim(5)
    assert claim.records == []
    assert claim.closed == (
        f"circuit open: 7 of the last 20 ended bot_check; nothing is claimed until {circuit.until}"
    )


def test_the_share_is_of_the_last_finishes_alone(sensitive: Queue) -> None:
    for _ in range(4):
        for _ in range(6):
            run_one(sensitive, Place.RESULT, {})
        for _ in range(2):
            run_one(sensitive, Place.FAIL, BOT_CHECK)

    assert sensitive.circuit().state == "closed"


def test_reasons_of_different_classes_do_not_add_up(sensitive: Queue) -> None:
    for code in ("bot_check", "http_429", "proxy", "http_403"):
        for _ in range(4):
            run_one(sensitive, Place.FAIL, {"code": code})

    assert sensitive.circuit().state == "closed"


def test_what_is_wrong_with_the_videos_opens_nothing(sensitive: Queue) -> None:
    for _ in range(20):
        run_one(sensitive, Place.SKIPPED, {"code": "private"})

    assert sensitive.circuit().state == "closed"


def test_after_the_cool_down_one_item_is_tried(sensitive: Queue) -> None:
    opened(sensitive)
    cool_down(sensitive)

    claim = sensitive.claim(10)

    assert len(claim.records) == 1
    assert sensitive.circuit().state == "probing"
    assert sensitive.circuit().probe == claim.records[0]["id"]
    assert sensitive.claim(10).closed.endswith("decides whether it closes")


def test_a_good_probe_closes_the_circuit(sensitive: Queue) -> None:
    opened(sensitive)
    cool_down(sensitive)

    run_one(sensitive, Place.RESULT, {})

    assert sensitive.circuit().may_claim
    assert len(sensitive.claim(5).records) == 5


def test_a_bad_probe_opens_it_for_twice_as_long_up_to_a_cap(sensitive: Queue) -> None:
    opened(sensitive)
    lengths = []

    for _ in range(8):
        cool_down(sensitive)
        run_one(sensitive, Place.FAIL, BOT_CHECK)
        lengths.append(int(sensitive.client.hget(sensitive.keys.circuit, "cool_down_ms") or 0) // 60_000)  # type: ignore[arg-type]  # typed as awaitable too

    assert lengths == [2, 4, 8, 16, 32, 60, 60, 60]
    assert sensitive.claim(1).closed


def test_a_probe_that_decides_nothing_is_followed_by_another(sensitive: Queue) -> None:
    opened(sensitive)
    cool_down(sensitive)

    run_one(sensitive, Place.FAIL, {"code": "network"})

    assert len(sensitive.claim(5).records) == 1


def test_a_probe_that_was_handed_back_is_followed_by_another(sensitive: Queue) -> None:
    opened(sensitive)
    cool_down(sensitive)
    (probe,) = sensitive.claim(1).records

    sensitive.release(probe)

    assert len(sensitive.claim(5).records) == 1


def test_ends_of_what_ran_before_do_not_decide(sensitive: Queue) -> None:
    before = sensitive.claim(3).records
    opened(sensitive)
    cool_down(sensitive)
    sensitive.claim(1)

    for record, place in zip(before, (Place.RESULT, Place.FAIL, Place.RESULT), strict=True):
        sensitive.finish(record, place, BOT_CHECK if place is Place.FAIL else {})

    assert sensitive.circuit().state == "probing"


def test_a_person_closes_it(sensitive: Queue) -> None:
    opened(sensitive)

    sensitive.resume()

    assert len(sensitive.claim(5).records) == 5


# -- limits --------------------------------------------------------------------------------------------------


@pytest.fixture
def limits(queue: Queue) -> Limits:
    return Limits(queue.client, queue.keys, patience_seconds=0)


def test_what_has_no_limit_is_not_limited(limits: Limits) -> None:
    assert [limits.wait_ms("egress:a") for _ in range(100)] == [0] * 100


def test_a_stage_starts_no_more_than_its_limit(queue: Queue, limits: Limits) -> None:
    queue.submit([url_of(number) for number in range(20)])
    limits.set_limit("stage:auth", 1, burst=5)

    claims = [queue.claim(3), queue.claim(3), queue.claim(3)]

    assert [len(claim.records) for claim in claims] == [3, 2, 0]
    assert claims[2].closed == "limited to 1 starts a minute"


def test_a_limit_changes_live(queue: Queue, limits: Limits) -> None:
    queue.submit([url_of(number) for number in range(20)])
    limits.set_limit("stage:auth", 0)
    assert queue.claim(1).closed == "limited to 0 starts a minute"

    limits.set_limit("stage:auth", None)

    assert len(queue.claim(20).records) == 20
    assert limits.limits() == {}


def test_a_bucket_fills_with_time(queue: Queue, limits: Limits) -> None:
    limits.set_limit("egress:a", 60, burst=1)
    first, wait = limits.wait_ms("egress:a"), limits.wait_ms("egress:a")
    assert (first, wait is not None and 900 <= wait <= 1000) == (0, True)

    queue.client.hset(queue.keys.buckets, "egress:a", f"0.0 {queue.now_ms() - 1000}")

    assert limits.wait_ms("egress:a") == 0


def test_a_bucket_never_holds_more_than_its_burst(queue: Queue, limits: Limits) -> None:
    limits.set_limit("egress:a", 60, burst=3)
    queue.client.hset(queue.keys.buckets, "egress:a", "0.0 1")

    starts = [limits.wait_ms("egress:a") for _ in range(4)]

    assert starts[:3] == [0, 0, 0]
    assert starts[3]


def test_a_limit_of_nothing_says_that_waiting_is_no_use(limits: Limits) -> None:
    limits.set_limit("account:a", 0)

    assert limits.wait_ms("account:a") is None


def test_buckets_are_apart(limits: Limits) -> None:
    limits.set_limit("account:a", 1, burst=1)
    limits.wait_ms("account:a")

    assert limits.wait_ms("account:b") == 0
    assert limits.limits() == {"account:a": "1:1"}


def test_a_fleet_shares_one_bucket(queue: Queue, limits: Limits, valkey: Valkey) -> None:
    limits.set_limit("egress:a", 1, burst=50)
    started: list[int] = []

    def start() -> None:
        client = connect(address_of(valkey.url))
        mine = Limits(client, queue.keys)
        started.append(sum(mine.wait_ms("egress:a") == 0 for _ in range(40)))
        client.close()

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(started) == 50


@pytest.mark.parametrize(
    ("bucket", "a_minute", "burst"),
    [("host:a", 1, None), ("egress:", 1, None), ("egress:a", -1, None), ("egress:a", 1, 0)],
)
def test_a_limit_that_can_not_be_is_refused(limits: Limits, bucket: str, a_minute: int, burst: int | None) -> None:
    with pytest.raises(BadInput, match=bucket):
        limits.set_limit(bucket, a_minute, burst=burst)


def test_a_limit_spelled_wrong_by_hand_stops_nothing(queue: Queue, limits: Limits) -> None:
    queue.client.hset(queue.keys.limits, "stage:auth", "many")

    assert claimed(queue)["state"] == "claimed"
