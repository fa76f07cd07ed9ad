"""
Does a live queue keep its promises? Looks page by page, names what breaks them, and mends it without loss.

    I1  what is known to have been submitted is somewhere
    I2  an item is in one place
    I3  what is in progress has a token
    I4  leases and due times belong to what is there, and what waits for a time has one
    I5  no item is tried more often than it may be
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.queues.adopting import give_time
from include.ytdlp_ops.queues.backoff import MAX_ATTEMPTS
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import CLAIM_LEASE_MS, Queue
from include.ytdlp_ops.queues.reading import PAGE, Seen, ids_until, pages, records_of, times_of, waiting
from include.ytdlp_ops.queues.records import Record, bytes_of_id, encode, read_record

_FOREVER_MS = 1 << 52
_TYPES = {
    "inbox": b"list", "leases": b"zset", "due": b"zset", "orphans": b"zset",
    **dict.fromkeys((*Place, "oversized", "pause", "circuit", "counters", "limits", "buckets"), b"hash"),
}  # fmt: skip
_BEST_FIRST = (Place.RESULT, Place.SKIPPED, Place.FAIL, Place.DEFERRED)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """
    Something that breaks a promise.

    :param promise: ``I1`` … ``I5``, or ``key`` for a key of the wrong type.
    :param item_id: whose, or the key's name.
    :param what: what is wrong, and what to do where it was not mended.
    :param mended: whether it has been put right.
    """

    promise: str
    item_id: str
    what: str
    mended: bool = False

    def __str__(self) -> str:
        return f"{self.promise} {self.item_id!r}: {self.what}{' (mended)' if self.mended else ''}"


def examine(
    queue: Queue, *, mend: bool = False, max_attempts: int = MAX_ATTEMPTS, expected: Collection[str] = ()
) -> Iterator[Finding]:
    """
    What breaks the promises of one stage, one finding after the other.

    The queue may be at work meanwhile: what looks wrong is looked at again, at one moment, before it is named.

    :param mend: put right what can be; what was in two places keeps both records, one as the other's `previous`.
    :param expected: ids that are known to have been submitted.
    """
    wrong_keys = list(_wrong_keys(queue))
    yield from wrong_keys
    if wrong_keys:  # nothing else can be read for sure
        return
    yield from _in_progress(queue, max_attempts, mend=mend)
    yield from _ended(queue, max_attempts, mend=mend)
    yield from _times_of_nothing(queue, mend=mend)
    yield from _missing(queue, expected)


def _wrong_keys(queue: Queue) -> Iterator[Finding]:
    for name, wanted in _TYPES.items():
        key: str = getattr(queue.keys, name)
        found: bytes = queue.steps.command("type", key)
        if found not in (b"none", wanted):
            what = f"is a {found.decode()}, not a {wanted.decode()}; move it away (RENAME)"
            yield Finding(promise="key", item_id=key, what=what)


def _in_progress(queue: Queue, max_attempts: int, *, mend: bool) -> Iterator[Finding]:
    for page in pages(queue, Place.PROGRESS):
        ids = [item_id for item_id, _ in page]
        leases = times_of(queue, queue.keys.leases, ids)
        elsewhere = [records_of(queue, place, ids) for place in _BEST_FIRST]
        for at, (item_id, raw) in enumerate(page):
            record = read_record(raw)
            if not isinstance(record.get("token"), str):
                what = "is in progress without a token; the sweeper requeues it due to age"
                yield Finding(promise="I3", item_id=item_id, what=what)
            elif leases[at] is None and _still(queue, Place.PROGRESS, item_id, raw, queue.keys.leases):
                done = mend and give_time(queue, Place.PROGRESS, item_id, raw, in_ms=CLAIM_LEASE_MS)
                yield Finding(promise="I4", item_id=item_id, what="runs without a lease", mended=done)
            if any(records[at] is not None for records in elsewhere) and _places(queue, item_id) > {
                Place.PROGRESS
            }:
                what = "is in progress and has ended too; look again when it has ended once more"
                yield Finding(promise="I2", item_id=item_id, what=what)
            if _attempt(record) > max_attempts:
                yield Finding(promise="I5", item_id=item_id, what=f"runs for the {_attempt(record)}th time")


def _ended(queue: Queue, max_attempts: int, *, mend: bool) -> Iterator[Finding]:
    for number, place in enumerate(_BEST_FIRST):
        for page in pages(queue, place):
            ids = [item_id for item_id, _ in page]
            for worse in _BEST_FIRST[number + 1 :]:
                others = records_of(queue, worse, ids)
                for (item_id, _), other in zip(page, others, strict=True):
                    if other is not None and {place, worse} <= _places(queue, item_id):
                        done = mend and _merge(queue, item_id, place, worse)
                        yield Finding(
                            promise="I2", item_id=item_id, what=f"is in {place} and {worse}", mended=done
                        )
            if place in (Place.FAIL, Place.DEFERRED):
                yield from _without_time(queue, place, page, max_attempts, mend=mend)


def _without_time(
    queue: Queue, place: Place, page: Sequence[Seen], max_attempts: int, *, mend: bool
) -> Iterator[Finding]:
    due = times_of(queue, queue.keys.due, [item_id for item_id, _ in page])
    for (item_id, raw), time in zip(page, due, strict=True):
        record = read_record(raw)
        retries = place is Place.DEFERRED or record.get("retryable") is True
        if retries and time is None and _still(queue, place, item_id, raw, queue.keys.due):
            done = mend and give_time(queue, place, item_id, raw, in_ms=0)
            yield Finding(promise="I4", item_id=item_id, what=f"waits in {place} for no time", mended=done)
        if place is Place.FAIL and time is not None and _attempt(record) >= max_attempts:
            done = mend and bool(queue.steps.command("zrem", queue.keys.due, bytes_of_id(item_id)))
            what = f"would be tried for the {_attempt(record) + 1}th time"
            yield Finding(promise="I5", item_id=item_id, what=what, mended=done)


def _times_of_nothing(queue: Queue, *, mend: bool) -> Iterator[Finding]:
    for times, places in (
        (queue.keys.leases, (Place.PROGRESS,)),
        (queue.keys.due, (Place.FAIL, Place.DEFERRED)),
    ):
        for ids in ids_until(queue, times, _FOREVER_MS):
            found = [records_of(queue, place, ids) for place in places]
            for item_id, *records in zip(ids, *found, strict=True):
                if any(record is not None for record in records) or _places(queue, item_id) & set(places):
                    continue
                if queue.steps.command("zscore", times, bytes_of_id(item_id)) is None:
                    continue  # it ended between the two looks
                done = mend and queue.move(places[0], [(item_id, b"")], counter="mended")
                yield Finding(promise="I4", item_id=item_id, what=f"{times} names what is not there", mended=done)


def _missing(queue: Queue, expected: Collection[str]) -> Iterator[Finding]:
    """Places first, the inbox, then places again: an item can't slip past all three."""
    missing = _not_in_places(queue, list(expected))
    if not missing:
        return
    waits = {_id_of(queue, element) for page in waiting(queue) for element in page}
    for item_id in _not_in_places(queue, [item_id for item_id in missing if item_id not in waits]):
        yield Finding(promise="I1", item_id=item_id, what="was submitted and is nowhere; submit it again")


def _not_in_places(queue: Queue, ids: Sequence[str]) -> list[str]:
    missing = []
    for start in range(0, len(ids), PAGE):
        part = ids[start : start + PAGE]
        found = [records_of(queue, place, part) for place in Place]
        missing += [
            item for item, *records in zip(part, *found, strict=True) if all(one is None for one in records)
        ]
    return missing


def _merge(queue: Queue, item_id: str, keep: Place, drop: Place) -> bool:
    """Keep the better of two ends, the other as what came before it."""
    kept, dropped = records_of(queue, keep, [item_id])[0], records_of(queue, drop, [item_id])[0]
    if kept is None or dropped is None:
        return False
    better, other = read_record(kept), read_record(dropped)
    if better.get("previous"):
        other = {**other, "previous": [other.get("previous"), better["previous"]]}
    merged = encode({**better, "previous": other})
    keys = [queue.keys.hash_of(keep), queue.keys.hash_of(drop), queue.keys.due]
    return bool(queue.steps.run("merge", keys, [bytes_of_id(item_id), kept, dropped, merged]))


def _still(queue: Queue, place: Place, item_id: str, raw: bytes, times: str) -> bool:
    """Is the record there as it was seen, and still without a time?"""
    record, time = queue.look(item_id, queue.keys.hash_of(place), times)
    return record == raw and time is None


def _places(queue: Queue, item_id: str) -> set[Place]:
    found = queue.look(item_id, *(queue.keys.hash_of(place) for place in Place))
    return {place for place, record in zip(Place, found, strict=True) if record is not None}


def _attempt(record: Record) -> int:
    attempt = record.get("attempt")
    return attempt if isinstance(attempt, int) else 1


def _id_of(queue: Queue, element: bytes) -> str | None:
    try:
        return queue.stage.model.from_inbox(element).item_id
    except BadInput:
        return None
