"""Workers that die, freeze, starve, or come too late."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from include.ytdlp_ops.errors import LeaseLost
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.recovery import Swept, sweep
from tests.faults.outcomes import assert_all_ended, assert_nothing_lost, journal_of, until
from tests.faults.workers import start_worker
from tests.queueing import URL, begun, record_in, where
from tests.servers import Valkey


def test_16_a_worker_frozen_past_its_lease_changes_nothing_when_it_wakes(
    server: Valkey, patient: Queue, tmp_path: Path
) -> None:
    patient.submit([URL])
    frozen = start_worker(
        server.url,
        tmp_path / "frozen.journal",
        "--tell",
        "--lease-ms",
        300,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert frozen.stdin is not None
    assert frozen.stdout is not None
    with frozen:
        assert frozen.stdout.readline() == "begun\n"
        frozen.send_signal(signal.SIGSTOP)
        until(lambda: sweep(patient).returned)
        record = patient.claim(1).records[0]
        record = patient.begin(record["id"], record["token"], host="second")
        frozen.send_signal(signal.SIGCONT)
        frozen.stdin.write("\n")
        frozen.stdin.flush()
        assert frozen.stdout.readline() == "lost\n"

        patient.finish(record, Place.RESULT, {"by": "second"})

        assert frozen.wait(30) == 0
    assert journal_of(tmp_path) == {}
    assert (record_in(patient, Place.RESULT)["by"], record["attempt"]) == ("second", 2)
    assert_all_ended(patient, [URL])


def test_17_a_worker_told_to_stop_hands_its_items_back(server: Valkey, patient: Queue, tmp_path: Path) -> None:
    patient.submit([URL, "https://example.org/2"])
    worker = start_worker(
        server.url, tmp_path / "1.journal", "--batch", 2, "--tell", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert worker.stdout is not None
    with worker:
        assert worker.stdout.readline() == "begun\n"
        worker.terminate()
        assert worker.wait(30) == 0

    assert patient.depths() | {"inbox": 2, "progress": 0} == patient.depths()
    assert {record["attempt"] for record in patient.claim(2).records} == {1}


def test_19_an_item_that_kills_its_worker_every_time_is_a_dead_letter(
    server: Valkey, patient: Queue, tmp_path: Path
) -> None:
    patient.submit([URL])

    for _ in range(5):
        worker = start_worker(server.url, tmp_path / "1.journal", "--die", "--lease-ms", 200)
        assert worker.wait(30) == -signal.SIGKILL
        until(lambda: sum(vars(sweep(patient)).values()))

    record = record_in(patient, Place.FAIL)
    assert (record["code"], record["attempt"], record["retryable"]) == ("stalled", 5, False)
    assert_all_ended(patient, [URL])


@pytest.mark.parametrize(("first", "second"), [(Place.RESULT, Place.FAIL), (Place.FAIL, Place.RESULT)])
def test_20_of_two_ends_the_first_wins(patient: Queue, first: Place, second: Place) -> None:
    record = begun(patient)
    patient.finish(record, first, {"n": 1})
    patient.finish(record, first, {"n": 1})

    with pytest.raises(LeaseLost):
        patient.finish(record, second, {"n": 2})

    assert where(patient) == [first]
    assert_all_ended(patient, [URL])


@pytest.mark.slow
def test_23_all_cores_busy_for_longer_than_the_lease(server: Valkey, patient: Queue, tmp_path: Path) -> None:
    patient.submit([URL])
    burner = "while True: sum(range(10000))"
    burners = [subprocess.Popen([sys.executable, "-c", burner]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        worker = start_worker(server.url, tmp_path / "1.journal", "--busy", "--work-ms", 9000, "--lease-ms", 3000)
        swept = set()
        while worker.poll() is None:
            swept.add(sweep(patient))
    finally:
        for process in burners:
            process.kill()
            process.wait()

    assert swept == {Swept()}
    assert journal_of(tmp_path) == {URL: 1}
    assert_all_ended(patient, [URL])


def test_13_a_worker_killed_in_mid_work_loses_its_lease_and_nothing_else(
    server: Valkey, patient: Queue, tmp_path: Path
) -> None:
    patient.submit([URL])
    worker = start_worker(
        server.url,
        tmp_path / "1.journal",
        "--tell",
        "--lease-ms",
        300,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert worker.stdout is not None
    with worker:
        assert worker.stdout.readline() == "begun\n"
        worker.kill()
    assert_nothing_lost(patient, [URL])

    until(lambda: sweep(patient).returned)
    assert start_worker(server.url, tmp_path / "2.journal").wait(30) == 0

    assert record_in(patient, Place.RESULT)["attempt"] == 2
    assert_all_ended(patient, [URL])
