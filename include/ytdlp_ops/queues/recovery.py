"""What brings items back, stalled, due or by hand; and what forgets old records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.models import Item, UrlItem
from include.ytdlp_ops.queues.adopting import STALE_AFTER_MS, leaseless
from include.ytdlp_ops.queues.backoff import MAX_ATTEMPTS
from include.ytdlp_ops.queues.cancelling import cancelled
from include.ytdlp_ops.queues.groups import join
from include.ytdlp_ops.queues.keys import Place, QueueKeys, Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.reading import Seen, ids_until, pages, records_of, when_ms
from include.ytdlp_ops.queues.records import Record, element_of, read_record, unescape

__all__ = ["MAX_ATTEMPTS", "Swept", "pages", "requeue", "sweep", "trim"]

_LONGEST_SELECTOR = 480  # UrlItem.formats takes 512


@dataclass(frozen=True, kw_only=True)
class Swept:
    """
    What one sweep of a stage moved.

    :param returned: stalled items, back into the inbox.
    :param dead: stalled items whose attempts are used up, and entries that can't be read: to fail, for good.
    :param cancelled: stalled items that were to be cancelled, to skipped.
    :param adopted: of these three, those that older tools had left without token or lease, requeued due to age.
    :param promoted: failed and deferred items whose time had come, back into an inbox.
    """

    returned: int = 0
    dead: int = 0
    cancelled: int = 0
    adopted: int = 0
    promoted: int = 0


def sweep(queue: Queue, *, max_attempts: int = MAX_ATTEMPTS, stale_after_ms: int = STALE_AFTER_MS) -> Swept:
    """
    Return a stage's stalled and due items; harmless when two do it at once.

    A stalled item goes back with its attempt counted; after `max_attempts` it stays in fail as a dead letter.

    :param stale_after_ms: the age, from its last sign of life on, at which an entry without token or lease is
        taken for stalled.
    """
    moved: Counter[str] = Counter()
    ended: list[str] = []
    for ids in ids_until(queue, queue.keys.leases, queue.now_ms()):
        for item_id, raw in zip(ids, records_of(queue, Place.PROGRESS, ids), strict=True):
            where = _put_back(queue, item_id, raw, max_attempts, only_past=True)
            moved[where] += 1
            ended += _video_of(queue, where, raw)
    for item_id, raw in leaseless(queue, stale_after_ms):
        where = _put_back(queue, item_id, raw, max_attempts, only_past=False)
        moved[where] += 1
        moved["adopted"] += bool(where)
        ended += _video_of(queue, where, raw)
    join(queue, ended)
    return Swept(
        returned=moved["returned"],
        dead=moved["dead"],
        cancelled=moved["cancelled"],
        adopted=moved["adopted"],
        promoted=_promote(queue),
    )


def requeue(
    queue: Queue, source: Place, seen: Sequence[Seen], *, only_due: bool = False, dry_run: bool = False
) -> int:
    """
    Put ended items back: dl by way of auth, for its formats alone, the rest into their own inbox.

    :param seen: item ids with their records as read; one that changed meanwhile stays where it is.
    :param only_due: the sweeper's: what is not due stays, and the attempt counts on, but for what was deferred;
        by hand it starts at 1.
    :param dry_run: move nothing.
    :returns: how many items were, or would be, moved.
    """
    if source is Place.PROGRESS:
        raise BadInput("items in progress are not requeued by hand; cancel them, or let the sweeper return them")
    moved = 0
    for together, inbox, element in elements_of(queue, seen, keep_attempt=only_due):
        if dry_run or queue.move(
            source,
            together,
            counter="promoted" if only_due else "requeued",
            inbox=inbox,
            element=element,
            only_past=only_due,
        ):
            moved += len(together)
    return moved


def trim(queue: Queue, place: Place, *, older_than_ms: int, most: int = 10_000) -> int:
    """
    Forget the records of result or skipped that ended so long ago; a copy that comes later is then done again.

    :param older_than_ms: age, from `finished_at` on; a record that tells none is kept.
    :param most: records to forget in this call.
    :returns: how many were forgotten.
    """
    if place not in (Place.RESULT, Place.SKIPPED):
        raise BadInput(f"{place} is not trimmed: its items are not at their end; trim result or skipped")
    before, forgotten = queue.now_ms() - older_than_ms, 0
    for page in pages(queue, place):
        old = [pair for pair in page if (when_ms(read_record(pair[1]).get("finished_at")) or before) < before]
        args: list[Any] = [value for pair in old[: most - forgotten] for value in pair]
        if args:
            keys = [queue.keys.hash_of(place), queue.keys.counters]
            forgotten += queue.steps.run("trim", keys, args)
        if forgotten >= most:
            break
    return forgotten


def _put_back(queue: Queue, item_id: str, raw: bytes | None, max_attempts: int, *, only_past: bool) -> str:
    """Move one stalled item; says where it went: nowhere if it changed meanwhile, or only its lease was left."""
    if raw is None:
        queue.move(Place.PROGRESS, [(item_id, b"")], counter="leases_dropped", only_past=only_past)
        return ""
    record = read_record(raw)
    item = _item_of(queue, item_id, record)
    if record.get("cancel_requested"):
        where, target = "cancelled", {"place": Place.SKIPPED, "record": cancelled(record)}
    elif item is not None and item.attempt < max_attempts:
        where, target = "returned", {"inbox": queue.keys.inbox, "element": _once_more(item)}
    else:
        why = f"stalled in attempt {item.attempt} of {max_attempts}" if item else "the record can't be read"
        where, target = "dead", {"place": Place.FAIL, "record": _dead_letter(queue, record, item_id, why)}
    counter = {"cancelled": "skipped:cancelled", "returned": "stalled", "dead": "dead"}[where]
    moved = queue.move(Place.PROGRESS, [(item_id, raw)], counter=counter, only_past=only_past, **target)  # type: ignore[arg-type]  # three shapes of one call
    return where if moved else ""


def _video_of(queue: Queue, where: str, raw: bytes | None) -> list[str]:
    """The video of a format that will not come any more: it may have been the last that its group waited for."""
    if queue.stage is not Stage.DL or where not in ("dead", "cancelled"):
        return []
    return [str(group)] if (group := read_record(raw or b"").get("group")) else []


def _promote(queue: Queue) -> int:
    promoted = 0
    for ids in ids_until(queue, queue.keys.due, queue.now_ms()):
        failed, deferred = (records_of(queue, place, ids) for place in (Place.FAIL, Place.DEFERRED))
        for place, records in ((Place.FAIL, failed), (Place.DEFERRED, deferred)):
            seen = [(item_id, raw) for item_id, raw in zip(ids, records, strict=True) if raw is not None]
            promoted += requeue(queue, place, seen, only_due=True)
        for item_id, one, other in zip(ids, failed, deferred, strict=True):
            if one is None and other is None:  # a due time that nothing waits for
                queue.move(Place.FAIL, [(item_id, b"")], counter="due_times_dropped", only_past=True)
    return promoted


def _item_of(queue: Queue, item_id: str, record: Record) -> Item | None:
    """The item that a record was made of; older tools often leave the URL in the id alone."""
    try:
        return queue.stage.model.from_record({"url": item_id, **record})
    except BadInput:
        return None


def _once_more(item: Item) -> str:
    return element_of(item, attempt=item.attempt + 1)


def _dead_letter(queue: Queue, record: Record, item_id: str, message: str) -> Record:
    return {
        **record,
        "id": item_id,
        "stage": queue.stage,
        "code": Code.STALLED,
        "reason": Code.STALLED,
        "outcome": Outcome.RETRY,
        "message": message,
        "retryable": False,
    }


def elements_of(
    queue: Queue, seen: Sequence[Seen], *, keep_attempt: bool
) -> Iterator[tuple[list[Seen], str, str | bytes]]:
    """What goes back together, into which inbox, as which element."""
    formats = []
    for item_id, raw in seen:
        record = read_record(raw)
        item = _item_of(queue, item_id, record)
        if record.get("code") == Code.BAD_INPUT:
            kept: Any = (
                queue.steps.command("hget", queue.keys.oversized, item_id) if "raw_bytes" in record else None
            )
            yield [(item_id, raw)], queue.keys.inbox, kept or unescape(str(record.get("raw", "")))
        elif item is None:  # goes to fail again, with what is wrong; never lost
            yield [(item_id, raw)], queue.keys.inbox, raw
        elif queue.stage is Stage.DL:
            formats.append(((item_id, raw), record))
        else:
            again = element_of(item, attempt=_next_attempt(record, keep_attempt), not_hosts=None)
            yield [(item_id, raw)], queue.keys.inbox, again
    auth = QueueKeys.of(Stage.AUTH, queue.keys.queue_base).inbox if formats else ""
    for together, element in _videos(formats, keep_attempt=keep_attempt):
        yield together, auth, element


def _videos(formats: Sequence[tuple[Seen, Record]], *, keep_attempt: bool) -> Iterator[tuple[list[Seen], str]]:
    """The formats of one video go back together: a request each would be one after the other."""

    def video(entry: tuple[Seen, Record]) -> tuple[str, str]:
        record = entry[1]
        return str(record.get("group") or record["url"]), str(record.get("profile") or "")

    for (url, _), entries in groupby(sorted(formats, key=video), key=video):
        for part in _parts(list(entries)):
            first = part[0][1]
            item = UrlItem.from_record(
                {
                    "url": url,
                    "formats": ",".join(record["format_id"] for _, record in part),
                    "attempt": max(_next_attempt(record, keep_attempt) for _, record in part),
                    "force": True,  # auth has a result for this video, and it may have asked for the same
                    "refresh": [pair[0] for pair, _ in part],
                    "wanted": list(dict.fromkeys(fmt for _, record in part for fmt in record.get("wanted") or [])),
                    **{key: first[key] for key in ("tags", "profile", "submitted_by", "source") if key in first},
                }
            )
            yield [pair for pair, _ in part], item.to_inbox()


def _parts(entries: list[tuple[Seen, Record]]) -> Iterator[list[tuple[Seen, Record]]]:
    """As many formats at once as a selector may name."""
    part: list[tuple[Seen, Record]] = []
    length = 0
    for entry in entries:
        length += len(entry[1]["format_id"]) + 1
        if part and length > _LONGEST_SELECTOR:
            yield part
            part, length = [], len(entry[1]["format_id"]) + 1
        part.append(entry)
    yield part


def _next_attempt(record: Record, keep_attempt: bool) -> int:
    """By hand an item begins anew; a deferral is no failed attempt."""
    if not keep_attempt:
        return 1
    attempt = int(record.get("attempt") or 1)
    return attempt if record.get("outcome") in (Outcome.DEFER, Outcome.OPERATOR) else attempt + 1
