"""The Task SDK's channel to its supervisor is internal to Airflow: this is what fails when it changes."""

from __future__ import annotations

import re

import pytest
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import GetDag, GetDagRun, TriggerDagRun

from include.ytdlp_ops.errors import RunNotStarted
from include.ytdlp_ops.hooks import airflow_runs
from tests.supervisor import Supervisor


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> Supervisor:
    fake = Supervisor()
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", fake, raising=False)
    return fake


def test_a_run_is_triggered_without_a_logical_date(supervisor: Supervisor) -> None:
    assert airflow_runs.trigger_run("worker", "run-1", {"id": "x"}) is True

    (sent,) = supervisor.sent
    assert isinstance(sent, TriggerDagRun)
    assert sent.logical_date is None
    assert (sent.dag_id, sent.run_id, sent.conf, sent.reset_dag_run) == ("worker", "run-1", {"id": "x"}, False)


def test_already_exists_is_believed_when_the_run_is_there(supervisor: Supervisor) -> None:
    airflow_runs.trigger_run("worker", "run-1", {})

    assert airflow_runs.trigger_run("worker", "run-1", {}) is False
    assert isinstance(supervisor.sent[-1], GetDagRun)


def test_already_exists_is_not_believed_when_the_run_is_not_there(supervisor: Supervisor) -> None:
    supervisor.collides = True

    with pytest.raises(RunNotStarted, match="run-1"):
        airflow_runs.trigger_run("worker", "run-1", {})


def test_an_unknown_dag_is_said_to_be_unknown(supervisor: Supervisor) -> None:
    supervisor.paused.clear()

    with pytest.raises(RunNotStarted, match="worker"):
        airflow_runs.trigger_run("worker", "run-1", {})
    assert "does not know" in (airflow_runs.why_not_startable("worker") or "")


def test_a_paused_dag_would_wait_for_ever(supervisor: Supervisor) -> None:
    assert airflow_runs.why_not_startable("worker") is None

    supervisor.paused["worker"] = True

    assert "is paused" in (airflow_runs.why_not_startable("worker") or "")


def test_the_messages_have_the_fields_that_we_fill() -> None:
    filled = {"dag_id", "run_id", "conf", "logical_date", "run_after", "reset_dag_run"}

    assert filled <= set(TriggerDagRun.model_fields)
    assert {"dag_id", "run_id"} <= set(GetDagRun.model_fields)
    assert "dag_id" in GetDag.model_fields


def test_a_run_id_is_a_path_segment_and_differs_by_attempt_and_token() -> None:
    long = "https://example.org/" + "a/b?c=%20#" * 100

    ids = {
        airflow_runs.run_id_of("auth", long, 1, "a" * 32),
        airflow_runs.run_id_of("auth", long, 2, "a" * 32),
        airflow_runs.run_id_of("auth", long, 2, "b" * 32),
    }

    assert len(ids) == 3
    assert all(re.fullmatch(r"[A-Za-z0-9-]{1,250}", run_id) for run_id in ids)
