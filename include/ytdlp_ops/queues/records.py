"""Records and elements as bytes and back: without loss, and readable by Lua and every other tool."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.models import MAX_ELEMENT_BYTES, Item

Record = dict[str, Any]
_STATE = frozenset({"state", "progress", "heartbeat_at", "not_hosts", "cancel_requested"})


def escape(raw: bytes) -> str:
    """Bytes as readable text, without loss: `unescape` gives them back."""
    return raw.decode("latin-1").encode("unicode_escape").decode("ascii")


def unescape(text: str) -> bytes:
    """The bytes that `escape` was given."""
    return text.encode("ascii").decode("unicode_escape").encode("latin-1")


def text_of_id(raw: bytes) -> str:
    """An item id as text; `bytes_of_id` gives the same bytes back, whatever an older tool wrote."""
    return raw.decode("utf-8", "surrogateescape")


def bytes_of_id(item_id: str) -> bytes:
    """The field in a HASH that `text_of_id` was given."""
    return item_id.encode("utf-8", "surrogateescape")


def read_record(raw: bytes) -> Record:
    """A record as a dict; what is no JSON object (older tools, damage) comes back escaped under `raw`."""
    try:
        record = from_json(raw, allow_inf_nan=False)
    except ValueError:
        record = None
    return record if isinstance(record, dict) else {"raw": escape(raw)}


def encode(record: Record) -> bytes:
    """
    A record as JSON that every reader takes: no NaN, no half of a surrogate pair.

    Both can come from outside (a speed that is infinite, a file name that is not UTF-8) and must not keep an
    item from its end.
    """
    try:
        return to_json(record, inf_nan_mode="null")
    except PydanticSerializationError:
        text = json.dumps(_finite(record), ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def bad_input_id(element: bytes) -> str:
    """The id under which an element that is none is kept: the same bytes, the same id."""
    return f"bad_input:{hashlib.sha1(element, usedforsecurity=False).hexdigest()}"


def bad_input(stage: str, message: str, element: bytes | None = None) -> Record:
    """The fail record of an element that no attempt can work on; without its bytes where Lua has them."""
    kept = {} if element is None else {"id": bad_input_id(element), "raw": escape(element)}
    return {
        "stage": stage,
        **kept,
        "attempt": 1,
        "code": Code.BAD_INPUT,
        "reason": Code.BAD_INPUT,
        "message": message,
        "retryable": False,
    }


def ended(record: Record, **outcome: Any) -> Record:
    """A progress record as a terminal one: no state, no progress, and of what came before only the last."""
    kept = {key: value for key, value in record.items() if key not in _STATE}
    if isinstance(kept.get("previous"), dict):
        kept["previous"] = _without_previous(kept["previous"])
    return {**kept, **outcome}


def element_of(item: Item, **changes: Any) -> str:
    """An item as an element to put back; `previous` goes along as far as an element may be long."""
    if item.previous is not None:
        changes["previous"] = _without_previous(item.previous)
    element = item.model_copy(update=changes).to_inbox()
    if len(element) > MAX_ELEMENT_BYTES // 2:  # characters: one may have four bytes
        element = item.model_copy(update={**changes, "previous": None}).to_inbox()
    return element


def wants(item: Item) -> str:
    """What an item asks for: two requests for one id that want the same are copies of each other."""
    return f"{getattr(item, 'formats', None) or ''}|{item.profile or ''}"


def _without_previous(record: Record) -> Record:
    return {key: value for key, value in record.items() if key not in {"previous", "log_tail"}}


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return value
