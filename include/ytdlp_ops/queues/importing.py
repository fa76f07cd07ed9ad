"""A saved queue back into Redis: all of it or, where the file is broken, nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from typing import IO, TYPE_CHECKING, Any

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.queues.exporting import KINDS, VERSION, key_named, score_text
from include.ytdlp_ops.queues.keys import Stage
from include.ytdlp_ops.queues.queue import Queue

if TYPE_CHECKING:
    from redis import Redis

LOADED_TTL_MS = 7 * 24 * 3600 * 1000
LONGEST_LINE = 16 * 1024 * 1024
_PART = 500
Opener = Callable[[], IO[bytes]]


@dataclass(frozen=True, kw_only=True)
class Saved:
    """
    A file that has been looked at whole.

    :param digest: SHA-256 of its bytes.
    :param lines: entries in it.
    :param counts: entries by stage and key.
    """

    digest: str
    lines: int
    counts: Counter[tuple[str, str]]


def look_at(open_file: Opener) -> Saved:
    """
    Read a saved queue to its end, and believe it only then.

    :raises BadInput: names the first line that can't be, and what is wrong with it.
    """
    digest, counts, promised = hashlib.sha256(), Counter[tuple[str, str]](), None
    number = 0
    with open_file() as stream:
        for number, raw in enumerate(_bounded(stream), 1):
            digest.update(raw)
            fields = _read(number, raw)
            if promised is not None:
                raise _broken(number, "comes after the last line")
            if number == 1:
                _check_head(fields)
            elif "lines" in fields:
                promised = fields["lines"]
            else:
                stage, name, _ = _entry(number, fields)
                counts[stage, name] += 1
    if promised != counts.total():
        raise _broken(number, f"is the end, after {counts.total()} entries: the file was cut; export again")
    return Saved(digest=digest.hexdigest(), lines=counts.total(), counts=counts)


def load(client: Redis, open_file: Opener, saved: Saved, *, queue_base: str | None = None) -> int:
    """
    Put a saved queue into an installation where its keys are empty.

    Interrupted, it goes on from where it was when the same file is given again: nothing is lost or doubled.

    :returns: how many entries were put in by this call.
    :raises BadInput: if a key holds something that is not of this file; then nothing was.
    """
    queues = {stage: Queue(client, stage, queue_base=queue_base) for stage in {stage for stage, _ in saved.counts}}
    if not queues:
        return 0
    first = queues[min(queues)]
    marker = first.keys.request("load", saved.digest)
    begun = already = int(first.steps.command("get", marker) or 0)
    if not begun:
        _refuse_used(queues, saved)
    for at, stage, name, entries in parts_of(open_file, already):
        queue = queues[stage]
        args: list[Any] = [at, at + len(entries), LOADED_TTL_MS, KINDS[name]]
        args += [value for entry in entries for value in entry]
        begun = queue.steps.run("load", [marker, key_named(queue.keys, name)], args)
        if begun != at + len(entries):
            raise BadInput("this file is being imported by another run; let that one end, then look again")
    first.steps.command("delete", marker)
    return saved.lines - already


def _refuse_used(queues: dict[str, Queue], saved: Saved) -> None:
    for stage, name in saved.counts:
        key = key_named(queues[stage].keys, name)
        if queues[stage].steps.command("type", key) != b"none":
            raise BadInput(
                f"{key!r} is not empty, nothing was imported: clear it first (a backup is written), "
                "or import into another queue_base"
            )


def parts_of(open_file: Opener, after: int = 0) -> Iterator[tuple[int, str, str, list[tuple[bytes, bytes]]]]:
    """
    The entries of a file that has been looked at, part by part.

    :param after: entries to pass over.
    :returns: number of entries before the part, stage, key, and the entries: field or member, value or score.
    """
    with open_file() as stream:
        rows = (_entry(number, _read(number, raw)) for number, raw in enumerate(_bounded(stream), 1)
                if number > 1 and not raw.startswith(b'{"lines"'))  # fmt: skip
        at = after
        for (stage, name), group in groupby(islice(rows, after, None), key=lambda row: row[:2]):
            while part := [entry for _, _, entry in islice(group, _PART)]:
                yield at, stage, name, part
                at += len(part)


def _bounded(stream: IO[bytes]) -> Iterator[bytes]:
    while raw := stream.readline(LONGEST_LINE):
        yield raw


def _read(number: int, raw: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _broken(number, f"is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise _broken(number, f"is a JSON {type(fields).__name__}, not an object")
    return fields


def _check_head(fields: dict[str, Any]) -> None:
    if fields.get("ytdlp_ops_queue") != VERSION:
        raise _broken(1, f'is no head of an exported queue; it begins with {{"ytdlp_ops_queue":{VERSION}')


def _entry(number: int, fields: dict[str, Any]) -> tuple[str, str, tuple[bytes, bytes]]:
    stage, name = fields.get("stage"), fields.get("key")
    if stage not in tuple(Stage):
        raise _broken(number, f"names stage {stage!r}, which is none of {', '.join(Stage)}")
    if name not in KINDS:
        raise _broken(number, f"names key {name!r}, which is none of {', '.join(KINDS)}")
    kind = KINDS[name]
    field = b"" if kind == "list" else _bytes(number, fields, "name")
    if kind != "zset":
        return str(stage), name, (field, _bytes(number, fields, "value"))
    score = fields.get("score")
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not math.isfinite(score):
        raise _broken(number, f"has the score {score!r}, which is no number")
    return str(stage), name, (field, score_text(score))


def _bytes(number: int, fields: dict[str, Any], name: str) -> bytes:
    try:
        if isinstance(fields.get(name), str):
            return str(fields[name]).encode()
        return base64.b64decode(fields[f"{name}_base64"], validate=True)
    except (KeyError, ValueError, TypeError):
        raise _broken(number, f"has no {name!r} that can be read") from None


def _broken(number: int, what: str) -> BadInput:
    return BadInput(f"line {number} {what}; nothing was imported")
