"""Wakes a dispatcher when its inbox has work: it looks, and never takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.sdk import BaseHook
from airflow.triggers.base import BaseEventTrigger, TriggerEvent

WAKE_TTL_SECONDS = 60


class InboxTrigger(BaseEventTrigger):
    """
    Fires when items wait and there is room for them.

    A wake key with a TTL keeps one push from becoming many dispatcher runs; the dispatcher deletes it when it
    has claimed. An outage of Redis is waited out.

    :param stage: whose inbox.
    :param queue_base: the installation, if not the default one.
    :param max_in_flight: no wake-up while so many items are in progress.
    :param redis_conn_id: where the queue is.
    :param poll_seconds: time between two looks.
    """

    def __init__(
        self,
        *,
        stage: str,
        queue_base: str | None = None,
        max_in_flight: int = 16,
        redis_conn_id: str = "ytdlp_ops_redis",
        poll_seconds: float = 0.25,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow leaves it untyped
        self.stage = stage
        self.queue_base = queue_base
        self.max_in_flight = max_in_flight
        self.redis_conn_id = redis_conn_id
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How the triggerer makes this trigger again."""
        return f"{self.__class__.__module__}.{self.__class__.__qualname__}", {
            "stage": self.stage,
            "queue_base": self.queue_base,
            "max_in_flight": self.max_in_flight,
            "redis_conn_id": self.redis_conn_id,
            "poll_seconds": self.poll_seconds,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look for ever; one event for each time that work is there to be claimed."""
        from redis.exceptions import RedisError

        from include.ytdlp_ops.hooks.redis_queue import address_of_connection
        from include.ytdlp_ops.queues.connecting import open_client
        from include.ytdlp_ops.queues.keys import QueueKeys

        keys = QueueKeys.of(self.stage, self.queue_base)
        client = open_client(address_of_connection(await BaseHook.aget_connection(self.redis_conn_id)))
        try:
            while True:
                try:
                    if waiting := await asyncio.to_thread(self._look, client, keys):
                        event = {"stage": self.stage, "waiting": waiting}
                        yield TriggerEvent(event)  # type: ignore[no-untyped-call]  # likewise
                    await asyncio.sleep(self.poll_seconds)
                except RedisError as error:
                    self.log.warning("Redis does not answer, looking again in 5 s: %s", error)
                    await asyncio.sleep(5)
        finally:
            client.close()

    def _look(self, client: Any, keys: Any) -> int:
        """How many wait, if they shall wake a dispatcher; else 0."""
        waiting = int(client.llen(keys.inbox))
        if not waiting or int(client.hlen(keys.progress)) >= self.max_in_flight:
            return 0
        return waiting if client.set(keys.wake, "1", nx=True, ex=WAKE_TTL_SECONDS) else 0
