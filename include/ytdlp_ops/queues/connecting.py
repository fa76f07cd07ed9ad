"""
The Redis client: no hidden retries, and no server that would lose items.

redis-py repeats a command three times by default, also after a lost reply: with that, RPUSH stores twice and
LPOP loses. Here a step is repeated by the queue alone, and only steps that may be.
"""

from __future__ import annotations

import logging
import re
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from include.ytdlp_ops.errors import ConfigurationError, QueueError, UnsafeRedis

if TYPE_CHECKING:
    from redis import Redis

log = logging.getLogger(__name__)
OLDEST_VERSION = (6, 2)
_SENTINEL = re.compile(
    r"redis(?P<tls>s?)\+sentinel://(?P<user>[^@/]*@)?(?P<hosts>[^@/]+)/(?P<service>[^/?]+)(?:/(?P<db>\d+))?(?P<query>\?.*)?"
)


@dataclass(frozen=True, kw_only=True)
class RedisAddress:
    """
    Where the queue's server is, and how to get in.

    :param sentinels: host and port of each Sentinel; then `service` is what they watch, and `host` and `port`
        are not looked at.
    :param sentinel_password: the Sentinels' own, if they have one.
    :param options: further arguments of redis-py's client, for TLS (``ssl_ca_certs`` …).
    """

    host: str = "127.0.0.1"
    port: int = 6379
    db: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ssl: bool = False
    sentinels: tuple[tuple[str, int], ...] = ()
    service: str = "mymaster"
    sentinel_password: str | None = field(default=None, repr=False)
    options: dict[str, Any] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        if self.sentinels:
            return f"{self.service}@{','.join(f'{host}:{port}' for host, port in self.sentinels)}/{self.db}"
        return f"{self.host}:{self.port}/{self.db}"


def open_client(address: RedisAddress) -> Redis:
    """A client that sends each command once, gives up after its timeouts, and notices dead connections."""
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
    from redis.sentinel import Sentinel

    options: dict[str, Any] = {
        "username": address.username,
        "password": address.password,
        "ssl": address.ssl,
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": 10,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        **address.options,
    }
    own: dict[str, Any] = {
        "db": address.db,
        "health_check_interval": 30,
        "client_name": f"ytdlp-ops@{re.sub(r'[^!-~]', '', socket.gethostname())}",
    }
    if not address.sentinels:
        return Redis(host=address.host, port=address.port, **own, **options)
    watchers = {**options, "username": None, "password": address.sentinel_password}
    sentinel = Sentinel(address.sentinels, sentinel_kwargs=watchers, **own, **options)  # type: ignore[no-untyped-call]  # redis-py leaves it untyped
    client: Redis = sentinel.master_for(address.service)  # type: ignore[no-untyped-call]  # as above
    return client


def connect(address: RedisAddress) -> Redis:
    """
    A client of a server that has been looked at.

    :raises QueueError: if the server can't be reached.
    :raises UnsafeRedis: if it would lose items.
    """
    from redis.exceptions import RedisError

    client = open_client(address)
    try:
        info: dict[str, Any] = client.info("everything")  # type: ignore[assignment]  # redis-py types sync and async alike
    except RedisError as error:
        client.close()
        raise QueueError(
            f"Redis at {address} does not answer: {error}; check the connection and its password"
        ) from None
    try:
        refuse_unsafe(info, str(address))
    except QueueError:
        client.close()
        raise
    return client


def refuse_unsafe(info: dict[str, Any], address: str) -> None:
    """
    Look at a server's INFO; warn where it can lose acknowledged writes by a crash.

    :raises UnsafeRedis: cluster mode, an eviction policy, or a server that is too old.
    """
    version = str(info.get("redis_version", "0"))
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_VERSION:
        raise UnsafeRedis(f"Redis at {address} is {version}; 6.2 or newer is needed")
    if info.get("cluster_enabled"):
        raise UnsafeRedis(
            f"Redis at {address} runs in cluster mode, where a step's keys lie on different nodes; "
            "use a single server, with a replica and Sentinel if it must fail over"
        )
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise UnsafeRedis(
            f"Redis at {address} has maxmemory-policy {policy!r} and would throw items away; "
            "set it to noeviction (CONFIG SET maxmemory-policy noeviction, and in redis.conf)"
        )
    if not info.get("aof_enabled"):
        log.warning("Redis at %s has no append-only file: a crash loses what came since its last snapshot; "
                    "set appendonly yes", address)  # fmt: skip


def address_of(url: str) -> RedisAddress:
    """
    The address that a URL names.

    ``redis://USER:PASSWORD@HOST:PORT/DB``, ``rediss://`` for TLS, with options of redis-py's client as the query
    (``?ssl_ca_certs=/path``), or ``redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/SERVICE/DB``.

    :raises ConfigurationError: if it is no such URL.
    """
    from redis.connection import parse_url

    sentinels: tuple[tuple[str, int], ...] = ()
    service = "mymaster"
    try:
        if match := _SENTINEL.fullmatch(url):
            sentinels = tuple(_host_and_port(one) for one in match["hosts"].split(","))
            service = match["service"]
            url = f"redis{match['tls']}://{match['user'] or ''}sentinels/{match['db'] or 0}{match['query'] or ''}"
        if not url.startswith(("redis://", "rediss://")):
            raise ValueError(f"its scheme is {url.partition(':')[0]!r}")
        parts: dict[str, Any] = dict(parse_url(url))  # type: ignore[no-untyped-call]  # redis-py leaves it untyped
    except ValueError as error:
        raise ConfigurationError(f"not a Redis URL: {error}; write redis://:PASSWORD@HOST:PORT/DB") from None
    parts.pop("connection_class", None)
    known = {name: parts.pop(name) for name in ("host", "port", "db", "username", "password") if name in parts}
    return RedisAddress(
        **known, ssl=url.startswith("rediss:"), sentinels=sentinels, service=service, options=parts
    )


def _host_and_port(text: str) -> tuple[str, int]:
    host, _, port = text.partition(":")
    return host, int(port or 26379)
