"""What the triggers share: a look at Redis every now and then, which never takes anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseHook
from airflow.triggers.base import BaseEventTrigger, TriggerEvent

if TYPE_CHECKING:
    from redis import Redis

OUTAGE_SECONDS = 5


class LookingTrigger(BaseEventTrigger):
    """
    Fires when a look at the queue finds something. An outage of Redis is waited out.

    :param redis_conn_id: where the queue is.
    :param poll_seconds: time between two looks.
    """

    arguments: ClassVar[tuple[str, ...]] = ("queue_base", "redis_conn_id", "poll_seconds")

    def __init__(self, *, queue_base: str | None, redis_conn_id: str, poll_seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow leaves it untyped
        self.queue_base = queue_base
        self.redis_conn_id = redis_conn_id
        self.poll_seconds = poll_seconds

    def look(self, client: Redis) -> dict[str, Any] | None:
        """What the event says, if there shall be one; called in a thread."""
        raise NotImplementedError

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How the triggerer makes this trigger again."""
        path = f"{self.__class__.__module__}.{self.__class__.__qualname__}"
        return path, {name: getattr(self, name) for name in self.arguments}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look for ever; one event for each time that something is found."""
        from redis.exceptions import RedisError

        from include.ytdlp_ops.hooks.redis_queue import address_of_connection
        from include.ytdlp_ops.queues.connecting import open_client

        client = open_client(address_of_connection(await BaseHook.aget_connection(self.redis_conn_id)))
        try:
            while True:
                try:
                    if event := await asyncio.to_thread(self.look, client):
                        yield TriggerEvent(event)  # type: ignore[no-untyped-call]  # likewise
                    await asyncio.sleep(self.poll_seconds)
                except RedisError as error:
                    self.log.warning("Redis does not answer, looking again in %s s: %s", OUTAGE_SECONDS, error)
                    await asyncio.sleep(OUTAGE_SECONDS)
        finally:
            client.close()
