"""Removes from the work directory what dead attempts left."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

from include.ytdlp_ops.downloading.directories import component, discard


def clean_work_dir(work_dir: Path, live_tokens: Collection[str], older_than_seconds: float) -> int:
    """
    Remove the directories of attempts that are old and hold no live token; how many.

    An attempt is as old as the newest file in it, so one that has just begun stays although its token is not known
    yet. What goes away meanwhile is fine.

    :param live_tokens: of all items in progress.
    """
    if not work_dir.is_dir():
        return 0
    alive, before = {component(token) for token in live_tokens}, time.time() - older_than_seconds
    removed = 0
    for directory in work_dir.glob("*/*/"):
        if directory.name not in alive and not directory.is_symlink() and _newest(directory) < before:
            discard(directory)
            removed += 1
    return removed


def _newest(directory: Path) -> float:
    try:
        return max(path.lstat().st_mtime for path in (directory, *directory.rglob("*")))
    except FileNotFoundError:  # it changes, so it lives
        return float("inf")
