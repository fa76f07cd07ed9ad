"""A finished record as a row of the ledger."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from include.ytdlp_ops.ledger.schema import outcomes
from include.ytdlp_ops.queues.keys import QueueKeys
from include.ytdlp_ops.queues.reading import when_ms
from include.ytdlp_ops.queues.records import bytes_of_id, read_record

Row = dict[str, Any]
LONGEST_TEXT = 4000
_COPIED = ("code", "outcome", "message", "url", "extractor", "video_id", "format_id", "profile", "source",
           "submitted_by", "egress", "account", "host", "dag_id", "run_id")  # fmt: skip
_TIMES = ("submitted_at", "claimed_at", "started_at", "finished_at")
_LENGTHS = {
    column.name: getattr(column.type, "length", None) or LONGEST_TEXT
    for column in outcomes.columns
    if isinstance(column.type, sa.String)
}


def row_of(keys: QueueKeys, place: str, item_id: str, raw: bytes) -> Row:
    """
    The row of one attempt's end.

    Its id is the same whenever this end is seen again: of base, stage, item, place, and the attempt's token;
    of a record without a token (older tools) all its bytes.
    """
    record = read_record(raw)
    token = record.get("token")
    proof = token.encode() if isinstance(token, str) else raw
    parts = (keys.queue_base.encode(), keys.stage.encode(), bytes_of_id(item_id), place.encode(), proof)
    files = record.get("files")
    made = files if isinstance(files, list) and all(isinstance(file, dict) for file in files) else [record]
    size = sum(file["bytes"] for file in made if isinstance(file.get("bytes"), int))
    path = next((str(file["path"]) for file in made if file.get("path")), None)
    row: Row = {
        "outcome_id": hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest(),
        "item_hash": item_hash(item_id),
        "queue_base": keys.queue_base,
        "stage": str(keys.stage),
        "item_id": item_id,
        "place": place,
        **{name: record.get(name) for name in _COPIED},
        "tags": json.dumps(record["tags"], ensure_ascii=False) if record.get("tags") else None,
        "path": path,
        "destination": path.rpartition("/")[0] if path else None,
        "attempt": _whole(record.get("attempt"), 31),
        "bytes": _whole(sum(size for file in made if isinstance(size := file.get("bytes"), int)), 63)
        if path
        else None,
        "duration_seconds": _number(made[0].get("duration")) if made else None,
        **{name: _moment(record.get(name)) for name in _TIMES},
    }
    row["message"] = row["message"] or record.get("raw")
    return {name: _clean(value, _LENGTHS[name]) if name in _LENGTHS else value for name, value in row.items()}


def item_hash(item_id: str) -> str:
    """What an item's rows are looked up by."""
    return hashlib.sha256(bytes_of_id(item_id)).hexdigest()


def _clean(value: object, length: int) -> str | None:
    """Text that every database takes: no NUL, no half characters, not too long."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text[:length].replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _whole(value: object, bits: int) -> int | None:
    return value if isinstance(value, int) and abs(value) < 1 << bits else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _moment(stamp: object) -> datetime | None:
    ms = when_ms(stamp) if stamp is not None else None
    return None if ms is None or not 0 <= ms < 1 << 43 else datetime.fromtimestamp(ms / 1000, UTC)
