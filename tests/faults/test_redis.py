"""Redis that dies, stalls, fills up, turns read-only, forgets scripts, or is the wrong one."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from include.ytdlp_ops.errors import QueueError, UnsafeRedis, WrongKeyType
from include.ytdlp_ops.queues.connecting import address_of, connect, open_client
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.recovery import sweep
from include.ytdlp_ops.queues.scripts import Scripts
from tests.faults.outcomes import assert_all_ended, assert_nothing_lost, journal_of, sweep_until_drained, until
from tests.faults.workers import start_worker
from tests.proxies import Proxy
from tests.queueing import URL, begun, everything, url_of, where
from tests.servers import Valkey

SPIN = "local e = redis.call('TIME')[1] + 2 while tonumber(redis.call('TIME')[1]) < e do end"


def run(server: Valkey, *command: str) -> None:
    """One command from a client of its own."""
    client = server.client(socket_timeout=10)
    client.execute_command(*command)  # type: ignore[no-untyped-call]  # redis-py leaves it untyped
    client.close()


def later(action: Callable[[], object], seconds: float) -> threading.Timer:
    """Do something while the test goes on."""
    timer = threading.Timer(seconds, action)
    timer.start()
    return timer


def test_33_killed_and_restarted_with_its_aof_under_load(server: Valkey, patient: Queue, tmp_path: Path) -> None:
    first, second = ([url_of(number) for number in range(start, start + 600)] for start in (0, 600))
    patient.submit(first)
    workers = [start_worker(server.url, tmp_path / f"{number}.journal", "--batch", 5) for number in range(3)]
    until(lambda: patient.depths()["result"] > 100)

    server.stop(signal.SIGKILL)
    restart = later(server.start, 0.5)
    patient.submit(second)  # asked while it is down
    restart.join()
    sweep_until_drained(patient)
    for worker in workers:
        assert worker.wait(60) == 0

    assert_all_ended(patient, first + second)


def test_34_restarted_from_an_older_copy_of_its_aof(server: Valkey, patient: Queue, tmp_path: Path) -> None:
    urls = [url_of(number) for number in range(400)]
    patient.submit(urls)
    worker = start_worker(server.url, tmp_path / "1.journal", "--batch", 5)
    until(lambda: patient.depths()["result"] > 100)
    older = tmp_path / "older"
    shutil.copytree(server.directory, older)
    until(lambda: patient.depths()["result"] > 200)

    server.stop(signal.SIGKILL)
    shutil.rmtree(server.directory)
    shutil.copytree(older, server.directory)
    server.start()
    sweep_until_drained(patient)

    assert worker.wait(60) == 0
    assert_all_ended(patient, urls)
    done = journal_of(tmp_path)
    assert set(done) == set(urls)
    assert max(done.values()) <= 2


def test_36_down_for_longer_than_a_step_waits_and_back(server: Valkey, patient: Queue) -> None:
    record = begun(patient)
    server.stop(signal.SIGKILL)
    impatient = Queue(patient.client, "auth", patience_seconds=0.2, finish_patience_seconds=30)

    with pytest.raises(QueueError, match="does not answer"):
        impatient.heartbeat(record)
    restart = later(server.start, 2)
    impatient.finish(record, Place.RESULT, {})  # what was made is not given up that soon

    restart.join()
    assert_all_ended(patient, [URL])


def test_36_down_for_60_s_under_running_work(server: Valkey, patient: Queue, tmp_path: Path) -> None:
    """What runs is finished late, not lost: its lease ended in the outage, and nobody was there to take it."""
    urls = [url_of(number) for number in range(6)]
    patient.submit(urls)
    workers = [
        start_worker(server.url, tmp_path / f"{number}.journal", "--work-ms", 3000, "--lease-ms", 20_000)
        for number in range(3)
    ]
    until(lambda: patient.depths()["progress"] == 3)

    server.stop(signal.SIGKILL)
    restart = later(server.start, 60)
    restart.join()
    sweep_until_drained(patient)

    for worker in workers:
        assert worker.wait(60) == 0
    assert_all_ended(patient, urls)


def paused(server: Valkey) -> None:
    run(server, "CLIENT", "PAUSE", "10000")


def computing(server: Valkey) -> None:
    run(server, "EVAL", SPIN, "0")


def asleep(server: Valkey) -> None:
    server.freeze(10)  # as DEBUG SLEEP 10, which servers forbid by default


@pytest.mark.parametrize("stall", [paused, computing, asleep])
def test_36_a_server_that_stalls_is_asked_again(
    server: Valkey, patient: Queue, stall: Callable[[Valkey], None]
) -> None:
    urls = [url_of(number) for number in range(20)]
    patient.submit(urls)
    hasty = address_of(f"{server.url}?socket_timeout=0.3")
    client = open_client(hasty)
    queue = Queue(client, "auth", patience_seconds=30)
    stalling = threading.Thread(target=stall, args=(server,))
    queue.depths()
    stalling.start()

    claimed = [record for _ in range(4) for record in queue.claim(5).records]
    stalling.join()

    assert [record["url"] for record in claimed] == urls
    assert_nothing_lost(patient, urls)
    client.close()


@pytest.mark.parametrize("flags", [True, False], ids=["flags", "as before 7.0"])
def test_37_out_of_memory_claiming_stops_and_ending_works(server: Valkey, patient: Queue, flags: bool) -> None:
    urls = [url_of(number) for number in range(10)]
    patient.submit(urls)
    records = patient.claim(5).records
    running = [patient.begin(record["id"], record["token"], host="x") for record in records]
    patient.steps = Scripts(patient.client, 0)
    patient.steps.knows_flags = patient.steps.knows_flags and flags  # without: what servers before 7.0 are sent
    patient.client.zadd(patient.keys.leases, {running[4]["id"]: 1})
    patient.client.config_set("maxmemory", 1)
    before = patient.depths()

    for refused in (lambda: patient.claim(5), lambda: patient.submit(["https://example.org/"])):
        with pytest.raises(QueueError, match=r"out of memory.*raise maxmemory"):
            refused()
    assert patient.depths() == before

    patient.heartbeat(running[0])
    patient.finish(running[0], Place.RESULT, {})
    patient.finish(running[1], Place.FAIL, {"retryable": True}, due_in_ms=60_000)
    patient.release(running[2])
    patient.cancel(running[3]["id"])
    assert sweep(patient).returned == 1
    assert_nothing_lost(patient, urls)


def test_38_read_only_and_back(server: Valkey, patient: Queue) -> None:
    patient.submit([URL])
    run(server, "REPLICAOF", "127.0.0.1", "1")
    back = later(lambda: run(server, "REPLICAOF", "NO", "ONE"), 0.5)

    (record,) = patient.claim(1).records

    back.join()
    patient.finish(record, Place.RESULT, {})
    assert_all_ended(patient, [URL])


def test_39_scripts_flushed_in_mid_run(patient: Queue) -> None:
    patient.submit([URL])
    patient.client.script_flush()
    (record,) = patient.claim(1).records
    patient.client.script_flush()
    record = patient.begin(URL, record["token"], host="x")
    patient.client.script_flush()

    patient.finish(record, Place.RESULT, {})

    assert_all_ended(patient, [URL])


def reset_often(server: Valkey, patient: Queue, folder: Path, seed: int, total: int) -> None:
    urls = [url_of(number) for number in range(total)]
    with Proxy(server.port, reset_share=0.01, seed=seed) as proxy:
        url = f"redis://127.0.0.1:{proxy.port}/0"
        client = open_client(address_of(url))
        Queue(client, "auth", patience_seconds=60).submit(urls)
        workers = [
            start_worker(url, folder / f"{n}.journal", "--batch", 20, "--lease-ms", 30_000) for n in range(3)
        ]
        for worker in workers:
            assert worker.wait(1200) == 0
        assert proxy.lost > total / 200
        client.close()
    assert set(journal_of(folder).values()) == {1}
    assert_all_ended(patient, urls)


def test_40_one_request_in_a_hundred_reset(server: Valkey, patient: Queue, tmp_path: Path, seed: int) -> None:
    reset_often(server, patient, tmp_path, seed, total=500)


@pytest.mark.slow
def test_40_one_request_in_a_hundred_reset_50_000_items(
    server: Valkey, patient: Queue, tmp_path: Path, seed: int
) -> None:
    reset_often(server, patient, tmp_path, seed, total=50_000)


@pytest.mark.parametrize("key", ["inbox", "progress", "result", "counters"])
def test_41_a_key_of_the_wrong_type(patient: Queue, key: str) -> None:
    name = getattr(patient.keys, key)
    patient.client.set(name, "another program's")
    before = everything(patient.client)

    for step in (lambda: patient.submit([URL]), lambda: patient.claim(1)):
        with pytest.raises(WrongKeyType, match=f"{name} is a string.*RENAME"):
            step()

    assert everything(patient.client) == before


@pytest.mark.parametrize(
    ("option", "value", "way_out"),
    [
        ("cluster-enabled", "yes", "use a single server"),
        ("maxmemory-policy", "allkeys-lru", "CONFIG SET maxmemory-policy noeviction"),
        ("maxmemory-policy", "volatile-ttl", "CONFIG SET maxmemory-policy noeviction"),
    ],
)
def test_42_a_server_that_would_lose_items_is_refused_at_start(
    tmp_path: Path, option: str, value: str, way_out: str
) -> None:
    server = Valkey(tmp_path / "redis", **{option: value})
    while server.port > 55_000:  # a cluster's second port is 10,000 higher
        server = Valkey(tmp_path / "redis", **{option: value})
    with server, pytest.raises(UnsafeRedis, match=way_out):
        connect(address_of(server.url))


def test_42_a_server_that_is_not_there_is_told_with_its_address(tmp_path: Path) -> None:
    server = Valkey(tmp_path / "redis")

    with pytest.raises(QueueError, match=f"127.0.0.1:{server.port}/0 does not answer"):
        connect(address_of(server.url))


def test_a_wrong_password_is_told_at_once(server: Valkey, patient: Queue) -> None:
    patient.client.config_set("requirepass", "right")
    client = open_client(address_of(server.url.replace("redis://", "redis://:wrong@")))

    with pytest.raises(QueueError, match="invalid username-password"):
        Queue(client, "auth", patience_seconds=60).depths()

    client.close()


def test_a_busy_server_is_asked_again(server: Valkey, patient: Queue) -> None:
    patient.submit([URL])
    patient.client.config_set("lua-time-limit", 10)
    endless = threading.Thread(target=run, args=(server, "EVAL", SPIN, "0"))
    endless.start()

    (record,) = patient.claim(1).records

    endless.join()
    assert record["url"] == URL
    assert where(patient) == ["progress"]
