"""Finished records from Redis into SQL: first in, then out; killed anywhere, it is run again without harm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.ledger.rows import Row, row_of
from include.ytdlp_ops.ledger.schema import outcomes, pending_jobs
from include.ytdlp_ops.queues.filtering import last_step_ms
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.reading import Seen, pages
from include.ytdlp_ops.queues.records import Record, bytes_of_id, encode, read_record
from include.ytdlp_ops.queues.remembering import archived_until, kept_pages, set_archived_until

KEEP_SECONDS = 7 * 24 * 3600
LEAST_KEEP_SECONDS = 3600  # what runs (a video's other formats, an intake) still reads the records
_ENDS = (Place.RESULT, Place.SKIPPED, Place.FAIL, Place.DEFERRED)
_KEPT_OF_A_RESULT = ("formats", "profile", "path", "jobs", "finished_at", "submitted_again",
                     "group", "format_id", "bytes", "sha256")  # fmt: skip
_AT_ONCE = 1000


@dataclass(frozen=True, kw_only=True)
class Archived:
    """
    What one archiving of a stage did.

    :param looked_at: records read.
    :param written: rows that were new.
    :param shortened: results of which Redis keeps only that they are done.
    :param forgotten: skips that Redis keeps no more.
    """

    looked_at: int = 0
    written: int = 0
    shortened: int = 0
    forgotten: int = 0

    def __add__(self, other: Archived) -> Archived:
        return Archived(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)})


def archive(
    queue: Queue, engine: sa.Engine, *, keep_seconds: float = KEEP_SECONDS, everything: bool = False
) -> Archived:
    """
    Archive a stage's ends; harmless when two do it at once.

    What fails or is put off stays in Redis, where it is tried again or waits for a person.

    :param keep_seconds: the age from which on Redis keeps of a result only that it is done, and forgets a skip.
    :param everything: look at all records, not only at those since the last archiving: after a loss in SQL.
    :raises BadInput: if it is kept for less than an hour.
    """
    if keep_seconds < LEAST_KEEP_SECONDS:
        raise BadInput(
            f"keep_seconds {keep_seconds:g} is less than {LEAST_KEEP_SECONDS}: what runs reads records so old"
        )
    begun_ms = queue.now_ms()
    since_ms = archived_until(queue)
    if since_ms is None:
        set_archived_until(queue, 0)  # from now on records that give way are kept
    done = _archive_kept(queue, engine)
    window = _Window(0 if everything else since_ms or 0, begun_ms - round(keep_seconds * 1000))
    for place in _ENDS:
        for page in pages(queue, place):
            done += _archive_page(queue, engine, place, page, window)
    set_archived_until(queue, begun_ms)
    return done


def forget(engine: sa.Engine, *, older_than: timedelta) -> int:
    """
    Delete the ledger's rows, and completed jobs, that ended so long ago; a thousand in a transaction.

    :returns: how many were deleted.
    """
    deleted, before = 0, datetime.now(UTC) - older_than
    for table, ident, ended in (
        (outcomes, outcomes.c.outcome_id, outcomes.c.finished_at),
        (pending_jobs, pending_jobs.c.id, pending_jobs.c.completed_time),
    ):
        while True:
            with engine.begin() as connection:
                ids = connection.scalars(sa.select(ident).where(ended < before).limit(_AT_ONCE)).all()
                connection.execute(sa.delete(table).where(ident.in_(ids)))
            deleted += len(ids)
            if len(ids) < _AT_ONCE:
                break
    return deleted


@dataclass(frozen=True)
class _Window:
    since_ms: int
    before_ms: int

    def writes(self, ms: int | None) -> bool:
        """Whether an end may not be in SQL yet: one without a time is looked at once, the first time."""
        return self.since_ms == 0 if ms is None else ms >= self.since_ms or ms < self.before_ms

    def is_past(self, ms: int | None) -> bool:
        return ms is not None and ms < self.before_ms


def _archive_kept(queue: Queue, engine: sa.Engine) -> Archived:
    """The attempts whose items went on to the next."""
    done, key = Archived(), queue.keys.attempts
    for page in kept_pages(queue):
        seen = [pair for _, pair in page]
        rows = [row_of(queue.keys, _place_of(read_record(raw)), item_id, raw) for item_id, raw in seen]
        written = _write(engine, rows)
        queue.steps.run("drop", [key, queue.keys.due], _drop_args((field, raw) for field, (_, raw) in page))
        done += Archived(looked_at=len(page), written=written)
    return done


def _archive_page(
    queue: Queue, engine: sa.Engine, place: Place, page: Sequence[Seen], window: _Window
) -> Archived:
    rows: list[Row] = []
    past: list[tuple[Seen, Record]] = []
    for item_id, raw in page:
        record = read_record(raw)
        ms = last_step_ms(record)
        if record.get("archived") is True or not window.writes(ms):
            continue
        rows.append(row_of(queue.keys, place, item_id, raw))
        if window.is_past(ms):
            past.append(((item_id, raw), record))
    done = Archived(looked_at=len(page), written=_write(engine, rows))
    past = _without_waiting(queue, past) if queue.stage is Stage.DL else past
    if place is Place.RESULT and past:
        args = [value for (item_id, raw), record in past for value in (item_id, raw, _shortened(item_id, record))]
        done += Archived(shortened=queue.steps.run("replace", [queue.keys.result], _as_bytes(args)))
    if place is Place.SKIPPED and past:
        args = _drop_args((bytes_of_id(item_id), raw) for (item_id, raw), _ in past)
        done += Archived(forgotten=queue.steps.run("drop", [queue.keys.skipped, queue.keys.due], args))
    return done


def _without_waiting(queue: Queue, past: list[tuple[Seen, Record]]) -> list[tuple[Seen, Record]]:
    """Formats of videos that wait for others are left as they are: publish will read them."""
    videos = [str(record.get("group") or record.get("url")) for _, record in past]
    groups = queue.steps.command("hmget", queue.keys.groups, videos) if videos else []
    return [pair for pair, group in zip(past, groups, strict=True) if group is None]


def _shortened(item_id: str, record: Record) -> bytes:
    """What stays of a result: that it is done, of what it was asked for, and where it lies."""
    kept = {name: record[name] for name in _KEPT_OF_A_RESULT if record.get(name) is not None}
    if isinstance(record.get("files"), list):
        kept["files"] = [{"path": file.get("path")} for file in record["files"] if isinstance(file, dict)]
    return encode({"id": item_id, **kept, "archived": True})


def _place_of(record: Record) -> Place:
    """Where a kept record was: the queue's own words tell it."""
    if record.get("outcome") in ("defer", "operator"):
        return Place.DEFERRED
    return Place.FAIL if record.get("code") else Place.RESULT


def _drop_args(entries: Iterable[tuple[bytes, bytes]]) -> list[Any]:
    return ["hash", *(value for entry in entries for value in entry)]


def _as_bytes(args: Sequence[str | bytes]) -> list[bytes]:
    return [bytes_of_id(value) if isinstance(value, str) else value for value in args]


def _write(engine: sa.Engine, rows: Sequence[Row]) -> int:
    """Insert what is not there yet; returns how much that was."""
    if not rows:
        return 0
    ordered = sorted(rows, key=lambda row: str(row["outcome_id"]))  # two archives at once never wait in a ring
    with engine.begin() as connection:
        ids = [row["outcome_id"] for row in ordered]
        there = set(
            connection.scalars(sa.select(outcomes.c.outcome_id).where(outcomes.c.outcome_id.in_(ids))).all()
        )
        new = [row for row in ordered if row["outcome_id"] not in there]
        if new:
            connection.execute(_insert_or_ignore(engine.dialect.name), new)
    return len(new)


def _insert_or_ignore(dialect: str) -> sa.Executable:
    """Another archive may have written a row since it was looked for."""
    ignoring: sa.Executable
    if dialect == "mysql":
        insert = mysql.insert(outcomes)
        ignoring = insert.on_duplicate_key_update(outcome_id=insert.inserted.outcome_id)
        return ignoring
    kind = postgresql if dialect == "postgresql" else sqlite
    ignoring = kind.insert(outcomes).on_conflict_do_nothing(index_elements=[outcomes.c.outcome_id])
    return ignoring
