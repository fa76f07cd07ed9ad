"""Ending many items by hand: cancelled, or put into another place."""

from __future__ import annotations

from collections.abc import Iterator

from include.ytdlp_ops.errors import BadInput, QueueError
from include.ytdlp_ops.queues.cancelling import cancelled
from include.ytdlp_ops.queues.filtering import Filter
from include.ytdlp_ops.queues.groups import join
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.listing import INBOX, Entry, pages_of
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.records import encode, ended

CANCELLED_FROM = (INBOX, Place.PROGRESS, Place.FAIL, Place.DEFERRED)
MOVED_FROM = (Place.FAIL, Place.SKIPPED, Place.DEFERRED)
MOVED_TO = (Place.RESULT, Place.FAIL, Place.SKIPPED)


def cancel_all(
    queue: Queue, where: str, wanted: Filter, *, because: str, limit: int, dry_run: bool
) -> tuple[int, list[str]]:
    """
    Cancel up to `limit` items of the inbox, progress, fail or deferred.

    :returns: how many were, or would be, skipped or told to stop; and the first ids of them.
    :raises BadInput: for a place that nothing can be cancelled in.
    """
    if where not in CANCELLED_FROM:
        raise BadInput(f"source {where!r} is none of {', '.join(CANCELLED_FROM)}: the rest has ended")
    count, shown = 0, list[str]()
    for entry in _first(queue, where, wanted, limit):
        if dry_run or (_withdraw(queue, entry, because) if where == INBOX else _stop(queue, entry, because)):
            count += 1
            shown += [entry.item_id][: 10 - len(shown)]
    return count, shown


def move_all(
    queue: Queue, source: Place, target: Place, wanted: Filter, *, because: str, limit: int, dry_run: bool
) -> tuple[int, list[str]]:
    """
    Put up to `limit` ended items into another place, for good: nothing takes them up again by itself.

    :returns: how many were, or would be, moved; and the first ids of them.
    :raises BadInput: for places between which nothing is moved.
    """
    if source not in MOVED_FROM or target not in MOVED_TO or source == target:
        raise BadInput(
            f"nothing is moved from {source!r} to {target!r}: from {', '.join(MOVED_FROM)} to another of "
            f"{', '.join(MOVED_TO)}; into the inbox by action requeue"
        )
    count, shown, ended_videos = 0, list[str](), set[str]()
    for entry in _first(queue, source, wanted, limit):
        record = ended(
            {"id": entry.item_id, **entry.record}, moved_from=source, moved_because=because, retryable=False
        )
        seen = [(entry.item_id, entry.raw)]
        if dry_run or queue.move(source, seen, counter=f"{target}:moved", place=target, record=record):
            count += 1
            shown += [entry.item_id][: 10 - len(shown)]
            ended_videos.add(str(record.get("group") or record.get("url")))
    if queue.stage is Stage.DL and not dry_run:
        join(queue, ended_videos)  # one of them may have been the last that its video waited for
    return count, shown


def _first(queue: Queue, where: str, wanted: Filter, limit: int) -> Iterator[Entry]:
    """The first `limit` entries, each item once, read before any is changed: a LIST shifts as it shrinks."""
    found: dict[str, Entry] = {}
    for page in pages_of(queue, where, wanted):
        found |= {entry.item_id or entry.raw.decode("latin-1"): entry for entry in page.entries}
        if len(found) >= limit:
            break
    yield from list(found.values())[:limit]


def _stop(queue: Queue, entry: Entry, because: str) -> bool:
    try:
        return queue.cancel(entry.item_id, reason=because) is not None
    except QueueError:  # it moves on faster than it can be caught: it is worked on, and not counted
        return False


def _withdraw(queue: Queue, entry: Entry, because: str) -> bool:
    keys = [queue.keys.inbox, queue.keys.skipped, queue.keys.counters]
    item_id = entry.item_id or f"bad_input:{entry.raw[:64].decode('ascii', 'replace')}"
    record = cancelled({**entry.record, "id": item_id, "stage": queue.stage}, because)
    return bool(queue.steps.run("withdraw", keys, [entry.raw, item_id, encode(record)]))
