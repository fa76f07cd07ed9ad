"""What became of the rows of `pending_jobs`, written back into them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from include.ytdlp_ops.ledger.schema import pending_jobs, utc_now
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.reading import when_ms
from include.ytdlp_ops.queues.records import Record

_ids = pending_jobs.c
_OF_A_FILE = ("path", "bytes", "sha256", "format_id", "container", "duration")
_OF_A_REFUSAL = ("code", "message", "egress", "account", "attempt")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """
    How a row's URL ended.

    :param status: ``result``, ``skipped`` or ``fail``.
    :param result: what was made, or why not.
    :param output: where the files lie.
    """

    status: str
    result: Record
    output: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Queues:
    """
    The queues that a row's URL goes through.

    :param first: auth or v01: where rows are submitted to.
    :param dl: the formats' queue; None where the first does it all.
    :param publish: the last queue, where a URL is done only there.
    """

    first: Queue
    dl: Queue | None = None
    publish: Queue | None = None

    @classmethod
    def of(cls, first: Queue, *, until: str) -> Queues:
        """
        The queues from `first` on.

        :param until: the last stage: ``dl`` or ``publish``; v01 is all of them by itself.
        """
        if first.stage is Stage.V01:
            return cls(first=first)
        base = first.keys.queue_base
        publish = Queue(first.client, Stage.PUBLISH, queue_base=base) if until == Stage.PUBLISH else None
        return cls(first=first, dl=Queue(first.client, Stage.DL, queue_base=base), publish=publish)


def write_back(queues: Queues, engine: sa.Engine, *, most: int = 2000) -> int:
    """
    Look for the ends of up to `most` rows, those first that were not looked for longest.

    :returns: how many rows were completed.
    """
    working = (
        sa.select(pending_jobs).where(_ids.status == "working").order_by(_ids.looked_time, _ids.id).limit(most)
    )
    with engine.begin() as connection:
        rows = connection.execute(working).all()
    completed = 0
    for start in range(0, len(rows), 500):
        completed += _write_back(queues, engine, rows[start : start + 500])
    return completed


def _write_back(queues: Queues, engine: sa.Engine, rows: Sequence[sa.Row[Any]]) -> int:
    ended, jobs_of = [], []
    for row in rows:
        jobs = set(json.loads(row.jobs or "[]"))
        answer = _answer(queues, row, jobs)
        if answer:
            ended.append({
                "row_id": row.id,
                "end": answer.status,
                "told": json.dumps(answer.result, ensure_ascii=False),
                "paths": json.dumps(answer.output, ensure_ascii=False),
            })  # fmt: skip
        elif jobs:
            jobs_of.append({"row_id": row.id, "named": json.dumps(sorted(jobs))})
    this_row = sa.and_(_ids.id == sa.bindparam("row_id"), _ids.status == "working")
    with engine.begin() as connection:
        looked = sa.update(pending_jobs).where(_ids.id.in_([row.id for row in rows]))
        connection.execute(looked.values(looked_time=utc_now()))
        if jobs_of:
            update = sa.update(pending_jobs).where(this_row).values(jobs=sa.bindparam("named"))
            connection.execute(update, jobs_of)
        if ended:
            update = sa.update(pending_jobs).where(this_row).values(
                status=sa.bindparam("end"),
                completed_time=utc_now(),
                result=sa.bindparam("told"),
                output=sa.bindparam("paths"),
            )  # fmt: skip
            connection.execute(update, ended)
    return len(ended)


def _answer(queues: Queues, row: sa.Row[Any], jobs: set[str]) -> Answer | None:
    """How a row's URL ended; nothing while it has not. Adds to `jobs` the formats that it became."""
    since_ms = row.queued_ms or 0
    if queues.publish and (published := _end_of(queues.publish, row.item_id, since_ms)):
        return _answer_of(*published)
    first = _end_of(queues.first, row.item_id, since_ms)
    if first and first[0] is Place.RESULT and queues.dl:
        jobs |= {job for job in first[1].get("jobs") or () if isinstance(job, str)}
    elif first:
        return _answer_of(*first)
    if not jobs or not queues.dl or not first:
        return None
    ends = [_end_of(queues.dl, job, since_ms) for job in sorted(jobs)]
    if any(end is None for end in ends):
        return None
    return _together([end for end in ends if end], until_dl=queues.publish is None)


def _together(ends: Sequence[tuple[Place, Record]], *, until_dl: bool) -> Answer | None:
    """The end of a URL whose formats have all ended: its worst, with the files that there are."""
    answers = [_answer_of(*end) for end in ends]
    output = [path for answer in answers for path in answer.output]
    worst = next((answer for status in ("fail", "skipped") for answer in answers if answer.status == status), None)
    if worst:
        return Answer(status=worst.status, result=worst.result, output=output)
    if not until_dl:  # publish has yet to say
        return None
    files = [file for answer in answers for file in answer.result["files"]]
    return Answer(status="result", result={"files": files}, output=output)


def _end_of(queue: Queue, item_id: str, since_ms: int) -> tuple[Place, Record] | None:
    """An item's end for good, where it is not one from before the row; a file that is there stays done."""
    place, record = queue.find(item_id) or (None, {})
    is_older = (when_ms(record.get("finished_at")) or 0) < since_ms
    if place is Place.RESULT:
        return None if is_older and queue.stage is not Stage.DL else (place, record)
    if place is Place.SKIPPED or (place is Place.FAIL and record.get("retryable") is not True):
        return None if is_older else (place, record)
    return None


def _answer_of(place: Place, record: Record) -> Answer:
    if place is not Place.RESULT:
        told = {name: record[name] for name in _OF_A_REFUSAL if record.get(name) is not None}
        return Answer(status=str(place), result=told)
    files = list(_files_of(record))
    return Answer(
        status="result",
        result={"files": [{name: file[name] for name in _OF_A_FILE if name in file} for file in files]},
        output=[str(file["path"]) for file in files],
    )


def _files_of(record: Record) -> Iterator[Mapping[str, Any]]:
    """The files that a result names: its own, or those of each format."""
    files = record.get("files")
    for file in files if isinstance(files, list) else [record]:
        if isinstance(file, dict) and file.get("path"):
            yield file
