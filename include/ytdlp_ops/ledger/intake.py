"""
From the table `pending_jobs` into an inbox: each row once, whatever dies meanwhile.

    pending ──lock, in SQL──> locked ──submit, under the rows' request id──> working ──> result | skipped | fail

A row is locked with the id of the request that it will be submitted under. An intake that dies leaves it locked;
the next one submits it again under that id, which the queue answers without doing it twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.ledger.schema import pending_jobs, utc_now
from include.ytdlp_ops.models import UrlItem
from include.ytdlp_ops.queues.queue import Queue

AT_ONCE = 500  # one call of the submit step: its answer is remembered as a whole
LEFT_AFTER_SECONDS = 60.0
_REMEMBERED_SECONDS = 3000.0  # less than the queue remembers a request
_TABLE = "pending_jobs"
_ids = pending_jobs.c


@dataclass(frozen=True, kw_only=True)
class TakenIn:
    """
    What one call took.

    :param submitted: rows that are in the queue now.
    :param refused: rows that no attempt can work on; they say why.
    """

    submitted: int = 0
    refused: int = 0


def take_in(queue: Queue, engine: sa.Engine, *, most: int = AT_ONCE) -> TakenIn:
    """
    Take up to `most` pending rows, 500 in a transaction; several may do so at once.

    Rows that an intake left locked a minute ago are submitted first.

    :param queue: of the stage auth or v01.
    """
    _submit_left(queue, engine)
    submitted = refused = 0
    while submitted + refused < most:
        request_id, good, bad = _lock(queue, engine, min(AT_ONCE, most - submitted - refused))
        if good:
            _submit(queue, engine, request_id, good)
        submitted, refused = submitted + len(good), refused + bad
        if not good and not bad:
            break
    return TakenIn(submitted=submitted, refused=refused)


def _lock(queue: Queue, engine: sa.Engine, most: int) -> tuple[str, list[UrlItem], int]:
    """Make rows one request's; rows that can't be items end here. Returns its id, the items, how many ended."""
    now_ms = queue.now_ms()
    good: list[tuple[int, UrlItem]] = []
    bad: list[dict[str, Any]] = []
    rows = sa.select(pending_jobs).where(_ids.status == "pending").order_by(_ids.id).limit(most)
    with engine.begin() as connection:
        for row in connection.execute(rows.with_for_update(skip_locked=True)).all():
            try:
                good.append((row.id, _item_of(row)))
            except BadInput as error:
                told = {"code": Code.BAD_INPUT, "message": str(error)}
                bad.append({"row_id": row.id, "told": json.dumps(told, ensure_ascii=False)})
        numbers = ",".join(str(row_id) for row_id, _ in good)
        request_id = hashlib.sha256(f"{now_ms}:{numbers}".encode()).hexdigest()[:32]
        if good:
            lock = sa.update(pending_jobs).where(_ids.id == sa.bindparam("row_id"))
            connection.execute(
                lock.values(
                    status="locked",
                    locked_time=utc_now(),
                    request_id=request_id,
                    queued_ms=now_ms,
                    item_id=sa.bindparam("item"),
                ),
                [{"row_id": row_id, "item": item.item_id} for row_id, item in good],
            )
        if bad:
            refuse = sa.update(pending_jobs).where(_ids.id == sa.bindparam("row_id"))
            connection.execute(
                refuse.values(status="fail", completed_time=utc_now(), result=sa.bindparam("told")), bad
            )
    return request_id, [item for _, item in good], len(bad)


def _submit(queue: Queue, engine: sa.Engine, request_id: str, items: Sequence[UrlItem]) -> None:
    """Submit one request's items, in the order of their rows, and say so in the rows."""
    answers = queue.submit(items, request_id=request_id)
    # Not strict: somebody may have deleted a locked row since the answer was given.
    done = [item.item_id for item, answer in zip(items, answers, strict=False) if answer == "already_done"]
    working: dict[str, Any] = {"status": "working", "working_time": utc_now(), "looked_time": utc_now()}
    of_request = sa.and_(_ids.request_id == request_id, _ids.status == "locked")
    with engine.begin() as connection:
        if done:  # whatever result there is, it is this row's
            connection.execute(
                sa.update(pending_jobs).where(of_request, _ids.item_id.in_(done)).values(**working, queued_ms=0)
            )
        connection.execute(sa.update(pending_jobs).where(of_request).values(**working))


def _submit_left(queue: Queue, engine: sa.Engine) -> None:
    """Requests that were locked and not submitted, or submitted and not said to be: again, under the same id."""
    before = datetime.now(UTC) - timedelta(seconds=LEFT_AFTER_SECONDS)
    with engine.begin() as connection:
        left = connection.scalars(
            sa.select(_ids.request_id).where(_ids.status == "locked", _ids.locked_time < before).distinct()
        ).all()
    for request_id in left:
        with engine.begin() as connection:
            of_request = sa.select(pending_jobs).where(_ids.request_id == request_id, _ids.status == "locked")
            rows = connection.execute(of_request.order_by(_ids.id)).all()
        items = [_item_of(row) for row in rows if not _came(queue, row)]
        _submit(queue, engine, request_id, items)


def _came(queue: Queue, row: sa.Row[Any]) -> bool:
    """Whether a row's item is in the queue, where the queue no longer remembers the request itself."""
    if datetime.now(UTC) - row.locked_time < timedelta(seconds=_REMEMBERED_SECONDS):
        return False
    found = queue.find(row.item_id)
    return found is not None and found[1].get("source") == _source_of(row)


def _item_of(row: sa.Row[Any]) -> UrlItem:
    """
    The item that a row asks for.

    :raises BadInput: with the column and what is wrong.
    """
    extra, tags = _json_of(row.extra, "extra", dict), _json_of(row.tags, "tags", list)
    fields = {
        "submitted_by": _TABLE,
        **(extra or {}),
        "url": row.url,
        "tags": tags or [],
        "source": _source_of(row),
    }
    item = UrlItem.from_record(fields)
    return UrlItem.from_inbox(item.to_inbox().encode())  # the queue's own limits


def _source_of(row: sa.Row[Any]) -> str:
    return f"{_TABLE}:{row.id}"


def _json_of(text: str | None, column: str, kind: type) -> Any:
    if not text:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{column} is no JSON: {error}") from None
    if not isinstance(value, kind):
        raise BadInput(f"{column} is a JSON {type(value).__name__}, not a {kind.__name__}")
    return value
