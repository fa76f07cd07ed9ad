"""Faults 14, 15, 18, 25, 43 and 45: real Airflow, Celery workers on two hosts, and all that can die there."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.downloading.verifying import sha256
from include.ytdlp_ops.queues.keys import Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.resting import resting
from tests.faults.fleets import HOSTS, Fleet
from tests.faults.outcomes import assert_nothing_lost, until
from tests.queueing import url_of

AUTH = "ytdlp_ops_v02_worker_per_url_auth"
DL = "ytdlp_ops_v02_worker_per_url_dl"
DL_DISPATCHER = "ytdlp_ops_v02_dispatcher_dl"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with Fleet(tmp_path_factory.mktemp("fleet") / "local") as fleet:
        fleet.wait_ready()
        yield fleet


@pytest.fixture
def fleet(started: Fleet) -> Iterator[Fleet]:
    """The fleet with empty queues; afterwards nothing runs and nothing is left behind."""
    started.client.flushdb()
    yield started
    dl = started.queue(Stage.DL)
    until(lambda: dl.depths()["progress"] == 0 and dl.client.zcard(dl.keys.leases) == 0, 60)


def is_done(place: str, _record: dict[str, Any]) -> bool:
    return place == "result"


def assert_done(fleet: Fleet, *item_ids: str, seconds: float = 120) -> list[dict[str, Any]]:
    """Each has one record, in result, and the published file is what publish says it is."""
    records = [fleet.record(item_id, is_done, seconds) for item_id in item_ids]
    publish = fleet.queue(Stage.PUBLISH)
    for record in records:
        published = published_of(publish, record["group"])
        assert sha256(Path(published["path"])) == published["sha256"]
    assert_nothing_lost(fleet.queue(Stage.DL), item_ids)
    return records


def published_of(publish: Queue, video: str) -> dict[str, Any]:
    until(lambda: str((publish.find(video) or ("",))[0]) == "result", 60)
    return (publish.find(video) or ("", {}))[1]


def supervisor_of(fleet: Fleet, record: dict[str, Any]) -> int:
    """The Celery child that runs a record's task: it has become Airflow's supervisor."""
    (instance,) = fleet.ask("GET", f"/dags/{record['dag_id']}/dagRuns/{record['run_id']}/taskInstances")[
        "task_instances"
    ]
    name = f"airflow supervisor: {instance['id']}"
    return next(pid for pid, command in fleet.processes(record["host"]).items() if command == name)


def state_of(fleet: Fleet, record: dict[str, Any]) -> str:
    return str(fleet.ask("GET", f"/dags/{record['dag_id']}/dagRuns/{record['run_id']}")["state"])


def test_14_a_killed_celery_child_takes_its_download_with_it_and_the_item_goes_on_elsewhere(
    fleet: Fleet, seed: int
) -> None:
    item_id = fleet.submit(f"child-{seed:05}", "long")
    record = fleet.running(item_id)
    child = supervisor_of(fleet, record)
    (task,) = Path(f"/proc/{child}/task/{child}/children").read_text().split()

    with os.fdopen(os.pidfd_open(int(task))) as ended:
        os.kill(child, signal.SIGKILL)
        _await_end(ended.fileno())

    (done,) = assert_done(fleet, item_id)
    assert (done["attempt"], done["run_id"] != record["run_id"]) == (1, True)


def _await_end(descriptor: int) -> None:
    import select

    ready, _, _ = select.select([descriptor], [], [], 20)
    assert ready, "the task outlived its supervisor"


def test_15_a_lost_host_loses_no_item(fleet: Fleet, seed: int) -> None:
    items = [fleet.submit(f"host-{seed:04}-{at}", "long") for at in range(4)]
    records = [fleet.running(item_id) for item_id in items]
    lost = random.Random(seed).choice(HOSTS)

    fleet.kill(lost)

    done = assert_done(fleet, *items)
    fleet.start_worker(lost)
    for before, after in zip(records, done, strict=True):
        assert after["attempt"] == (2 if before["host"] == lost else 1), before["host"]
        assert after["host"] != lost


def test_18_a_run_that_is_marked_failed_hands_its_item_back(fleet: Fleet) -> None:
    item_id = fleet.submit("marked-0001", "long")
    record = fleet.running(item_id)

    fleet.ask("PATCH", f"/dags/{DL}/dagRuns/{record['run_id']}", json={"state": "failed"})

    (done,) = assert_done(fleet, item_id)
    assert (done["attempt"], done["run_id"] != record["run_id"]) == (1, True)


def test_18_a_run_that_is_cleared_goes_on_as_another_and_skips_itself(fleet: Fleet) -> None:
    item_id = fleet.submit("cleared-001", "long")
    record = fleet.running(item_id)

    fleet.ask("POST", f"/dags/{DL}/dagRuns/{record['run_id']}/clear", json={"dry_run": False})

    (done,) = assert_done(fleet, item_id)
    assert done["run_id"] != record["run_id"]
    until(lambda: state_of(fleet, record) not in {"queued", "running"}, 90)
    (instance,) = fleet.ask("GET", f"/dags/{DL}/dagRuns/{record['run_id']}/taskInstances")["task_instances"]
    assert instance["state"] == "skipped"


@pytest.mark.parametrize(("dag_id", "place"), [("run_timed", "inbox"), ("task_timed", "fail")])
def test_18_a_run_that_times_out_loses_no_item(fleet: Fleet, dag_id: str, place: str) -> None:
    fleet.ask("PATCH", f"/dags/{DL_DISPATCHER}", json={"is_paused": True})
    item_id = fleet.submit(f"{dag_id.replace('_', '')[:7]}-001", "long")
    queue = fleet.queue(Stage.DL)
    until(lambda: queue.depths()["inbox"], 60)

    fleet.trigger(dag_id)
    record = fleet.running(item_id)
    until(lambda: queue.depths()["progress"] == 0, 60)

    assert queue.depths()[place] == 1
    if place == "fail":
        _, failed = queue.find(item_id) or ("", {})
        assert (failed["code"], failed["retryable"], failed["run_id"]) == ("timed_out", True, record["run_id"])
    fleet.ask("PATCH", f"/dags/{DL_DISPATCHER}", json={"is_paused": False})
    assert_done(fleet, item_id)


def test_24_a_host_that_cannot_write_takes_nothing_until_a_person_says_so(fleet: Fleet) -> None:
    queue, (sick, well) = fleet.queue(Stage.DL), HOSTS
    fleet.kill(sick)
    fleet.start_worker(sick, YTDLP_OPS_STAGING_DIR="/proc/1")  # nothing can be written there, not even by root
    first: list[str] = []
    while not resting(queue):
        first.append(fleet.submit(f"sick-{len(first):06}", "quick"))
        fleet.record(first[-1], lambda place, record: place == "result" or "released_because" in record)
    released = queue.counters()["released"]

    later = [fleet.submit(f"later-{at:05}", "quick") for at in range(8)]

    assert {record["host"] for record in assert_done(fleet, *first, *later)} == {well}
    assert queue.counters()["released"] == released
    (rest,) = resting(queue)
    assert (rest.host, rest.node, rest.celery_queue) == (sick, f"celery@{sick}", "ytdlp-dl")
    assert "local_io" in rest.reason
    fleet.kill(sick)
    fleet.start_worker(sick)
    queue.resume()
    until(lambda: not resting(queue), 90)  # the sweeper has told its Celery worker


def test_25_a_delivery_of_a_running_task_changes_nothing(fleet: Fleet) -> None:
    items = [fleet.submit(f"again-{at:05}", "long") for at in range(4)]  # 22 s; Celery delivers again after 5 s
    records = [fleet.running(item_id) for item_id in items]
    logs = [fleet.folder.log(host) for host in HOSTS]
    until(lambda: any("ignoring redelivered message" in log.read_text() for log in logs), 60)

    done = assert_done(fleet, *items)

    assert [each["attempt"] for each in done] == [1] * 4
    assert [each["run_id"] for each in done] == [each["run_id"] for each in records]


@pytest.mark.parametrize("executor", ["CeleryExecutor", "LocalExecutor"])
def test_43_a_killed_scheduler_loses_no_item(fleet: Fleet, seed: int, executor: str) -> None:
    fleet.restart_scheduler(executor)
    items = [
        fleet.submit(f"{executor[:5].lower()}-{seed:02}{at:03}", "long" if at < 3 else "quick") for at in range(12)
    ]
    for item_id in items[:3]:
        fleet.running(item_id)

    fleet.kill("scheduler")
    fleet.start_scheduler("CeleryExecutor")

    done = assert_done(fleet, *items)
    assert max(each["attempt"] for each in done) <= 2


def test_45_2_000_runs_of_one_worker_dag_delay_5_of_another_by_less_than_a_minute(fleet: Fleet) -> None:
    fleet.ask("PATCH", f"/dags/{AUTH}", json={"is_paused": True})
    with ThreadPoolExecutor(4) as together:
        list(together.map(lambda at: fleet.trigger(AUTH, f"pile-{at}"), range(2000)))
    fleet.ask("PATCH", f"/dags/{AUTH}", json={"is_paused": False})
    until(lambda: fleet.count(AUTH, "success", "failed") > 20, 120)

    v01 = fleet.queue(Stage.V01)
    videos = [url_of(number) for number in range(5)]
    fleet.client.rpush(v01.keys.inbox, *(json.dumps({"url": url, "profile": "quick"}) for url in videos))

    until(lambda: all("started_at" in (v01.find(url) or ("", {}))[1] for url in videos), 60)
    assert fleet.count(AUTH, "queued", "running") > 1000
