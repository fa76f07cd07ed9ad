"""The task of the sweeper: it brings stalled and due items back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from include.ytdlp_ops.hooks.redis_queue import DEFAULT_REDIS_CONN_ID, RedisQueueHook
from include.ytdlp_ops.queues.keys import Stage

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.ytdlp_ops.queues.queue import Queue


STAGES = tuple(stage.value for stage in Stage)


class SweepQueuesOperator(BaseOperator):
    """
    Return stalled items, and those whose time has come, to their inboxes; stage by stage.

    :param stages: the stages to sweep.
    :param max_attempts: after so many a stalled item stays in fail. (templated)
    :param queue_base: the installation, if not the default ones. (templated)
    :param redis_conn_id: where the queues are.
    """

    template_fields: Sequence[str] = ("max_attempts", "queue_base")

    def __init__(
        self,
        *,
        stages: Sequence[str] = STAGES,
        max_attempts: int | str = "{{ params.max_attempts }}",
        queue_base: str = "{{ params.queue_base or '' }}",
        redis_conn_id: str = DEFAULT_REDIS_CONN_ID,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.stages = stages
        self.max_attempts = max_attempts
        self.queue_base = queue_base
        self.redis_conn_id = redis_conn_id

    def execute(self, context: Context) -> dict[str, dict[str, int]]:  # noqa: ARG002 - Airflow's signature
        """Sweep each stage; returns what was moved."""
        from dataclasses import asdict

        from include.ytdlp_ops.queues.recovery import sweep
        from include.ytdlp_ops.queues.remembering import keep_what_is_due

        hook = RedisQueueHook(self.redis_conn_id)
        moved = {}
        for stage in self.stages:
            queue = hook.get_queue(stage, self.queue_base)
            keep_what_is_due(queue)  # for the ledger: the sweep takes those records away
            swept = asdict(sweep(queue, max_attempts=int(self.max_attempts)))
            moved[stage] = swept
            self._wake_hosts(queue)
            self.log.info("stage %s: %s", stage, ", ".join(f"{count} {what}" for what, count in swept.items()))
        return moved

    def _wake_hosts(self, queue: Queue) -> None:
        """Hosts whose rest is over take items again; one that can't be told is told by the next sweep."""
        from include.ytdlp_ops.errors import CeleryUnreachable
        from include.ytdlp_ops.hooks.celery_workers import consume
        from include.ytdlp_ops.queues.resting import forget, rested

        for rest in rested(queue):
            try:
                if rest.node and rest.celery_queue:
                    consume(rest.node, rest.celery_queue)
                forget(queue, rest.host)
                self.log.info("%s takes items of %s again; it rested: %s", rest.host, queue.stage, rest.reason)
            except CeleryUnreachable as error:
                self.log.warning("%s", error)
