"""One item's whole way: every stage, every place, every format, and what came before."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.queues.keys import Stage
from include.ytdlp_ops.queues.listing import INBOX, pages_of
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.records import Record
from include.ytdlp_ops.urls import canonical_url

if TYPE_CHECKING:
    from redis import Redis


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """
    An item in one place.

    :param stage: of which queue.
    :param where: ``inbox`` or the place.
    :param item_id: its id there.
    :param record: its record; of a waiting element, the item.
    """

    stage: Stage
    where: str
    item_id: str
    record: Record


def trace(client: Redis, item: str, *, queue_base: str | None = None) -> list[Sighting]:
    """
    Where a URL is with all its formats, or a format with its URL.

    Looks through the inboxes too: a second or two where a million wait.

    :param item: a URL, a YouTube id, or an item id of any stage.
    """
    try:
        ids = {canonical_url(item)}
    except BadInput:
        ids = {item}
    queues = [Queue(client, stage, queue_base=queue_base) for stage in Stage]
    seen: dict[tuple[Stage, str], Sighting] = {}
    looked_for: set[str] = set()
    while ids - looked_for:
        new = ids - looked_for
        looked_for |= new
        for queue in queues:
            for item_id in sorted(new):
                found = queue.find(item_id)
                if found:
                    place, record = found
                    seen[queue.stage, item_id] = Sighting(
                        stage=queue.stage, where=place, item_id=item_id, record=record
                    )
                    ids |= _relatives(record)
    return [*seen.values(), *_waiting(queues, ids)]


def _relatives(record: Record) -> set[str]:
    """The ids that a record names: the jobs of a URL, the URL of a job."""
    jobs, previous = record.get("jobs"), record.get("previous")
    named = {str(record[name]) for name in ("group", "url") if isinstance(record.get(name), str)}
    named |= {job for job in jobs if isinstance(job, str)} if isinstance(jobs, list) else set()
    return named | (_relatives(previous) if isinstance(previous, dict) else set())


def _waiting(queues: list[Queue], ids: set[str]) -> list[Sighting]:
    texts = {_text_in(item_id) for item_id in ids}
    return [
        Sighting(stage=queue.stage, where=INBOX, item_id=entry.item_id, record=entry.record)
        for queue in queues
        for text in texts
        for page in pages_of(queue, INBOX, texts=[text])
        for entry in page.entries
        if entry.item_id in ids
    ]


def _text_in(item_id: str) -> str:
    """What every spelling of an item holds: its longest word, the video's id where it is one of YouTube's."""
    without_host = item_id.partition("://")[2].partition("/")[2] or item_id
    return max(re.findall(r"[A-Za-z0-9_-]+", without_host), key=len, default="")
