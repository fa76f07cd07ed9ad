"""
What the ledger has yet to archive, of attempts whose records give way to the next attempt.

A failed record is gone once its item is tried again. While a ledger archives a stage (its key says so, for a
week after each archiving), such records are kept aside until they are archived.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.reading import PAGE, Seen, ids_until, records_of
from include.ytdlp_ops.queues.records import bytes_of_id, text_of_id

LEDGER_TTL_MS = 7 * 24 * 3600 * 1000
SOON_MS = 10 * 60 * 1000  # a sweep that begins within it finds nothing due that is not kept


def archived_until(queue: Queue) -> int | None:
    """Until when all that ended is archived, unix ms; nothing where no ledger is at work."""
    value: bytes | None = queue.steps.command("get", queue.keys.ledger)
    return int(value) if value and value.isdigit() else None


def set_archived_until(queue: Queue, until_ms: int) -> None:
    """Say that all that ended before is archived."""
    queue.steps.command("set", queue.keys.ledger, until_ms, px=LEDGER_TTL_MS)


def keep_what_is_due(queue: Queue) -> int:
    """
    Keep the records of items that the sweeper is about to take up again; asked before each sweep.

    :returns: how many were kept.
    """
    if archived_until(queue) is None:
        return 0
    kept = 0
    for ids in ids_until(queue, queue.keys.due, queue.now_ms() + SOON_MS):
        for place in (Place.FAIL, Place.DEFERRED):
            found = records_of(queue, place, ids)
            fields = {
                _field(item_id, raw): raw for item_id, raw in zip(ids, found, strict=True) if raw is not None
            }
            if fields:
                kept += queue.steps.command("hset", queue.keys.attempts, mapping=fields)
    return kept


def kept_pages(queue: Queue) -> Iterator[list[tuple[bytes, Seen]]]:
    """What is kept, page by page: the field, and the item id with its record."""
    cursor = 0
    while True:
        cursor, found = queue.steps.command("hscan", queue.keys.attempts, cursor, count=PAGE)
        if found:
            yield [(field, (text_of_id(field.partition(b" ")[2]), raw)) for field, raw in found.items()]
        if not cursor:
            return


def _field(item_id: str, raw: bytes) -> bytes:
    return hashlib.sha1(raw, usedforsecurity=False).hexdigest().encode() + b" " + bytes_of_id(item_id)
