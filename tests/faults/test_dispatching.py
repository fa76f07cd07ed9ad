"""The dispatcher on a real Valkey: what it claims is started, or handed back (faults 1, 2, 4, 5, 8, 9, 12)."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from airflow.sdk.execution_time import task_runner

from include.ytdlp_ops.operators.dispatching import ClaimItemsOperator
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.reading import pages
from tests.faults.outcomes import assert_nothing_lost
from tests.servers import Valkey
from tests.supervisor import Supervisor

if TYPE_CHECKING:
    from redis import Redis


class Killed(BaseException):
    """The process dies here: nothing after it runs, as after kill -9."""


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch, valkey: Valkey) -> Supervisor:
    fake = Supervisor()
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", fake, raising=False)
    monkeypatch.setenv("AIRFLOW_CONN_YTDLP_OPS_REDIS", f"redis://127.0.0.1:{valkey.port}/0")
    return fake


@pytest.fixture
def queue(redis_client: Redis) -> Queue:
    return Queue(redis_client, Stage.AUTH)


def dispatch(run_id: str = "run-1", *, batch: int = 64, max_in_flight: int = 16) -> dict[str, int]:
    operator = ClaimItemsOperator(
        task_id="claim_items",
        stage="auth",
        worker_dag_id="worker",
        batch=batch,
        max_in_flight=max_in_flight,
        queue_base="",
    )
    context: Any = {"ti": SimpleNamespace(run_id=run_id, dag_id="dispatcher")}
    return operator.execute(context)


def videos(count: int) -> list[str]:
    return [f"https://www.youtube.com/watch?v={number:011d}" for number in range(count)]


def in_flight(queue: Queue) -> int:
    return queue.depths()["progress"]


def test_each_claimed_item_gets_one_run_with_its_token(queue: Queue, supervisor: Supervisor) -> None:
    queue.submit(videos(3))

    counted = dispatch()

    assert counted == {"triggered": 3, "dropped": 0, "refused": 0, "waiting": 0}
    confs = list(supervisor.runs.values())
    assert [conf["id"] for conf in confs] == videos(3)
    for conf in confs:
        assert queue.begin(conf["id"], conf["token"], host="here")["state"] == "running"


def test_12_no_more_are_claimed_than_may_be_in_flight(queue: Queue, supervisor: Supervisor) -> None:
    queue.submit(videos(100))

    for run in range(5):
        dispatch(f"run-{run}", max_in_flight=16)

    assert in_flight(queue) == len(supervisor.runs) == 16
    assert queue.depths()["inbox"] == 84


@pytest.mark.parametrize("state", ["paused", "missing"])
def test_08_nothing_is_claimed_while_the_worker_dag_could_not_run(
    queue: Queue, supervisor: Supervisor, state: str
) -> None:
    queue.submit(videos(3))
    supervisor.paused = {"worker": True} if state == "paused" else {}

    with pytest.raises(AirflowSkipException, match="worker"):
        dispatch()

    assert queue.depths()["inbox"] == 3


def test_a_paused_or_open_stage_claims_nothing_and_says_so(
    queue: Queue, supervisor: Supervisor, caplog: pytest.LogCaptureFixture
) -> None:
    queue.submit(videos(3))
    queue.pause("the disk is being changed")

    dispatch()

    assert queue.depths()["inbox"] == 3
    assert supervisor.runs == {}


def test_09_an_api_that_goes_away_in_mid_batch_hands_the_rest_back(queue: Queue, supervisor: Supervisor) -> None:
    queue.submit(videos(10))

    def lost_at_the_fourth(_: Any) -> None:
        if len(supervisor.runs) == 3:
            raise ConnectionError("the API server is gone")

    supervisor.before_trigger = lost_at_the_fourth
    with pytest.raises(AirflowFailException, match="7 claimed items were handed back"):
        dispatch()

    assert in_flight(queue) == 3
    supervisor.before_trigger = None
    dispatch("run-2")
    assert [conf["id"] for conf in supervisor.runs.values()] == videos(10)


@pytest.mark.parametrize("started", [0, 2])
def test_01_02_a_dispatcher_killed_before_or_in_mid_batch_takes_up_the_same_claim(
    queue: Queue, supervisor: Supervisor, started: int
) -> None:
    queue.submit(videos(5))

    def killed(_: Any) -> None:
        if len(supervisor.runs) == started:
            raise Killed

    supervisor.before_trigger = killed
    with pytest.raises(Killed):
        dispatch("run-1")
    supervisor.before_trigger = None
    dispatch("run-1")  # Airflow runs the same task instance again

    assert [conf["id"] for conf in supervisor.runs.values()] == videos(5)
    for conf in supervisor.runs.values():
        queue.begin(conf["id"], conf["token"], host="here")


def test_01_a_killed_dispatchers_items_come_back_when_its_lease_is_over(
    queue: Queue, supervisor: Supervisor
) -> None:
    from include.ytdlp_ops.queues.recovery import sweep

    queue.submit(videos(2))

    def killed(_: Any) -> None:
        raise Killed

    supervisor.before_trigger = killed
    with pytest.raises(Killed):
        dispatch("run-1")
    queue.client.zadd(queue.keys.leases, dict.fromkeys(videos(2), 1))

    assert sweep(queue).returned == 2
    supervisor.before_trigger = None
    dispatch("run-2")
    assert [(conf["id"], conf["attempt"]) for conf in supervisor.runs.values()] == [(url, 2) for url in videos(2)]


def test_04_a_lost_reply_of_the_trigger_is_no_second_run(queue: Queue, supervisor: Supervisor) -> None:
    queue.submit(videos(1))
    dispatch("run-1")

    dispatch("run-1")  # "already exists", and it does

    assert len(supervisor.runs) == 1
    assert in_flight(queue) == 1


def test_05_already_exists_without_a_run_hands_the_item_back(queue: Queue, supervisor: Supervisor) -> None:
    queue.submit(videos(1))
    supervisor.collides = True

    with pytest.raises(AirflowFailException, match="handed back"):
        dispatch()

    assert queue.depths()["inbox"] == 1
    assert in_flight(queue) == 0


def test_11_dispatchers_told_to_end_at_random_200_times_lose_nothing(server: Valkey, patient: Queue) -> None:
    submitted = videos(2000)
    patient.submit(submitted)

    subprocess.run([sys.executable, "-m", "tests.faults.dispatchers", server.url, "200"], check=True, timeout=300)

    started: dict[bytes, bytes] = patient.client.hgetall("runs")  # type: ignore[assignment]  # typed as awaitable too
    claimed = {item_id for page in pages(patient, Place.PROGRESS) for item_id, _ in page}
    assert len(started) > 200, "the dispatchers did something"
    assert claimed <= set(submitted)
    assert patient.depths()["inbox"] + len(claimed) == len(submitted)
    assert_nothing_lost(patient, submitted)
    for url, conf in started.items():
        token = json.loads(conf)["token"]
        if (patient.find(url.decode()) or (None, {}))[1].get("token") == token:
            assert patient.begin(url.decode(), token, host="here")["state"] == "running"


def test_the_wake_key_goes_when_the_work_is_claimed_and_stays_when_it_is_not(
    queue: Queue, supervisor: Supervisor
) -> None:
    queue.submit(videos(2))
    queue.client.set(queue.keys.wake, "1")

    dispatch("run-1", max_in_flight=1)
    assert queue.client.exists(queue.keys.wake) == 0

    queue.client.set(queue.keys.wake, "1")
    dispatch("run-2", max_in_flight=1)
    assert queue.client.exists(queue.keys.wake) == 1
