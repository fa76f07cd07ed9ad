"""Many ended items back at once, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.queues.filtering import Filter
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.listing import pages_of
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.reading import Seen
from include.ytdlp_ops.queues.records import bytes_of_id
from include.ytdlp_ops.queues.recovery import elements_of

SOURCES = (Place.FAIL, Place.SKIPPED, Place.DEFERRED, Place.RESULT)
_GROUPS_AT_ONCE = 100  # about 1 ms of the server's time


def take_back(
    queue: Queue, source: Place, *, limit: int, dry_run: bool, wanted: Filter | None = None
) -> tuple[int, list[str]]:
    """
    Requeue up to `limit` items of one place, hundreds in a step: dl by way of auth, the rest into their inbox.

    Each item moves whole or not at all, so that stopped anywhere it can be run again.

    :returns: how many items were, or would be, moved; and the first ids of them.
    :raises BadInput: for a place that nothing is requeued from.
    """
    if source not in SOURCES:
        raise BadInput(f"source {source!r} is none of {', '.join(SOURCES)}; what runs is cancelled, or swept")
    moved, shown = 0, list[str]()
    for page in pages_of(queue, source, wanted):
        seen = list({entry.item_id: (entry.item_id, entry.raw) for entry in page.entries}.values())
        seen = seen[: limit - moved]
        shown += [item_id for item_id, _ in seen[: 10 - len(shown)]]
        moved += len(seen) if dry_run else _move(queue, source, seen)
        if moved >= limit:
            break
    return moved, shown


def _move(queue: Queue, source: Place, seen: Sequence[Seen]) -> int:
    groups = list(elements_of(queue, seen, keep_attempt=False))
    inboxes = sorted({inbox for _, inbox, _ in groups})
    of = queue.keys
    keys = [of.hash_of(source), of.due, of.counters, of.ledger, of.attempts, *inboxes]
    moved = 0
    for start in range(0, len(groups), _GROUPS_AT_ONCE):
        args: list[Any] = ["requeued"]
        for together, inbox, element in groups[start : start + _GROUPS_AT_ONCE]:
            args += [inboxes.index(inbox) + 1, element, len(together)]
            for item_id, raw in together:
                args += [bytes_of_id(item_id), raw]
        moved += queue.steps.run("moves", keys, args)
    return moved
