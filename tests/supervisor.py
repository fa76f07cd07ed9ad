"""
Airflow's supervisor as a task sees it, at the border of our code.

It keeps runs in a dict and gives Airflow's own answers; what it leaves out: it runs nothing. That Airflow
understands what is sent, the whole-stack test shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import (
    DagResult,
    DagRunResult,
    ErrorResponse,
    GetDag,
    GetDagRun,
    OKResponse,
    TriggerDagRun,
)


def some(**fields: Any) -> Any:
    """A few fields of an answer: the ones that we read."""
    return fields


def not_found() -> AirflowRuntimeError:
    """What asking for something unknown raises."""
    return AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail={"status_code": 404}))


class Supervisor:
    """
    Answers a task's messages.

    :param before_trigger: called with each request to start a run; may raise, as a lost connection would.
    """

    def __init__(self, before_trigger: Callable[[TriggerDagRun], None] | None = None) -> None:
        self.paused: dict[str, bool] = {"worker": False}
        self.runs: dict[str, dict[str, Any]] = {}
        self.collides = False
        self.sent: list[Any] = []
        self.before_trigger = before_trigger

    def send(self, message: Any) -> Any:
        """As `SUPERVISOR_COMMS.send`."""
        self.sent.append(message)
        if isinstance(message, GetDag):
            if message.dag_id not in self.paused:
                raise not_found()
            return DagResult.model_construct(**some(dag_id=message.dag_id, is_paused=self.paused[message.dag_id]))
        if isinstance(message, GetDagRun):
            if message.run_id not in self.runs:
                raise not_found()
            return DagRunResult.model_construct(**some(dag_id=message.dag_id, run_id=message.run_id))
        return self._trigger(message)

    def _trigger(self, message: TriggerDagRun) -> Any:
        if self.before_trigger:
            self.before_trigger(message)
        if message.dag_id not in self.paused:
            raise not_found()
        if self.collides or message.run_id in self.runs:
            return ErrorResponse(error=ErrorType.DAGRUN_ALREADY_EXISTS)
        self.runs[message.run_id] = message.conf or {}
        return OKResponse(ok=True)
