"""What people are shown: items in words, a live table or plain lines, and the closing summary."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from include.ytdlp_ops.local.watching import Seen, SeenUrl
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.records import Record

MIB = 1 << 20


def state_of(seen: Seen) -> str:
    """An item's state in a few words: ``running 45 % at 3.2 MiB/s``."""
    record = seen.record
    if seen.place is None:
        return "waiting"
    if seen.place is Place.PROGRESS:
        return _running(record) if record.get("state") == "running" else "claimed"
    if seen.place is Place.RESULT:
        return "done"
    if retry_at := record.get("retry_at"):
        return f"{_ENDED[seen.place]}, again at {_clock(retry_at)}"
    return _ENDED[seen.place]


_ENDED = {Place.FAIL: "failed", Place.SKIPPED: "skipped", Place.DEFERRED: "deferred"}


def reason_of(seen: Seen) -> str:
    """Why an item ended as it did, or what it became; empty while it is on its way."""
    if seen.place is Place.RESULT:
        return file_line(seen.record) if "path" in seen.record else str(seen.record.get("title") or "")
    return ": ".join(str(seen.record[key]) for key in ("code", "message") if seen.record.get(key))


def file_line(record: Record) -> str:
    """A file in one line: path, size, codecs, duration."""
    parts = [str(record.get("path")), f"{record.get('bytes', 0) / MIB:.2f} MiB", " + ".join(codecs(record))]
    if record.get("duration"):
        parts.append(f"{record['duration']:.1f} s")
    return ", ".join(filter(None, parts))


def codecs(record: Record) -> list[str]:
    """The codecs of a file's streams, picture first."""
    return [str(record[key]) for key in ("video_codec", "audio_codec") if record.get(key)]


def rows(urls: Sequence[SeenUrl]) -> Iterator[tuple[str, str, str, str]]:
    """What, stage, state, reason: a row for each URL, and below it one for each format and its publication."""
    for url in urls:
        state = "already done" if url.answer == "already_done" else state_of(url.auth)
        yield url.url, url.auth.stage, state, reason_of(url.auth)
        for step in url.steps[1:]:
            yield f"  {step.item_id}", step.stage, state_of(step), reason_of(step)


def summary(urls: Sequence[SeenUrl]) -> list[str]:
    """The closing lines: files, and the reasons of what gave none."""
    lines = []
    for url in urls:
        lines += [f"  {file_line(record)}" for record in url.files]
        lines += [
            f"  {seen.item_id}: {state_of(seen)}, {reason_of(seen)}"
            for seen in url.steps
            if seen.ended and seen.place is not Place.RESULT
        ]
    return lines


class Screen:
    """
    Shows how the URLs are getting on: a live table on a terminal, else a line for each change.

    :param started: `time.monotonic()` of the beginning, from which the seconds are counted.
    """

    def __init__(self, started: float) -> None:
        self._started = started
        self._shown: dict[tuple[str, str], str] = {}
        self._live: Any = None

    def say(self, text: str) -> None:
        """One line, with the seconds since the beginning."""
        self.lines([f"[{time.monotonic() - self._started:6.1f} s] {text}"])

    def lines(self, lines: Sequence[str]) -> None:
        """Lines as they are."""
        print(*lines, sep="\n", flush=True)

    def show(self, urls: Sequence[SeenUrl]) -> None:
        """The URLs as they are now."""
        if self._live:
            self._live.update(_table(urls), refresh=True)
            return
        for what, stage, state, reason in rows(urls):
            now = state.split(" at ")[0]
            if self._shown.get((what, stage)) != now:
                self._shown[what, stage] = now
                self.say("  ".join(filter(None, [f"{stage:8}{what}", state, reason])))

    @contextmanager
    def live(self) -> Iterator[None]:
        """A live table as long as this lasts, if there is a terminal."""
        if not sys.stdout.isatty():
            yield
            return
        from rich.live import Live

        with Live(auto_refresh=False) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None


def _table(urls: Sequence[SeenUrl]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table("item", "stage", "state", "what came of it")
    for row in rows(urls):
        table.add_row(*(Text(cell, overflow="fold") for cell in row))
    return table


def _running(record: Record) -> str:
    progress = record.get("progress") or {}
    done, total, speed = (progress.get(key) for key in ("downloaded_bytes", "total_bytes", "speed"))
    percent = f" {100 * done / total:.0f} %" if done and total else ""
    return f"running{percent}" + (f" at {speed / MIB:.1f} MiB/s" if speed else "")


def _clock(iso: str) -> str:
    """A time of day, of this machine's zone, out of ISO 8601."""
    from datetime import datetime

    return datetime.fromisoformat(iso).astimezone().strftime("%H:%M:%S")


def as_report(urls: Sequence[SeenUrl]) -> list[dict[str, Any]]:
    """The URLs for ``last_run.json``."""
    return [
        {
            "url": url.url,
            "id": url.auth.item_id,
            "outcome": url.decisive.place if url.ended else None,
            "answer": url.answer,
            "code": url.decisive.record.get("code"),
            "message": url.decisive.record.get("message"),
            "retryable": url.decisive.record.get("retryable"),
            "retry_at": url.decisive.record.get("retry_at"),
            "files": [
                {
                    "path": str(Path(record["path"])),
                    "bytes": record.get("bytes"),
                    "sha256": record.get("sha256"),
                    "codecs": codecs(record),
                    "duration": record.get("duration"),
                }
                for record in url.files
            ],
        }
        for url in urls
    ]
