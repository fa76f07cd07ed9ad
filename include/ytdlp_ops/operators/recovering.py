"""Tasks that bring items back: the sweeper, and requeueing by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from include.ytdlp_ops.hooks.redis_queue import DEFAULT_REDIS_CONN_ID, RedisQueueHook

if TYPE_CHECKING:
    from airflow.sdk import Context


V02_STAGES = ("auth", "dl", "publish")


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
        stages: Sequence[str] = ("v01", *V02_STAGES),
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

        hook = RedisQueueHook(self.redis_conn_id)
        moved = {}
        for stage in self.stages:
            swept = asdict(sweep(hook.get_queue(stage, self.queue_base), max_attempts=int(self.max_attempts)))
            moved[stage] = swept
            self.log.info("stage %s: %s", stage, ", ".join(f"{count} {what}" for what, count in swept.items()))
        return moved


class ManageQueuesOperator(BaseOperator):
    """
    Look at the queues, or put ended items back.

    ``inspect`` counts what is in every key; ``requeue`` moves the items of `source` back: dl by way of auth,
    the rest into their own inbox.

    :param action: ``inspect`` or ``requeue``. (templated)
    :param stage: the stage to requeue of. (templated)
    :param source: the place to requeue from: fail, skipped, deferred or result. (templated)
    :param limit: most items to requeue. (templated)
    :param pretend: ``True``: say what would be moved, move nothing. (templated)
    :param queue_base: the installation, if not the default ones. (templated)
    :param redis_conn_id: where the queues are.
    """

    template_fields: Sequence[str] = ("action", "stage", "source", "limit", "pretend", "queue_base")

    def __init__(
        self,
        *,
        action: str = "{{ params.action }}",
        stage: str = "{{ params.stage }}",
        source: str = "{{ params.source }}",
        limit: int | str = "{{ params.limit }}",
        pretend: bool | str = "{{ params.dry_run }}",
        queue_base: str = "{{ params.queue_base or '' }}",
        redis_conn_id: str = DEFAULT_REDIS_CONN_ID,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.action = action
        self.stage = stage
        self.source = source
        self.limit = limit
        self.pretend = pretend
        self.queue_base = queue_base
        self.redis_conn_id = redis_conn_id

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Do the action; returns counts."""
        from include.ytdlp_ops.errors import YtdlpOpsError

        actions = {"inspect": self._inspect, "requeue": self._requeue}
        if self.action not in actions:
            raise AirflowFailException(f"action {self.action!r} is none of {', '.join(actions)}")
        try:
            return actions[self.action]()
        except YtdlpOpsError as error:
            raise AirflowFailException(str(error)) from None

    def _inspect(self) -> dict[str, Any]:
        from include.ytdlp_ops.queues.inspecting import all_depths, as_table

        client = RedisQueueHook(self.redis_conn_id).get_conn()
        depths = all_depths(client, self.queue_base or None)
        for line in as_table(depths):
            self.log.info("%s", line)
        return depths

    def _requeue(self) -> dict[str, Any]:
        from include.ytdlp_ops.queues.keys import Place
        from include.ytdlp_ops.queues.requeueing import take_back

        if self.source not in (Place.FAIL, Place.SKIPPED, Place.DEFERRED, Place.RESULT):
            raise AirflowFailException(f"source {self.source!r} is none of fail, skipped, deferred, result")
        queue = RedisQueueHook(self.redis_conn_id).get_queue(self.stage, self.queue_base)
        dry_run = str(self.pretend).lower() != "false"
        moved = take_back(queue, Place(self.source), limit=int(self.limit), dry_run=dry_run)
        said = "would move" if dry_run else "moved"
        self.log.info("%s %d items from %s", said, moved, queue.keys.hash_of(Place(self.source)))
        return {"moved": 0 if dry_run else moved, "would_move": moved if dry_run else 0}
