"""Looking through any place of a queue, page by page, and writing what was found as a file."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.queues.filtering import Filter
from include.ytdlp_ops.queues.keys import Place, QueueKeys
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.records import Record, encode, escape, read_record, text_of_id

INBOX = "inbox"
PAGE = 500
PAGE_WITH_TEXTS = 1000  # about 2 ms of the server's time, which sends little of it
LONGEST_LOOK_SECONDS = 1.0
COLUMNS = (
    "stage", "place", "id", "url", "code", "message", "attempt", "retryable", "retry_at", "host", "egress",
    "account", "tags", "submitted_at", "claimed_at", "started_at", "finished_at", "path", "bytes",
)  # fmt: skip
"""Columns of a CSV file; JSON lines have every field of a record."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """
    One entry of a LIST or HASH.

    :param item_id: its item's id; of an element that is none: empty.
    :param raw: as it lies there.
    :param record: what it says; of an element that is none, its bytes under ``raw``.
    """

    item_id: str
    raw: bytes
    record: Record


@dataclass(frozen=True, kw_only=True)
class Page:
    """
    A part of a place.

    :param entries: what was meant.
    :param looked_at: entries looked at, also those that were not meant.
    :param cursor: where the next page begins; ``0`` after the last.
    """

    entries: list[Entry]
    looked_at: int
    cursor: str


def key_of(keys: QueueKeys, where: str) -> str:
    """The LIST or HASH of ``inbox`` or a place."""
    return keys.inbox if where == INBOX else keys.hash_of(Place(where))


def pages_of(
    queue: Queue, where: str, wanted: Filter | None = None, *, cursor: str = "0", texts: Sequence[str] = ()
) -> Iterator[Page]:
    """
    A place, page by page; what moves meanwhile may come twice or not at all.

    :param where: ``inbox`` or the name of a place.
    :param cursor: of an earlier page, to go on from there.
    :param texts: what an entry must hold besides; the server looks for it.
    :raises BadInput: for a cursor that is none.
    """
    if not cursor.isdecimal():
        raise BadInput(f"cursor {cursor!r} is none; give the one that the last page ended with, or 0")
    wanted = wanted or Filter()
    now_ms, texts = queue.now_ms(), [*wanted.needles(), *texts]
    kind, count = "list" if where == INBOX else "hash", PAGE_WITH_TEXTS if texts else PAGE
    while True:
        answer = queue.steps.run("find", [key_of(queue.keys, where)], [kind, cursor, count, *texts])
        cursor = answer[0].decode()
        found = [_entry(queue, where, *pair) for pair in zip(answer[2::2], answer[3::2], strict=True)]
        entries = [entry for entry in found if wanted.takes(entry.item_id, entry.record, now_ms)]
        yield Page(entries=entries, looked_at=answer[1], cursor=cursor)
        if cursor == "0":
            return


def first_page(
    queue: Queue,
    where: str,
    wanted: Filter,
    *,
    limit: int,
    cursor: str = "0",
    longest_seconds: float = LONGEST_LOOK_SECONDS,
) -> Page:
    """
    The next entries that are meant: as many whole pages as it takes for `limit` of them.

    :param longest_seconds: after so long what was found comes back, with the cursor to go on with.
    """
    entries: list[Entry] = []
    looked_at, end = 0, time.monotonic() + longest_seconds
    for page in pages_of(queue, where, wanted, cursor=cursor):
        entries += page.entries
        looked_at, cursor = looked_at + page.looked_at, page.cursor
        if len(entries) >= limit or time.monotonic() > end:
            break
    return Page(entries=entries, looked_at=looked_at, cursor=cursor)


def as_json_lines(stage: str, where: str, entries: Iterable[Entry]) -> Iterator[bytes]:
    """One JSON object an entry: its record, with stage and place."""
    for entry in entries:
        yield encode({**entry.record, "id": entry.item_id, "stage": stage, "place": where}) + b"\n"


def as_csv(stage: str, where: str, entries: Iterable[Entry]) -> Iterator[bytes]:
    """A line of names, then one line an entry."""
    line = io.StringIO()
    writer = csv.DictWriter(line, COLUMNS, extrasaction="ignore")
    writer.writeheader()
    for entry in entries:
        fields = {**entry.record, "id": entry.item_id, "stage": stage, "place": where}
        writer.writerow({name: _cell(value) for name, value in fields.items()})
        yield line.getvalue().encode("utf-8", "replace")
        line.seek(0)
        line.truncate()
    yield line.getvalue().encode()


def _cell(value: object) -> object:
    """A value for a spreadsheet: what it would run as a formula gets a quote in front."""
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _entry(queue: Queue, where: str, field: bytes, raw: bytes) -> Entry:
    if where != INBOX:
        return Entry(item_id=text_of_id(field), raw=raw, record=read_record(raw))
    try:
        item = queue.stage.model.from_inbox(raw)
    except BadInput as error:
        return Entry(item_id="", raw=raw, record={"raw": escape(raw), "code": "bad_input", "message": str(error)})
    return Entry(item_id=item.item_id, raw=raw, record=item.to_conf())
