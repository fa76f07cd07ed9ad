"""Faults around submit and claim."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.queues.connecting import address_of, connect
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue, Record
from tests.faults.outcomes import assert_all_ended, assert_nothing_lost, journal_of
from tests.faults.workers import start_worker
from tests.proxies import Proxy
from tests.queueing import URL, begun, claimed, inbox_of, record_in, url_of, where
from tests.servers import Valkey


def through(proxy: Proxy) -> Queue:
    client = connect(address_of(f"redis://127.0.0.1:{proxy.port}/0"))
    return Queue(client, "auth", patience_seconds=10)


def once(marker: bytes) -> Callable[[bytes], bool]:
    """Lose the reply of the first request that names something."""
    left = [True]

    def lose(request: bytes) -> bool:
        hit = marker in request and b"EVALSHA" in request and left[0]
        left[0] = left[0] and not hit
        return hit

    return lose


def test_03_the_reply_of_a_claim_is_dropped(server: Valkey, patient: Queue) -> None:
    urls = [url_of(number) for number in range(10)]
    patient.submit(urls)
    with Proxy(server.port, lose=once(b"queue2_auth_claim:")) as proxy:
        queue = through(proxy)

        claim = queue.claim(4)

        assert proxy.lost == 1
        assert [record["url"] for record in claim.records] == urls[:4]
        assert [element["url"] for element in inbox_of(patient)] == urls[4:]
        assert_nothing_lost(patient, urls)
        queue.client.close()


STEPS: dict[str, tuple[Callable[[Queue, Record], Any], list[str]]] = {
    "begin": (lambda queue, record: queue.begin(URL, record["token"], host="x"), ["progress"]),
    "heartbeat": (lambda queue, record: queue.heartbeat(record), ["progress"]),
    "result": (lambda queue, record: queue.finish(record, Place.RESULT, {}), ["result"]),
    "fail": (lambda queue, record: queue.finish(record, Place.FAIL, {}, due_in_ms=9999), ["fail"]),
    "release": (lambda queue, record: queue.release(record), ["inbox"]),
}


@pytest.mark.parametrize("name", STEPS)
def test_03_the_reply_of_any_later_step_is_dropped(server: Valkey, patient: Queue, name: str) -> None:
    step, places = STEPS[name]
    record = claimed(patient) if name == "begin" else begun(patient)
    with Proxy(server.port, lose=once(b"queue2_auth_progress")) as proxy:
        queue = through(proxy)

        step(queue, record)

        assert proxy.lost == 1
        assert where(patient) == places
        assert_nothing_lost(patient, [URL])
        queue.client.close()


def test_03_the_reply_of_a_submit_is_dropped(server: Valkey, patient: Queue) -> None:
    with Proxy(server.port, lose=once(b"queue2_auth_submit:")) as proxy:
        queue = through(proxy)

        answers = queue.submit([url_of(1), url_of(2)])

        assert (answers, proxy.lost) == (["queued", "queued"], 1)
        assert [element["url"] for element in inbox_of(patient)] == [url_of(1), url_of(2)]
        queue.client.close()


@pytest.mark.slow
def test_06_eight_claimers_on_one_inbox_of_10_000(server: Valkey, patient: Queue, tmp_path: Path) -> None:
    urls = [url_of(number) for number in range(10_000)]
    patient.submit(urls)

    workers = [
        start_worker(server.url, tmp_path / f"{number}.journal", "--batch", 50, "--lease-ms", 60_000)
        for number in range(8)
    ]
    for worker in workers:
        assert worker.wait(300) == 0

    assert set(journal_of(tmp_path).values()) == {1}
    assert_all_ended(patient, urls)


def test_07_the_same_url_100_times(server: Valkey, patient: Queue, tmp_path: Path) -> None:
    patient.client.rpush(patient.keys.inbox, *[URL, URL[-11:]] * 50)

    assert start_worker(server.url, tmp_path / "1.journal").wait(60) == 0

    assert journal_of(tmp_path) == {URL: 1}
    assert_all_ended(patient, [URL])
    record = record_in(patient, Place.RESULT)
    assert record.get("duplicates", 0) + record.get("submitted_again", 0) == 99


def test_10_elements_that_are_none(server: Valkey, patient: Queue, tmp_path: Path) -> None:
    bad = [b"", b"x" * 10_000_000, b"\xff\xfe", b'{"url":', b"[]", b"{}", b'"', b"file:///etc/passwd"]
    odd = "https://example.org/a%2Fb/'\"?q=%23&x=#frag%"
    patient.client.rpush(patient.keys.inbox, *bad, odd, *bad)

    assert start_worker(server.url, tmp_path / "1.journal").wait(60) == 0

    assert journal_of(tmp_path) == {odd: 1}
    assert patient.depths() | {"inbox": 0, "progress": 0, "result": 1, "fail": len(bad)} == patient.depths()
