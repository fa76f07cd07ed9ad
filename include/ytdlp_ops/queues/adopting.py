"""Entries in progress without a lease: of older tools, or after damage."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import CLAIM_LEASE_MS, Queue
from include.ytdlp_ops.queues.reading import PAGE, Seen, pages, records_of, times_of, when_ms
from include.ytdlp_ops.queues.records import Record, bytes_of_id, read_record, text_of_id

log = logging.getLogger(__name__)
STALE_AFTER_MS = 6 * 3600 * 1000
_SIGNS_OF_LIFE = ("heartbeat_at", "updated_at", "started_at", "claimed_at", "timestamp")


def leaseless(queue: Queue, stale_after_ms: int) -> Iterator[Seen]:
    """
    Entries without a lease that are old enough to be taken for stalled.

    One with a token gets a lease, and goes the way of all others. Age is measured from an entry's last sign of
    life on; from when it was first seen here, where it tells none.
    """
    _forget_gone(queue)
    in_progress: int = queue.steps.command("hlen", queue.keys.progress)
    leases: int = queue.steps.command("zcard", queue.keys.leases)
    if in_progress <= leases:
        return
    now = queue.now_ms()
    for page in pages(queue, Place.PROGRESS):
        deadlines = times_of(queue, queue.keys.leases, [item_id for item_id, _ in page])
        without = [pair for pair, deadline in zip(page, deadlines, strict=True) if deadline is None]
        for (item_id, raw), since in zip(without, _since(queue, without, now), strict=True):
            if since is not None and now - since >= stale_after_ms:
                log.warning("%r of stage %s has no lease: requeued due to age", item_id, queue.stage)
                yield item_id, raw


def give_time(queue: Queue, place: Place, item_id: str, raw: bytes, *, in_ms: int) -> bool:
    """A lease or due time for an item that has none; False if it changed since it was seen, or has one."""
    keys = [queue.keys.hash_of(place), queue.keys.leases if place is Place.PROGRESS else queue.keys.due]
    return bool(queue.steps.run("adopt", keys, [bytes_of_id(item_id), raw, in_ms]))


def _since(queue: Queue, entries: Sequence[Seen], now: int) -> list[int | None]:
    """When each entry last gave a sign of life, ms; None for one that was given a lease instead."""
    times: list[int | None] = []
    for item_id, raw in entries:
        record, field = read_record(raw), bytes_of_id(item_id)
        if isinstance(record.get("token"), str):
            give_time(queue, Place.PROGRESS, item_id, raw, in_ms=CLAIM_LEASE_MS)
            times.append(None)
            continue
        since = _last_sign(record)
        if since is None:
            queue.steps.command("zadd", queue.keys.orphans, {field: now}, nx=True)
            seen = queue.steps.command("zscore", queue.keys.orphans, field)
            since = int(seen or now)
        times.append(since)
    return times


def _last_sign(record: Record) -> int | None:
    return max(filter(None, (when_ms(record.get(name)) for name in _SIGNS_OF_LIFE)), default=None)


def _forget_gone(queue: Queue) -> None:
    """Drop first-seen times of entries that are in progress no more."""
    seen: list[bytes] = queue.steps.command("zrange", queue.keys.orphans, 0, PAGE - 1)
    ids = [text_of_id(field) for field in seen]
    if not ids:
        return
    here = records_of(queue, Place.PROGRESS, ids)
    gone = [bytes_of_id(item_id) for item_id, raw in zip(ids, here, strict=True) if raw is None]
    if gone:
        queue.steps.command("zrem", queue.keys.orphans, *gone)
