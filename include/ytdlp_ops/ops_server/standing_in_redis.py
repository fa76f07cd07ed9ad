"""Standings that several servers share: one HASH each for states, counts and pairs, one Lua script a step."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from include.ytdlp_ops.errors import ConfigurationError
from include.ytdlp_ops.ops_server.standing import (
    FIRST_COOL_MS,
    LONGEST_COOL_MS,
    STRIKES,
    Action,
    Candidate,
    NoneReady,
    Standing,
    Taken,
    Verdict,
    describe,
)

_SCRIPTS = Path(__file__).parent / "scripts"
_FLAGS_SINCE = (7, 0)  # older servers know no "#!lua" line
Answer = TypeVar("Answer")


class StandingInRedis:
    """
    A `StandingStore` on a Redis 6.2 or newer, or Valkey.

    Its client repeats nothing by itself. A step is asked once more where its connection was broken: at worst a
    video is counted twice, or a lease lasts until its deadline.

    :param url: ``redis://`` or ``rediss://``; a secret.
    :param base: what its three keys begin with; servers with the same one share their pool.
    :raises ConfigurationError: if it is no such URL.
    """

    def __init__(self, url: str, base: str) -> None:
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        try:
            self._redis = Redis.from_url(
                url, retry=Retry(NoBackoff(), 0), socket_timeout=5, socket_connect_timeout=2,
                socket_keepalive=True, health_check_interval=30, client_name="ytdlp-ops-server",
            )  # fmt: skip
        except ValueError:  # its message may quote the URL
            raise ConfigurationError("redis_url is no Redis URL; write redis://:PASSWORD@HOST:PORT/DB") from None
        where = self._redis.connection_pool.connection_kwargs
        self._address = f"{where.get('host', 'localhost')}:{where.get('port', 6379)}"
        self._standings, self._tallies, self._pairs = f"{base}_standings", f"{base}_tallies", f"{base}_pairs"
        self._steps: dict[str, Any] = {}

    def take(
        self, lease: str, lease_ms: int, egresses: Sequence[Candidate], accounts: Sequence[Candidate] | None
    ) -> Taken | NoneReady:
        """See `StandingStore`."""
        args: list[Any] = [lease, lease_ms, int(accounts is not None)]
        for kind, candidates in (("egress", egresses), ("account", accounts or ())):
            for one in candidates:
                budgets = [-1 if most is None else most for most in (one.hourly, one.daily)]
                args += [kind, one.name, one.concurrency, *budgets, int(one.allowed), one.egress or ""]
        first, second = self._run("take", [self._standings, self._pairs], args)
        if not first:
            return NoneReady(None if int(second) < 0 else int(second))
        return Taken(lease=lease, egress=first.decode(), account=second.decode() or None)

    def settle(self, lease: str, verdicts: Sequence[Verdict]) -> None:
        """See `StandingStore`."""
        args: list[Any] = [lease, STRIKES, FIRST_COOL_MS, LONGEST_COOL_MS]
        for verdict in verdicts:
            args += [verdict.subject, verdict.code, verdict.effect, verdict.cool_ms]
        self._run("settle", [self._standings, self._tallies], args)

    def override(self, subject: str, action: Action, reason: str) -> None:
        """See `StandingStore`."""
        self._run("override", [self._standings, self._tallies, self._pairs], [subject, action, reason])

    def look(self, subjects: Sequence[str]) -> list[Standing]:
        """See `StandingStore`."""
        if not subjects:
            return []
        states, tallies, (seconds, micros) = self._ask(lambda: self._read(list(subjects)))
        now = seconds * 1000 + micros // 1000
        pairs = zip(subjects, states, tallies, strict=True)
        return [describe(subject, _parsed(state), _parsed(tally), now) for subject, state, tally in pairs]

    def close(self) -> None:
        """See `StandingStore`."""
        self._redis.close()

    def _read(self, subjects: list[str]) -> Any:
        reading = self._redis.pipeline(transaction=True)
        return reading.hmget(self._standings, subjects).hmget(self._tallies, subjects).time().execute()  # type: ignore[union-attr]  # typed as awaitable too

    def _run(self, step: str, keys: list[str], args: list[Any]) -> Any:
        def once() -> Any:
            if step not in self._steps:
                self._steps[step] = self._redis.register_script(self._source(step))
            return self._steps[step](keys=keys, args=args)

        return self._ask(once)

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        from redis.exceptions import ConnectionError as RedisConnectionError
        from redis.exceptions import RedisError
        from redis.exceptions import TimeoutError as RedisTimeoutError

        try:
            try:
                return question()
            except RedisTimeoutError:
                raise
            except RedisConnectionError:
                self._redis.connection_pool.disconnect(inuse_connections=False)  # they lead to the old server
                return question()
        except RedisError as error:
            raise ConnectionError(f"Redis at {self._address} can't keep the pool's standings: {error}") from None

    def _source(self, step: str) -> str:
        first, rest = (_SCRIPTS / f"{step}.lua").read_text("utf-8").split("\n", 1)
        prelude = (_SCRIPTS / "prelude.lua").read_text("utf-8")
        version = str(self._redis.info("server")["redis_version"])  # type: ignore[index]  # typed as awaitable too
        flags = tuple(int(part) for part in version.split(".")[:2]) >= _FLAGS_SINCE
        return f"{first}\n{prelude}\n{rest}" if flags else f"{prelude}\n{rest}"


def _parsed(stored: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(stored or b"{}")
    except ValueError:  # damaged from outside: as the scripts have it
        return {}
    return found if isinstance(found, dict) else {}
