"""
Resuming formats that come in fragments.

yt-dlp appends a fragment to the ``.part`` and then counts it in the ``.ytdl`` file; killed in between, or with
that file damaged, it appends fragments twice when it goes on, and where they come side by side it counts some
that are not appended yet, and leaves those out (downloader/fragment.py, 2026.10). So a ledger of our own says
which fragment ends at which byte, and what lies behind it is cut off before yt-dlp goes on.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any


def ledger_of(target: Path) -> Path:
    """The ledger of a file that grows."""
    return target.with_name(f"{target.name}.ledger")


@dataclass
class _Growing:
    """A file that grows: how many of its fragments it holds, in order."""

    stream: IO[bytes]
    whole: int


_growing: dict[str, _Growing] = {}


def keep_ledgers() -> None:
    """Have every fragment download of this process keep a ledger, from now on."""
    from yt_dlp.downloader.fragment import FragmentFD  # type: ignore[import-untyped]  # ships no types

    prepare, append = FragmentFD._prepare_frag_download, FragmentFD._append_fragment
    if getattr(append, "keeps_ledger", False):
        return

    @functools.wraps(prepare)
    def prepare_frag_download(downloader: Any, ctx: dict[str, Any]) -> None:
        prepare(downloader, ctx)
        _growing[ctx["filename"]] = _Growing(ctx["dest_stream"], ctx["fragment_index"])

    @functools.wraps(append)
    def append_fragment(downloader: Any, ctx: dict[str, Any], content: bytes) -> None:
        append(downloader, ctx, content)
        growing = _growing[ctx["filename"]]
        growing.whole += 1
        # not ctx["fragment_index"]: fragments that come side by side raise it, and so the count in the .ytdl file,
        # before they are appended
        write_ledger(Path(ctx["filename"]), growing.whole, growing.stream.tell())

    append_fragment.keeps_ledger = True  # type: ignore[attr-defined]  # marks the function itself
    FragmentFD._prepare_frag_download, FragmentFD._append_fragment = prepare_frag_download, append_fragment


def close(target: Path) -> None:
    """Close the file that grew; yt-dlp leaves it open when it fails."""
    if growing := _growing.pop(str(target), None):
        growing.stream.close()


def rewind(target: Path) -> int:
    """
    Bring what lies there to the end of a whole fragment, or away; how many bytes stay.

    :raises OSError: if it can't be changed.
    """
    part = target.with_name(f"{target.name}.part")
    index, size = read_ledger(target)
    if size and part.is_file() and part.stat().st_size >= size:
        with part.open("r+b") as file:
            file.truncate(size)
        counted = {"downloader": {"current_fragment": {"index": index}}}
        target.with_name(f"{target.name}.ytdl").write_text(json.dumps(counted), encoding="ascii")
        return size
    for left in target.parent.iterdir():  # fragments not appended too: their numbers may mean others now
        if left.name.startswith(f"{target.name}."):
            left.unlink()
    return 0


def read_ledger(target: Path) -> tuple[int, int]:
    """Number of the last fragment that is whole, and the byte at which it ends; zeros if that isn't known."""
    index, size, _ = _read(target)
    return index, size


def read_ledger_facts(target: Path) -> dict[str, Any]:
    """What else the ledger says; empty if nothing is known."""
    return _read(target)[2]


def write_ledger(target: Path, index: int, size: int, facts: dict[str, Any] | None = None) -> None:
    """
    Say how much of the file that grows is whole.

    :param index: number of the last fragment.
    :param size: the byte at which it ends.
    :param facts: plain JSON values.
    """
    ledger = ledger_of(target)
    growing = ledger.with_name(f"{ledger.name}-new")
    growing.write_text(json.dumps([index, size, facts or {}]), encoding="ascii")
    growing.replace(ledger)


def _read(target: Path) -> tuple[int, int, dict[str, Any]]:
    try:
        index, size, facts = json.loads(ledger_of(target).read_bytes())
        return int(index), int(size), dict(facts)
    except (OSError, ValueError, TypeError):
        return 0, 0, {}
