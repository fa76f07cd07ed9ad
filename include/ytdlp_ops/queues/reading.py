"""Reading a queue page by page: no call is longer than a page, whatever lies there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.records import bytes_of_id, text_of_id

PAGE = 500
Seen = tuple[str, bytes]
"""An item id and its record as it lay there."""


def pages(queue: Queue, place: Place, page: int = PAGE) -> Iterator[list[Seen]]:
    """All records of one place, a page at a time; what moves meanwhile may come twice or not at all."""
    key = queue.keys.hash_of(place)
    cursor = 0
    while True:
        cursor, found = queue.steps.command("hscan", key, cursor, count=page)
        if found:
            yield [(text_of_id(item_id), raw) for item_id, raw in found.items()]
        if not cursor:
            return


def waiting(queue: Queue, page: int = PAGE) -> Iterator[list[bytes]]:
    """What waits in the inbox, from its tail, so that claims meanwhile shift nothing out of sight."""
    last = -1
    while True:
        found: list[bytes] = queue.steps.command("lrange", queue.keys.inbox, last - page + 1, last)
        if not found:
            return
        yield found
        if len(found) < page:
            return
        last -= page


def ids_until(queue: Queue, times: str, until_ms: int) -> Iterator[list[str]]:
    """
    The ids of a ZSET whose time is over, a page at a time; goes past those that stay there.

    By rank and not by time, so that a page is a page where a million have one deadline.
    """
    start = 0
    while True:
        found: list[tuple[bytes, float]] = queue.steps.command(
            "zrange", times, start, start + PAGE - 1, withscores=True
        )
        ids = [text_of_id(item_id) for item_id, time in found if time <= until_ms]
        if ids:
            yield ids
        if len(ids) < PAGE:
            return
        start += sum(time is not None and time <= until_ms for time in times_of(queue, times, ids))


def records_of(queue: Queue, place: Place, ids: Sequence[str]) -> list[bytes | None]:
    """The records of some items in one place, in order; None where one has none."""
    found: list[bytes | None] = queue.steps.command(
        "hmget", queue.keys.hash_of(place), [bytes_of_id(item) for item in ids]
    )
    return found


def times_of(queue: Queue, times: str, ids: Sequence[str]) -> list[float | None]:
    """The leases or due times of some items, in order."""
    found: list[float | None] = queue.steps.command("zmscore", times, [bytes_of_id(item) for item in ids])
    return found


def when_ms(stamp: object) -> int | None:
    """A time as unix ms: ours (ISO 8601), or an older tool's unix seconds; nothing where it is none."""
    try:
        if isinstance(stamp, (int, float)):
            return int(stamp * 1000 if stamp < 1e11 else stamp)
        moment = datetime.fromisoformat(str(stamp))
    except (ValueError, OverflowError):
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
