"""
Starting DAG runs from within a task: the only place that touches the Task SDK's channel to its supervisor.

Airflow's own way (an exception, one run a task) costs a whole task for every URL. This interface is internal
to Airflow; `tests/dags/test_airflow_runs.py` fails loudly when it changes.
"""

from __future__ import annotations

import hashlib
from typing import Any

from include.ytdlp_ops.errors import RunNotStarted


def run_id_of(stage: str, item_id: str, attempt: int, token: str) -> str:
    """
    The run id of one attempt at one item: a URL path segment, the same again for the same claim.

    The attempt and the token are part of it: a requeued item would be taken for one that ran already.
    """
    digest = hashlib.sha256(item_id.encode()).hexdigest()[:16]
    return f"{stage}-{digest}-{attempt}-{token[:8]}"


def why_not_startable(dag_id: str) -> str | None:
    """Why runs of a DAG would not start: it is paused, or Airflow does not know it; nothing if they would."""
    from airflow.sdk.exceptions import AirflowRuntimeError
    from airflow.sdk.execution_time.comms import DagResult, GetDag
    from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS

    try:
        found = SUPERVISOR_COMMS.send(GetDag(dag_id=dag_id))
    except AirflowRuntimeError as error:
        return f"Airflow does not know the DAG {dag_id!r} ({error}): look for its import error in the UI"
    if isinstance(found, DagResult) and found.is_paused:
        return f"the DAG {dag_id!r} is paused: unpause it in the UI or by `airflow dags unpause {dag_id}`"
    return None


def trigger_run(dag_id: str, run_id: str, conf: dict[str, Any]) -> bool:
    """
    Start one run.

    "Already exists" is believed only when the run itself is found: the same answer also means another run with
    the same logical date.

    :returns: False if this very run exists already.
    :raises RunNotStarted: if there is no such run afterwards.
    """
    from airflow.sdk import timezone
    from airflow.sdk.exceptions import AirflowRuntimeError
    from airflow.sdk.execution_time.comms import ErrorResponse, TriggerDagRun
    from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS

    request = TriggerDagRun(
        dag_id=dag_id,
        run_id=run_id,
        conf=conf,
        logical_date=None,
        run_after=timezone.utcnow(),
        reset_dag_run=False,
    )
    try:
        answer = SUPERVISOR_COMMS.send(request)
    except AirflowRuntimeError as error:
        raise RunNotStarted(f"run {run_id!r} of {dag_id!r} was not started: {error}") from None
    if not isinstance(answer, ErrorResponse):
        return True
    if run_exists(dag_id, run_id):
        return False
    raise RunNotStarted(f"run {run_id!r} of {dag_id!r} was not started: {answer.error.value}")


def run_exists(dag_id: str, run_id: str) -> bool:
    """Does Airflow have this run?"""
    from airflow.sdk.exceptions import AirflowRuntimeError
    from airflow.sdk.execution_time.comms import DagRunResult, GetDagRun
    from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS

    try:
        return isinstance(SUPERVISOR_COMMS.send(GetDagRun(dag_id=dag_id, run_id=run_id)), DagRunResult)
    except AirflowRuntimeError:
        return False
