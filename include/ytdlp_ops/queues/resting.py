"""Hosts that take nothing from a stage for a while: their disk is full, or something on them is set up wrongly."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from include.ytdlp_ops.queues.records import encode, read_record

if TYPE_CHECKING:
    from include.ytdlp_ops.queues.queue import Queue

REST_MS = 600 * 1000


@dataclass(frozen=True, kw_only=True)
class Rest:
    """
    One host's rest from one stage.

    :param host: its name in records.
    :param reason: for people.
    :param until_ms: unix ms of Redis' clock.
    :param node: the Celery worker that was told to take nothing, if it is one.
    :param celery_queue: of which Celery queue.
    """

    host: str
    reason: str
    until_ms: int
    node: str | None = None
    celery_queue: str | None = None

    def __str__(self) -> str:
        """For a log line."""
        return f"{self.host} rests: {self.reason}"


def rest(
    queue: Queue,
    host: str,
    reason: str,
    *,
    for_ms: int = REST_MS,
    node: str | None = None,
    celery_queue: str | None = None,
) -> None:
    """Let a host rest: no claim that names it takes anything, until the time is over or a person resumes."""
    until_ms = queue.now_ms() + for_ms
    found = Rest(host=host, reason=reason, until_ms=until_ms, node=node, celery_queue=celery_queue)
    queue.steps.command("hset", queue.keys.resting, host, encode(asdict(found)))


def resting(queue: Queue) -> list[Rest]:
    """Every host that rests, and those whose rest is over and that nobody has woken yet."""
    found: dict[bytes, bytes] = queue.steps.command("hgetall", queue.keys.resting)  # a handful: one a host
    return [_read(host, raw) for host, raw in sorted(found.items())]


def why_resting(queue: Queue, host: str) -> str:
    """Why this host takes nothing now; empty if it does."""
    raw = queue.steps.command("hget", queue.keys.resting, host)
    if raw is None:
        return ""
    found = _read(host.encode(), raw)
    return "" if found.until_ms <= queue.now_ms() else str(found)


def rested(queue: Queue) -> list[Rest]:
    """The rests whose time is over: their Celery workers have to be told, then they can be forgotten."""
    now_ms = queue.now_ms()
    return [each for each in resting(queue) if each.until_ms <= now_ms]


def forget(queue: Queue, host: str) -> None:
    """A host takes items again."""
    queue.steps.command("hdel", queue.keys.resting, host)


def end_rests(queue: Queue) -> None:
    """Let every host's rest be over now; the sweeper tells their Celery workers."""
    for each in resting(queue):
        queue.steps.command("hset", queue.keys.resting, each.host, encode({**asdict(each), "until_ms": 0}))


def _read(host: bytes, raw: bytes) -> Rest:
    record = read_record(raw)
    try:
        return Rest(**record)
    except TypeError:  # not ours: over at once
        return Rest(host=host.decode(errors="replace"), reason="", until_ms=0)
