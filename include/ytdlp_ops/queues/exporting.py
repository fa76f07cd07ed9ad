"""
A whole queue as JSON lines, and one key of it; `importing` puts them back, the same bytes.

    {"ytdlp_ops_queue": 1, "queue_base": …}                    the first line
    {"stage": "auth", "key": "inbox", "value": "…"}            an element, in order
    {"stage": "auth", "key": "fail", "name": "…", "value": "…"}
    {"stage": "auth", "key": "due", "name": "…", "score": 1764488123000}
    {"lines": 3}                                               the last line: the file is whole

Bytes that are not UTF-8 are written under ``name_base64`` and ``value_base64``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any

from include.ytdlp_ops.queues.keys import Place, QueueKeys, Stage
from include.ytdlp_ops.queues.queue import Queue

VERSION = 1
PAGE = 500
KINDS: dict[str, str] = {
    "inbox": "list", **dict.fromkeys(Place, "hash"), "leases": "zset", "due": "zset", "orphans": "zset",
    "oversized": "hash", "pause": "hash", "counters": "hash", "groups": "hash", "limits": "hash",
}  # fmt: skip
"""What is saved of a stage, and of what type it is; the rest (circuit, requests) is of the moment."""
_OF_ALL_STAGES = {"groups": (Stage.DL,), "limits": (Stage.V01, Stage.AUTH)}
"""Keys that the stages of one installation share, and with which of them they are saved."""
Entry = tuple[bytes, bytes]
"""Field or member (of a LIST: empty), and value or score."""


def key_named(keys: QueueKeys, name: str) -> str:
    """The Redis key of one of `KINDS`."""
    key: str = getattr(keys, name)
    return key


def lines_of(queues: Sequence[Queue], names: Sequence[str] = tuple(KINDS)) -> Iterator[bytes]:
    """
    The lines of a file with these stages' keys.

    Pause the stages first, and let them drain: what moves meanwhile may be there twice or not at all.
    """
    yield _line({"ytdlp_ops_queue": VERSION, "queue_base": queues[0].keys.queue_base})
    lines = 0
    for queue in queues:
        for name in names:
            if queue.stage not in _OF_ALL_STAGES.get(name, (queue.stage,)):
                continue
            for page in entries_of(queue, name):
                for entry in page:
                    lines += 1
                    yield line_of(queue.stage, name, entry)
    yield _line({"lines": lines})


def line_of(stage: str, name: str, entry: Entry) -> bytes:
    """One entry as a line."""
    kind = KINDS[name]
    fields: dict[str, Any] = {"stage": stage, "key": name}
    if kind != "list":
        fields |= _text("name", entry[0])
    fields |= {"score": float(entry[1])} if kind == "zset" else _text("value", entry[1])
    return _line(fields)


def entries_of(queue: Queue, name: str) -> Iterator[list[Entry]]:
    """What lies in one key, page by page; a LIST from its head."""
    key, kind = key_named(queue.keys, name), KINDS[name]
    cursor = 0
    while True:
        if kind == "list":
            elements: list[bytes] = queue.steps.command("lrange", key, cursor, cursor + PAGE - 1)
            page = [(b"", element) for element in elements]
            cursor = cursor + PAGE if len(page) == PAGE else 0
        elif kind == "hash":
            cursor, found = queue.steps.command("hscan", key, cursor, count=PAGE)
            page = list(found.items())
        else:
            scored: list[tuple[bytes, float]] = queue.steps.command(
                "zrange", key, cursor, cursor + PAGE - 1, withscores=True
            )
            page = [(member, score_text(score)) for member, score in scored]
            cursor = cursor + PAGE if len(page) == PAGE else 0
        if page:
            yield page
        if not cursor:
            return


def score_text(score: float) -> bytes:
    """A score as Redis spells it."""
    return f"{score:.17g}".encode()


def _text(name: str, raw: bytes) -> dict[str, str]:
    try:
        return {name: raw.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(raw).decode()}


def _line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
