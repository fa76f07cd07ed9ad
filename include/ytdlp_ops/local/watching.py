"""What became of the URLs that were handed in: read from the queue's records, never from Airflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from include.ytdlp_ops.models import UrlItem
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.records import Record

if TYPE_CHECKING:
    from redis import Redis

ENDS = (Place.RESULT, Place.FAIL, Place.SKIPPED, Place.DEFERRED)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """
    One item as it is now.

    :param stage: ``auth``, ``dl`` or ``publish``.
    :param item_id: the field in the HASHes.
    :param place: where it is; None: it waits in the inbox.
    :param record: its record there.
    """

    stage: Stage
    item_id: str
    place: Place | None = None
    record: Record = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether it has its terminal record; one that will be tried again counts."""
        return self.place in ENDS


@dataclass(frozen=True, kw_only=True)
class SeenUrl:
    """
    A URL as it is now, with the jobs of its formats and what they are published as.

    :param url: as it was handed in.
    :param answer: the queue's word at submission: ``queued``, ``running`` or ``already_done``.
    """

    url: str
    answer: str
    auth: Seen
    jobs: tuple[Seen, ...] = ()
    publish: Seen | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen by itself in this attempt."""
        if self.auth.place is not Place.RESULT or self.publish is None:
            return self.auth.ended
        comes_back = any("retry_at" in job.record for job in self.jobs)
        return all(job.ended for job in self.jobs) and (comes_back or self.publish.ended)

    @property
    def steps(self) -> tuple[Seen, ...]:
        """Its items, in the order of their stages."""
        return (self.auth, *self.jobs, *([self.publish] if self.publish else []))

    @property
    def decisive(self) -> Seen:
        """The item that decides what became of the URL: its worst."""
        return max(self.steps, key=lambda seen: _BADNESS.get(seen.place, 0))

    @property
    def files(self) -> list[Record]:
        """The record of its published file, if there is one."""
        return [self.publish.record] if self.publish and self.publish.place is Place.RESULT else []


_BADNESS: dict[Place | None, int] = {Place.DEFERRED: 1, Place.SKIPPED: 2, Place.FAIL: 3}


class Watch:
    """
    Hands URLs in, and looks what becomes of them.

    :param client: of the queue's Redis.
    :param items: URL items; `formats` may be set in them.
    """

    def __init__(self, client: Redis, items: Sequence[UrlItem]) -> None:
        self._auth = Queue(client, Stage.AUTH)
        self._dl = Queue(client, Stage.DL)
        self._publish = Queue(client, Stage.PUBLISH)
        seconds, microseconds = client.time()  # type: ignore[misc]  # typed as awaitable too
        self._handed_in_at = seconds + microseconds / 1e6
        answers = self._auth.submit(items)
        self._items = list(zip(items, answers, strict=True))

    def look(self) -> list[SeenUrl]:
        """Each URL as it is now."""
        return [self._look_at(item, answer) for item, answer in self._items]

    def _look_at(self, item: UrlItem, answer: str) -> SeenUrl:
        # A record from before this request is not its answer: the claim will take it away.
        since = self._handed_in_at if answer == "queued" else 0.0
        auth = self._find(self._auth, item.item_id, since)
        jobs: list[str] = auth.record.get("jobs", []) if auth.place is Place.RESULT else []
        since = 0.0 if answer == "already_done" else _finished_at(auth.record)
        return SeenUrl(
            url=item.url,
            answer=answer,
            auth=auth,
            jobs=tuple(self._find(self._dl, job, since) for job in jobs),
            publish=self._find(self._publish, item.item_id, since) if jobs else None,
        )

    def _find(self, queue: Queue, item_id: str, since: float) -> Seen:
        place, record = queue.find(item_id) or (None, {})
        is_older = place in ENDS and _finished_at(record) < since
        if is_older and not (queue.stage is Stage.DL and place is Place.RESULT):  # a file that is there stays done
            place, record = None, {}
        return Seen(stage=queue.stage, item_id=item_id, place=place, record=record)


def _finished_at(record: dict[str, Any]) -> float:
    """Unix seconds; 0 for a record without a time."""
    text = record.get("finished_at")
    return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else 0.0
