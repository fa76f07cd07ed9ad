"""Short ways to bring items into a state, and to look at a whole queue."""

from __future__ import annotations

import json
from typing import Any

import redis  # noqa: TID253 - a test's module, no DAG file imports it

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.models import FormatItem
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue, Record
from include.ytdlp_ops.queues.reading import Seen, pages

URL = "https://www.youtube.com/watch?v=dQw4w9WgXcQ"


def url_of(number: int) -> str:
    """The canonical URL of one of many videos."""
    return f"https://www.youtube.com/watch?v={number:011d}"


def claimed(queue: Queue, element: str | bytes = URL) -> Record:
    """A claimed item's record; it came in as a producer pushes it."""
    queue.client.rpush(queue.keys.inbox, element)
    (record,) = queue.claim(1).records
    return record


def begun(queue: Queue, element: str | bytes = URL) -> Record:
    """A running item's record."""
    record = claimed(queue, element)
    return queue.begin(record["id"], record["token"], host="here", dag_id="d", run_id="r")


def failed(queue: Queue, element: str | bytes = URL, *, due_in_ms: int | None = None, **outcome: Any) -> Record:
    """A failed item's record."""
    record = begun(queue, element)
    queue.finish(record, Place.FAIL, {"code": "network", "retryable": True, **outcome}, due_in_ms=due_in_ms)
    return record


def format_job(format_id: str = "299", video_id: str = "dQw4w9WgXcQ", **fields: Any) -> FormatItem:
    """One format's job."""
    url = f"https://www.youtube.com/watch?v={video_id}"
    return FormatItem(
        url=url,
        extractor="youtube",
        video_id=video_id,
        format_id=format_id,
        info_json_path="file:///infos/x",
        **{"group": url, **fields},
    )


def inbox_of(queue: Queue) -> list[Any]:
    """What waits, head first: JSON as read, the rest as text."""
    elements: list[bytes] = queue.client.lrange(queue.keys.inbox, 0, -1)  # type: ignore[assignment]  # typed as awaitable too
    return [json.loads(element) if element.startswith(b"{") else element.decode() for element in elements]


def record_in(queue: Queue, place: Place, item_id: str = URL) -> Record:
    """An item's record in one place; the test fails where there is none."""
    raw: Any = queue.client.hget(queue.keys.hash_of(place), item_id)
    record: Record = json.loads(raw)
    return record


def where(queue: Queue, item_id: str = URL) -> list[str]:
    """Every place that an item is in, the inbox once for each element."""
    places = [str(place) for place in Place if queue.client.hexists(queue.keys.hash_of(place), item_id)]
    elements: list[bytes] = queue.client.lrange(queue.keys.inbox, 0, -1)  # type: ignore[assignment]  # typed as awaitable too
    return ["inbox" for element in elements if _id_of(queue, element) == item_id] + places


def _id_of(queue: Queue, element: bytes) -> str | None:
    try:
        return queue.stage.model.from_inbox(element).item_id
    except BadInput:
        return None


def stall(queue: Queue, *item_ids: str) -> None:
    """Put the leases of items, or of all, into the past."""
    ids: Any = item_ids or queue.client.zrange(queue.keys.leases, 0, -1)
    queue.client.zadd(queue.keys.leases, dict.fromkeys(ids, 1), xx=True)


def make_due(queue: Queue) -> None:
    """Put all due times into the past."""
    ids: Any = queue.client.zrange(queue.keys.due, 0, -1)
    queue.client.zadd(queue.keys.due, dict.fromkeys(ids, 1), xx=True)


def seen(queue: Queue, place: Place) -> list[Seen]:
    """All records of one place."""
    return [pair for page in pages(queue, place) for pair in page]


def everything(client: redis.Redis) -> dict[bytes, bytes]:
    """The whole server, key by key as its DUMP: equal before and after means that nothing was written."""
    return {key: client.dump(key) for key in sorted(client.scan_iter(count=1000))}  # type: ignore[misc]  # typed as awaitable too
