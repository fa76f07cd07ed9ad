"""Cancelling an item, wherever it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import BadInput, QueueError
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.records import Record, bytes_of_id, encode, ended, read_record

if TYPE_CHECKING:
    from include.ytdlp_ops.queues.queue import Queue

_TRIES = 16


def cancelled(record: Record, reason: str = "") -> Record:
    """The skipped record of an item that was cancelled."""
    reason = reason or str(record.get("cancel_requested") or "")
    return ended(
        record,
        code=Code.CANCELLED,
        reason=Code.CANCELLED,
        outcome=Outcome.SKIP,
        message=f"cancelled: {reason}" if reason else "cancelled",
        retryable=False,
    )


def cancel(queue: Queue, item_id: str, *, reason: str = "by hand") -> Place | None:
    """
    Cancel an item: waiting, claimed or due again, it is skipped at once; running, its worker hears of it with
    its next heartbeat. What waits in the inbox under this id goes in any case.

    Reads the whole inbox, a page at a time.

    :returns: skipped; progress where the worker is told; nothing where it has ended or never was.
    :raises QueueError: if it moves on faster than it can be caught.
    """
    withdrawn = False
    for _ in range(_TRIES):
        withdrawn = _withdraw(queue, item_id, reason) or withdrawn
        seen = queue.see(item_id)
        if seen is None or not _may_run(*seen):
            return Place.SKIPPED if withdrawn else None
        place, raw = seen
        if place is Place.PROGRESS and read_record(raw).get("state") != "claimed":
            members = encode({"cancel_requested": reason or "by hand"})[1:-1]
            if queue.steps.run("flag", [queue.keys.progress], [bytes_of_id(item_id), raw, members]):
                return Place.PROGRESS
        elif queue.move(
            place,
            [(item_id, raw)],
            counter="skipped:cancelled",
            place=Place.SKIPPED,
            record=cancelled(read_record(raw), reason),
        ):
            return Place.SKIPPED
    raise QueueError(f"{item_id!r} of stage {queue.stage} moves on faster than it can be cancelled; try again")


def _may_run(place: Place, raw: bytes) -> bool:
    """Whether it runs, or would again by itself."""
    if place is Place.FAIL:
        return bool(read_record(raw).get("retryable"))
    return place in (Place.PROGRESS, Place.DEFERRED)


def _withdraw(queue: Queue, item_id: str, reason: str) -> bool:
    """Take every waiting element of an item out of the inbox, however it is spelled."""
    from include.ytdlp_ops.queues.reading import waiting

    spellings = {element for page in waiting(queue) for element in page if _id_of(queue, element) == item_id}
    others = [queue.keys.hash_of(place) for place in Place if place is not Place.SKIPPED]
    keys = [queue.keys.inbox, queue.keys.skipped, queue.keys.counters, *others]
    found = False
    for element in spellings:
        record = {**queue.stage.model.from_inbox(element).to_conf(), "stage": queue.stage}
        args = [element, item_id, encode(cancelled(record, reason))]
        found |= bool(queue.steps.run("withdraw", keys, args))
    return found


def _id_of(queue: Queue, element: bytes) -> str | None:
    try:
        return queue.stage.model.from_inbox(element).item_id
    except BadInput:
        return None
