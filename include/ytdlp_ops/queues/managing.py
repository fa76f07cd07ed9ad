"""Everything that an operator does with the queues by hand; what changes something is a dry run by default."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.queues.asking import ALL, Files, Request
from include.ytdlp_ops.queues.clearing import CLEARED, drop_saved, refuse_unconfirmed
from include.ytdlp_ops.queues.doctor import examine
from include.ytdlp_ops.queues.exporting import lines_of
from include.ytdlp_ops.queues.giving_up import cancel_all, move_all
from include.ytdlp_ops.queues.importing import load, look_at
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.listing import Entry, as_csv, as_json_lines, first_page, key_of, pages_of
from include.ytdlp_ops.queues.requeueing import take_back
from include.ytdlp_ops.queues.surveying import as_table, survey
from include.ytdlp_ops.queues.tracing import trace

if TYPE_CHECKING:
    from redis import Redis

SHOWN_FINDINGS = 1000


@dataclass(frozen=True, kw_only=True)
class Done:
    """
    What an action found or did.

    :param summary: counts and ids, small enough for XCom.
    :param lines: for a log or a terminal.
    """

    summary: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)


def perform(client: Redis, request: Request, files: Files) -> Done:
    """
    Do what is asked.

    :raises BadInput: for what can't be done; nothing was changed then.
    :raises QueueError: if the server does not answer, or a key is of the wrong type.
    """
    if request.action not in ACTIONS:
        raise BadInput(f"action {request.action!r} is none of {', '.join(ACTIONS)}")
    return ACTIONS[request.action](client, request, files)


def _inspect(client: Redis, request: Request, _: Files) -> Done:
    surveys = [survey(queue) for queue in request.queues(client)]
    return Done(summary={each.stage: each.as_json() for each in surveys}, lines=list(as_table(surveys)))


def _list(client: Redis, request: Request, files: Files) -> Done:
    queue, where, wanted = request.queue(client), request.source, request.filter()
    write = as_csv if request.file_format == "csv" else as_json_lines
    if request.file:
        found = (entry for page in pages_of(queue, where, wanted, cursor=request.cursor) for entry in page.entries)
        counted = _Counted(islice(found, request.limit))
        with files.create(request.file) as stream:
            stream.writelines(write(queue.stage, where, counted))
        summary = {"listed": counted.count, "file": files.address(request.file)}
        return Done(summary=summary, lines=[f"{counted.count} items of {key_of(queue.keys, where)} are listed in "
                                            f"{summary['file']}"])  # fmt: skip
    page = first_page(queue, where, wanted, limit=request.limit, cursor=request.cursor)
    lines = [line.decode().rstrip() for line in write(queue.stage, where, page.entries)]
    more = "" if page.cursor == "0" else f"; go on with cursor {page.cursor}"
    lines.append(f"{len(page.entries)} items of {page.looked_at} looked at in {key_of(queue.keys, where)}{more}")
    return Done(
        summary={"listed": len(page.entries), "looked_at": page.looked_at, "cursor": page.cursor}, lines=lines
    )


def _show(client: Redis, request: Request, _: Files) -> Done:
    if not request.item:
        raise BadInput("action 'show' needs an item: give its URL, its YouTube id or its item id")
    request.queues(client)
    seen = trace(client, request.item, queue_base=request.queue_base)
    lines = []
    for sighting in seen:
        lines.append(f"{sighting.stage} {sighting.where}: {sighting.item_id}")
        lines += json.dumps(sighting.record, ensure_ascii=False, indent=2).splitlines()
    found = [{"stage": each.stage, "where": each.where, "id": each.item_id} for each in seen]
    return Done(summary={"found": found}, lines=lines or [f"{request.item!r} is nowhere in the queues"])


def _requeue(client: Redis, request: Request, _: Files) -> Done:
    queue = request.queue(client)
    count, shown = take_back(
        queue,
        _place(request.source),
        wanted=request.filter(),
        limit=request.limit,
        dry_run=request.dry_run,
    )
    target = "queue of auth" if queue.stage == "dl" else queue.keys.inbox
    return _changed(request, count, shown, "requeue", f"{key_of(queue.keys, request.source)} to the {target}")


def _cancel(client: Redis, request: Request, _: Files) -> Done:
    queue = request.queue(client)
    if request.item:
        seen = [each for each in trace(client, request.item, queue_base=request.queue_base)
                if each.stage is queue.stage]  # fmt: skip
        for each in seen if not request.dry_run else []:
            queue.cancel(each.item_id, reason=request.because)
        return _changed(request, len(seen), [each.item_id for each in seen], "cancel", f"stage {queue.stage}")
    count, shown = cancel_all(
        queue,
        request.source,
        request.filter(),
        because=request.because,
        limit=request.limit,
        dry_run=request.dry_run,
    )
    return _changed(request, count, shown, "cancel", key_of(queue.keys, request.source))


def _move(client: Redis, request: Request, _: Files) -> Done:
    queue = request.queue(client)
    count, shown = move_all(
        queue,
        _place(request.source),
        Place(request.target),
        request.filter(),
        because=request.because,
        limit=request.limit,
        dry_run=request.dry_run,
    )
    places = f"{key_of(queue.keys, request.source)} to {key_of(queue.keys, request.target)}"
    return _changed(request, count, shown, "move", places)


def _clear(client: Redis, request: Request, files: Files) -> Done:
    queue, name = request.queue(client), request.source
    if name not in CLEARED:
        raise BadInput(f"source {name!r} is none of {', '.join(CLEARED)}")
    depth, key = queue.depths()[name], key_of(queue.keys, name)
    if request.dry_run:
        return _changed(request, depth, [], "clear", f"{key}, after a backup of it")
    refuse_unconfirmed(queue.keys, name, request.confirm)
    backup = request.file or _name_of("backup", key)
    _write(files, backup, lines_of([queue], [name]))
    dropped = drop_saved(queue, name, lambda: files.open(backup))
    done = _changed(request, dropped, [], "clear", key)
    lines = [*done.lines, f"the backup is {files.address(backup)}; action import puts it back"]
    return Done(summary={**done.summary, "backup": files.address(backup)}, lines=lines)


def _export(client: Redis, request: Request, files: Files) -> Done:
    queues = request.queues(client)
    before = [queue.counters() for queue in queues]
    name = request.file or _name_of("export", request.queue_base or "ytdlp-ops")
    lines = _write(files, name, lines_of(queues))
    moved = [queue.stage for queue, was in zip(queues, before, strict=True) if queue.counters() != was]
    said = [f"{lines - 2} entries were exported to {files.address(name)}"]
    if moved:
        said.append(f"stages {', '.join(moved)} were at work meanwhile: pause them for an export of one moment")
    return Done(summary={"entries": lines - 2, "file": files.address(name), "moved_meanwhile": moved}, lines=said)


def _import(client: Redis, request: Request, files: Files) -> Done:
    if not request.file:
        raise BadInput("action 'import' needs a file: give the name of an export")
    request.queues(client)
    saved = look_at(lambda: files.open(request.file))
    others = {stage for stage, _ in saved.counts} - {request.stage}
    if request.stage != ALL and others:
        raise BadInput(
            f"file {request.file!r} holds stage {', '.join(sorted(others))} too: import it with stage 'all'"
        )
    parts = [f"{count} of {stage} {name}" for (stage, name), count in sorted(saved.counts.items())]
    if request.dry_run:
        count = saved.lines
    else:
        count = load(client, lambda: files.open(request.file), saved, queue_base=request.queue_base)
    done = _changed(request, count, [], "import", files.address(request.file))
    return Done(summary=done.summary, lines=[*done.lines, *parts])


def _pause(client: Redis, request: Request, _: Files) -> Done:
    queues = request.queues(client)
    for queue in queues if not request.dry_run else []:
        queue.pause(request.because)
    return _changed(request, len(queues), [queue.stage for queue in queues], "pause", "stages")


def _resume(client: Redis, request: Request, _: Files) -> Done:
    queues = request.queues(client)
    closed = [f"{queue.stage}: {queue.circuit()}" for queue in queues if str(queue.circuit())]
    for queue in queues if not request.dry_run else []:
        queue.resume()
    return _changed(request, len(queues), closed, "resume", "stages")


def _doctor(client: Redis, request: Request, _: Files) -> Done:
    count, mended, lines = 0, 0, list[str]()
    for queue in request.queues(client):
        for finding in examine(queue, mend=not request.dry_run):
            count, mended = count + 1, mended + finding.mended
            if len(lines) < SHOWN_FINDINGS:
                lines.append(f"stage {queue.stage}: {finding}")
    lines.append(f"{count} findings, {mended} mended" if count else "the queues keep their promises")
    return Done(summary={"findings": count, "mended": mended}, lines=lines)


ACTIONS = {
    "inspect": _inspect,
    "list": _list,
    "show": _show,
    "requeue": _requeue,
    "cancel": _cancel,
    "move": _move,
    "clear": _clear,
    "export": _export,
    "import": _import,
    "pause": _pause,
    "resume": _resume,
    "doctor": _doctor,
}


class _Counted:
    def __init__(self, entries: Iterator[Entry]) -> None:
        self._entries = entries
        self.count = 0

    def __iter__(self) -> Iterator[Entry]:
        for entry in self._entries:
            self.count += 1
            yield entry


def _place(where: str) -> Place:
    try:
        return Place(where)
    except ValueError:
        raise BadInput(f"source {where!r} is no place that items end in; give one of {', '.join(Place)}") from None


def _changed(request: Request, count: int, shown: list[str], verb: str, what: str) -> Done:
    said = f"{'dry run: would ' if request.dry_run else ''}{verb} {count}: {what}"
    return Done(
        summary={"dry_run": request.dry_run, verb: count, "first": shown},
        lines=[said, *(f"  {item_id}" for item_id in shown)],
    )


def _write(files: Files, name: str, lines: Iterator[bytes]) -> int:
    count = 0
    with files.create(name) as stream:
        for line in lines:
            stream.write(line)
            count += 1
        _to_disk(stream)
    return count


def _to_disk(stream: IO[bytes]) -> None:
    """A backup that a power cut takes is none."""
    stream.flush()
    try:
        os.fsync(stream.fileno())
    except OSError:  # object storage: what is closed is stored
        return


def _name_of(what: str, key: str) -> str:
    return f"{what}-{key}-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.jsonl"
