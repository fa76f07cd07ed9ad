"""Wakes the sweeper when a lease is over, or the time of something put off has come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from include.ytdlp_ops.triggers.looking import LookingTrigger

if TYPE_CHECKING:
    from redis import Redis

    from include.ytdlp_ops.queues.keys import QueueKeys

BETWEEN_TWO_MS = 10_000
"""From one wake-up for a stage to its next at the earliest: a sweep takes what has come due meanwhile together."""


class DueTrigger(LookingTrigger):
    """
    Fires when an item of a stage is stalled or due.

    :param stages: the stages to look at.
    :param queue_base: the installation, if not the default ones.
    :param redis_conn_id: where the queues are.
    :param poll_seconds: time between two looks.
    """

    arguments: ClassVar[tuple[str, ...]] = ("stages", *LookingTrigger.arguments)

    def __init__(
        self,
        *,
        stages: Sequence[str],
        queue_base: str | None = None,
        redis_conn_id: str = "ytdlp_ops_redis",
        poll_seconds: float = 1.0,
    ) -> None:
        super().__init__(queue_base=queue_base, redis_conn_id=redis_conn_id, poll_seconds=poll_seconds)
        self.stages = list(stages)

    def look(self, client: Redis) -> dict[str, Any] | None:
        """The stages that have something to be swept, if they shall wake the sweeper."""
        from include.ytdlp_ops.queues.keys import QueueKeys

        seconds, microseconds = client.time()  # type: ignore[misc]  # redis-py can't say that it is not async
        now_ms = seconds * 1000 + microseconds // 1000
        woken = [
            stage for stage in self.stages if self._wakes(client, QueueKeys.of(stage, self.queue_base), now_ms)
        ]
        return {"stages": woken} if woken else None

    @staticmethod
    def _wakes(client: Redis, keys: QueueKeys, now_ms: int) -> bool:
        for times in (keys.leases, keys.due):
            if client.zrange(times, "-inf", now_ms, byscore=True, offset=0, num=1):  # type: ignore[arg-type]  # its types know no "-inf"
                return bool(client.set(keys.sweep_wake, "1", nx=True, px=BETWEEN_TWO_MS))
        return False
