"""Sweepers beside each other, beside workers, and beside what they can't read."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from include.ytdlp_ops.errors import LeaseLost
from include.ytdlp_ops.queues.connecting import address_of, connect
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.recovery import Swept, sweep
from tests.faults.outcomes import assert_nothing_lost, until
from tests.queueing import URL, begun, url_of, where
from tests.servers import Valkey

SWEEPER = """
import sys
from include.ytdlp_ops.queues.connecting import address_of, connect
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.recovery import sweep
print(sweep(Queue(connect(address_of(sys.argv[1])), "auth")).returned)
"""


def stalled(queue: Queue, count: int, lease_ms: int = 1) -> list[str]:
    """Many items in progress, all with one deadline."""
    urls = [url_of(number) for number in range(count)]
    records = {url: json.dumps({"url": url, "id": url, "token": url[-5:], "attempt": 1}) for url in urls}
    queue.client.hset(queue.keys.progress, mapping=records)
    queue.client.zadd(queue.keys.leases, dict.fromkeys(urls, lease_ms))
    return urls


def start_sweeper(server: Valkey) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SWEEPER, server.url],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_26_two_sweepers_and_1_000_stalled_items_with_one_deadline(server: Valkey, patient: Queue) -> None:
    urls = stalled(patient, 1000)

    sweepers = [start_sweeper(server), start_sweeper(server)]
    returned = [int(sweeper.communicate(timeout=60)[0]) for sweeper in sweepers]

    assert sum(returned) == 1000
    assert patient.depths() | {"inbox": 1000, "progress": 0} == patient.depths()
    assert_nothing_lost(patient, urls)


def test_27_sweep_against_finish_1_000_times(server: Valkey, patient: Queue, seed: int) -> None:
    urls = stalled(patient, 1000)
    order = random.Random(seed).sample(urls, len(urls))
    client = connect(address_of(server.url))
    other = Queue(client, "auth")
    refused: set[str] = set()

    def finish_all() -> None:
        for url in order:
            try:
                other.finish({"id": url, "url": url, "token": url[-5:]}, Place.RESULT, {})
            except LeaseLost:
                refused.add(url)

    worker = threading.Thread(target=finish_all)
    worker.start()
    swept = 0
    while patient.depths()["progress"]:
        swept += sweep(patient).returned
    worker.join()

    assert swept == len(refused)
    assert patient.depths() | {"inbox": swept, "progress": 0, "result": 1000 - swept} == patient.depths()
    assert_nothing_lost(patient, urls)
    client.close()


def test_28_a_sweeper_killed_in_mid_sweep(server: Valkey, patient: Queue) -> None:
    urls = stalled(patient, 3000)
    sweeper = start_sweeper(server)
    with sweeper:
        until(lambda: patient.depths()["inbox"] > 100)
        sweeper.kill()
    assert 0 < patient.depths()["inbox"] < 3000
    assert_nothing_lost(patient, urls)

    sweep(patient)

    assert patient.depths() | {"inbox": 3000, "progress": 0} == patient.depths()
    assert_nothing_lost(patient, urls)


def test_29_10_000_healthy_items_and_10_stalled_ones(patient: Queue) -> None:
    urls = stalled(patient, 10_010, lease_ms=1 << 50)
    patient.client.zadd(patient.keys.leases, dict.fromkeys(urls[::1001], 5))

    assert sweep(patient) == Swept(returned=10)

    assert patient.depths() | {"inbox": 10, "progress": 10_000} == patient.depths()
    assert_nothing_lost(patient, urls)


def test_30_entries_that_are_no_json_or_lack_token_or_lease(patient: Queue) -> None:
    healthy = stalled(patient, 5, lease_ms=1 << 50)
    damaged = {"a": "no json", "b": "[]", "c": '{"token":5}', "d": "", "e": '{"url":"https://example.org/"}'}
    patient.client.hset(patient.keys.progress, mapping=damaged)
    patient.client.zadd(patient.keys.leases, {"a": 1, "b": 2})

    first, later = sweep(patient), sweep(patient, stale_after_ms=0)

    assert first == Swept(dead=2)
    assert later == Swept(dead=2, returned=1, adopted=3)
    assert patient.depths() | {"inbox": 1, "progress": 5, "fail": 4} == patient.depths()
    assert_nothing_lost(patient, healthy)


@pytest.mark.parametrize("hours_off", [-1, 1])
def test_31_client_clocks_one_hour_off(patient: Queue, hours_off: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3600 * hours_off)
    record = begun(patient)

    assert sweep(patient) == Swept()
    patient.heartbeat(record)
    assert sweep(patient) == Swept()
    patient.finish(record, Place.FAIL, {}, due_in_ms=60_000)

    assert sweep(patient) == Swept()
    assert where(patient) == ["fail"]
    assert_nothing_lost(patient, [URL])
