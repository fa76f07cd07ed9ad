"""From an Airflow connection to a queue."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseHook

from include.ytdlp_ops.errors import ConfigurationError
from include.ytdlp_ops.queues.connecting import RedisAddress, connect
from include.ytdlp_ops.queues.keys import Stage
from include.ytdlp_ops.queues.queue import RUNNING_LEASE_MS, Queue

DEFAULT_REDIS_CONN_ID = "ytdlp_ops_redis"


class RedisQueueHook(BaseHook):
    """
    Opens queues on the Redis of a connection, with a client that repeats nothing by itself.

    The connection's extra may hold ``db``, ``ssl`` and redis-py's other ``ssl_*`` arguments; and, for Sentinel,
    ``sentinels`` (a list of ``"host:port"``), ``service`` and ``sentinel_password``.

    :param redis_conn_id: a connection of type redis.
    """

    conn_type = "redis"

    def __init__(self, redis_conn_id: str = DEFAULT_REDIS_CONN_ID) -> None:
        super().__init__()
        self.redis_conn_id = redis_conn_id

    def get_conn(self) -> Any:
        """
        A client of a server that has been looked at.

        :raises QueueError: if it can't be reached.
        :raises UnsafeRedis: if it would lose items.
        """
        return connect(self.address())

    def get_queue(
        self, stage: Stage | str, queue_base: str | None = None, *, running_lease_ms: int = RUNNING_LEASE_MS
    ) -> Queue:
        """The queue of one stage."""
        return Queue(self.get_conn(), stage, queue_base=queue_base or None, running_lease_ms=running_lease_ms)

    def address(self) -> RedisAddress:
        """Where the connection points."""
        return address_of_connection(self.get_connection(self.redis_conn_id))


def address_of_connection(connection: Any) -> RedisAddress:
    """The address in an Airflow connection of type redis."""
    extra = connection.extra_dejson
    return RedisAddress(
        host=connection.host or "127.0.0.1",
        port=connection.port or 6379,
        db=int(extra.get("db") or 0),
        username=connection.login or None,
        password=connection.password or None,
        ssl=bool(extra.get("ssl")),
        sentinels=tuple(_host_and_port(each) for each in extra.get("sentinels") or ()),
        service=extra.get("service") or "mymaster",
        sentinel_password=extra.get("sentinel_password") or None,
        options={key: value for key, value in extra.items() if key.startswith("ssl_")},
    )


def _host_and_port(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigurationError(f"sentinel {text!r} must be host:port, in the extra of the Redis connection")
    return host, int(port)
