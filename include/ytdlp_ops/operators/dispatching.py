"""The task of every dispatcher DAG: claim what can start, and start it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from include.ytdlp_ops.hooks.airflow_runs import run_id_of, trigger_run, why_not_startable
from include.ytdlp_ops.hooks.celery_workers import own_node
from include.ytdlp_ops.hooks.redis_queue import DEFAULT_REDIS_CONN_ID, RedisQueueHook

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.ytdlp_ops.queues.queue import Queue
    from include.ytdlp_ops.queues.records import Record


class ClaimItemsOperator(BaseOperator):
    """
    Claim items from an inbox and trigger one worker run for each.

    Claims at most ``min(batch, max_in_flight - items in progress)``; the backlog stays in Redis. An item whose
    run could not be started is released at once.

    :param stage: the stage to claim for. (templated)
    :param worker_dag_id: the DAG to trigger.
    :param batch: most items to claim in one run. (templated)
    :param max_in_flight: most items in progress at a time. (templated)
    :param queue_base: the installation, if not the default one. (templated)
    :param redis_conn_id: where the queue is.
    """

    template_fields: Sequence[str] = ("stage", "batch", "max_in_flight", "queue_base")

    def __init__(
        self,
        *,
        stage: str,
        worker_dag_id: str,
        batch: int | str = "{{ params.batch }}",
        max_in_flight: int | str = "{{ params.max_in_flight }}",
        queue_base: str = "{{ params.queue_base or '' }}",
        redis_conn_id: str = DEFAULT_REDIS_CONN_ID,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.stage = stage
        self.worker_dag_id = worker_dag_id
        self.batch = batch
        self.max_in_flight = max_in_flight
        self.queue_base = queue_base
        self.redis_conn_id = redis_conn_id

    def execute(self, context: Context) -> dict[str, int]:
        """Claim and trigger; returns how many were triggered, dropped as copies, refused and still wait."""
        from include.ytdlp_ops.settings import Settings

        if reason := why_not_startable(self.worker_dag_id):
            raise AirflowSkipException(f"nothing was claimed: {reason}")
        queue = RedisQueueHook(self.redis_conn_id).get_queue(self.stage, self.queue_base)
        depths = queue.depths()
        room = min(int(self.batch), int(self.max_in_flight) - depths["progress"])
        triggered = dropped = refused = 0
        closed, run_id = "", context["ti"].run_id
        host = None if own_node() else Settings.from_env().host  # Celery may run the items anywhere
        while triggered < room:
            claim = queue.claim(room - triggered, request_id=f"{run_id}:{triggered}", host=host)
            dropped, refused, closed = dropped + claim.dropped, refused + claim.refused, claim.closed
            if not claim.records:
                break
            self._trigger_all(queue, claim.records)
            triggered += len(claim.records)
        waiting = queue.depths()["inbox"]
        if triggered or not waiting:
            queue.client.delete(queue.keys.wake)
        self.log.info(
            "stage %s: %d triggered, %d copies dropped, %d refused, %d wait, room for %d; %s",
            *(self.stage, triggered, dropped, refused, waiting, room, closed or queue.circuit()),
        )
        return {"triggered": triggered, "dropped": dropped, "refused": refused, "waiting": waiting}

    def _trigger_all(self, queue: Queue, records: Sequence[Record]) -> None:
        """Start a run for each; at the first that can't be, hand it and the rest back."""
        for at, record in enumerate(records):
            try:
                self._trigger(record)
            except Exception as error:  # the channel raises what it likes; no claimed item may stay behind
                for left in reversed(records[at:]):  # each goes to the head: the order stays
                    queue.release(left)
                raise AirflowFailException(
                    f"{len(records) - at} claimed items were handed back to {queue.keys.inbox}: {error}"
                ) from error

    def _trigger(self, record: Record) -> None:
        run_id = run_id_of(self.stage, record["id"], record["attempt"], record["token"])
        conf = {
            "id": record["id"],
            "url": record["url"],
            "token": record["token"],
            "attempt": record["attempt"],
            "tags": record.get("tags") or [],
            "queue_base": self.queue_base or None,
        }
        if not trigger_run(self.worker_dag_id, run_id, conf):
            self.log.info("run %s exists already: this claim was dispatched before", run_id)
