"""The Lua steps, each one file with its contract in its header; asked again while the server can't be reached."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from include.ytdlp_ops.errors import QueueError, WrongKeyType

if TYPE_CHECKING:
    from redis import Redis

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")

_DIRECTORY = Path(__file__).parent / "scripts"
_FLAGS_SINCE = (7, 0)  # older servers know no "#!lua" line
_LONGEST_PAUSE_SECONDS = 1.0
_NOT_NOW = ("BUSY ", "NOREPLICAS", "MISCONF", "UNBLOCKED")  # refusals that end by themselves; nothing was done


@cache
def source_of(step: str, flags: bool = True) -> str:
    """The text of a step, as it is sent: its flags, what all steps share, and itself."""
    first, rest = (_DIRECTORY / f"{step}.lua").read_text(encoding="utf-8").split("\n", 1)
    prelude = (_DIRECTORY / "prelude.lua").read_text(encoding="utf-8")
    return f"{first}\n{prelude}\n{rest}" if flags else f"{prelude}\n{rest}"


class Scripts:
    """
    The steps of one client; a script that the server forgot is sent again.

    :param patience_seconds: how long, from the first failure on, a step is asked again. Only steps that may be
        repeated are asked here.
    """

    def __init__(self, client: Redis, patience_seconds: float) -> None:
        self._client = client
        self._patience_seconds = patience_seconds
        self._shas: dict[str, str] = {}

    def run(
        self, step: str, keys: Sequence[str], args: Sequence[Any], *, patience_seconds: float | None = None
    ) -> Any:
        """
        Run one step.

        :raises WrongKeyType: if one of the keys holds another type; nothing was written then.
        :raises QueueError: if the server does not answer, or is out of memory.
        """
        return self.ask(lambda: self._run(step, keys, args), patience_seconds=patience_seconds)

    def ask(self, question: Callable[[], Answer], *, patience_seconds: float | None = None) -> Answer:
        """
        Ask, and ask again while the server can't be reached: the question must be one that may be repeated.

        :raises QueueError: if it still can't be.
        """
        from redis.exceptions import RedisError

        patience = self._patience_seconds if patience_seconds is None else patience_seconds
        end, pause = None, 0.05
        while True:
            try:
                return question()
            except RedisError as error:
                if not _ends_by_itself(error):
                    raise as_queue_error(error) from error
                # After a failover idle connections still lead to the old primary.
                self._client.connection_pool.disconnect(inuse_connections=False)
                end = end or time.monotonic() + patience
                if time.monotonic() + pause > end:
                    raise QueueError(f"Redis does not answer: {error}") from error
                log.warning("Redis does not answer (%s); asking again in %.2f s", error, pause)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def command(self, name: str, *args: Any, **options: Any) -> Any:
        """One plain command that may be repeated, as redis-py's client spells it."""
        return self.ask(lambda: getattr(self._client, name)(*args, **options))

    def _run(self, step: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        from redis.exceptions import NoScriptError

        source = source_of(step, self.knows_flags)
        if step not in self._shas:
            self._shas[step] = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
        try:
            return self._client.evalsha(self._shas[step], len(keys), *keys, *args)
        except NoScriptError:
            # EVAL and not SCRIPT LOAD: that is refused when memory is short, and a finish must work then.
            return self._client.eval(source, len(keys), *keys, *args)

    @cached_property
    def knows_flags(self) -> bool:
        """Whether the server knows the line that says when a script may run."""
        version = str(self._client.info("server")["redis_version"])  # type: ignore[index]  # typed as awaitable too
        return tuple(int(part) for part in version.split(".")[:2]) >= _FLAGS_SINCE


def as_queue_error(error: Exception) -> Exception:
    """What an error reply of a step means."""
    message = str(error)
    if "WRONGKEYTYPE" in message:
        found = message.split("WRONGKEYTYPE", 1)[1].split(" script:", 1)[0].strip()
        return WrongKeyType(f"{found}; move it away (RENAME) and run again: nothing was written")
    if "OOM" in message or "used memory" in message:
        return QueueError(
            f"Redis is out of memory, nothing was taken: raise maxmemory or archive records ({message})"
        )
    return QueueError(f"Redis refused a step: {message}")


def _ends_by_itself(error: Exception) -> bool:
    from redis.exceptions import AuthenticationError, AuthorizationError, MasterDownError, ReadOnlyError
    from redis.exceptions import ConnectionError as RedisConnectionError
    from redis.exceptions import TimeoutError as RedisTimeoutError

    if isinstance(error, (AuthenticationError, AuthorizationError)):
        return False
    if isinstance(error, (RedisConnectionError, RedisTimeoutError, ReadOnlyError, MasterDownError)):
        return True
    message = str(error)
    return message.startswith(_NOT_NOW) or "READONLY" in message  # in a message: said from inside a script
