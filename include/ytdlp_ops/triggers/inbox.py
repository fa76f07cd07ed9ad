"""Wakes a dispatcher when its inbox has work: it looks, and never takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

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

        from include.ytdlp_ops.queues.keys import QueueKeys

        keys = QueueKeys.of(self.stage, self.queue_base)
        client = await self._client()
        try:
            while True:
                try:
                    waiting = int(await client.llen(keys.inbox))
                    room = self.max_in_flight - int(await client.hlen(keys.progress)) if waiting else 0
                    if room > 0 and await client.set(keys.wake, "1", nx=True, ex=WAKE_TTL_SECONDS):
                        event = {"stage": self.stage, "waiting": waiting}
                        yield TriggerEvent(event)  # type: ignore[no-untyped-call]  # likewise
                    await asyncio.sleep(self.poll_seconds)
                except RedisError as error:
                    self.log.warning("Redis does not answer, looking again in 5 s: %s", error)
                    await asyncio.sleep(5)
        finally:
            await client.aclose()

    async def _client(self) -> Any:
        from airflow.sdk import BaseHook
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        from include.ytdlp_ops.hooks.redis_queue import address_of_connection

        address = address_of_connection(await BaseHook.aget_connection(self.redis_conn_id))
        return Redis(
            host=address.host,
            port=address.port,
            db=address.db,
            username=address.username,
            password=address.password,
            ssl=address.ssl,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=10,
            socket_connect_timeout=5,
            **address.options,
        )
