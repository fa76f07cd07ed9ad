"""Wakes a dispatcher when its inbox has work: it looks, and never takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from include.ytdlp_ops.triggers.looking import LookingTrigger

if TYPE_CHECKING:
    from redis import Redis

WAKE_TTL_SECONDS = 60


class InboxTrigger(LookingTrigger):
    """
    Fires when items wait and there is room for them.

    A wake key with a TTL keeps one push from becoming many dispatcher runs; the dispatcher deletes it when it
    has claimed.

    :param stage: whose inbox.
    :param queue_base: the installation, if not the default one.
    :param max_in_flight: no wake-up while so many items are in progress.
    :param redis_conn_id: where the queue is.
    :param poll_seconds: time between two looks.
    """

    arguments: ClassVar[tuple[str, ...]] = ("stage", "max_in_flight", *LookingTrigger.arguments)

    def __init__(
        self,
        *,
        stage: str,
        queue_base: str | None = None,
        max_in_flight: int = 16,
        redis_conn_id: str = "ytdlp_ops_redis",
        poll_seconds: float = 0.25,
    ) -> None:
        super().__init__(queue_base=queue_base, redis_conn_id=redis_conn_id, poll_seconds=poll_seconds)
        self.stage = stage
        self.max_in_flight = max_in_flight

    def look(self, client: Redis) -> dict[str, Any] | None:
        """How many wait, if they shall wake a dispatcher."""
        from include.ytdlp_ops.queues.keys import QueueKeys

        keys = QueueKeys.of(self.stage, self.queue_base)
        waiting = client.llen(keys.inbox)
        if not waiting or client.hlen(keys.progress) >= self.max_in_flight:  # type: ignore[operator]  # an int
            return None
        woken = client.set(keys.wake, "1", nx=True, ex=WAKE_TTL_SECONDS)
        return {"stage": self.stage, "waiting": waiting} if woken else None
