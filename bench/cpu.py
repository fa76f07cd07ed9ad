"""CPU seconds of processes, with those of their children that have ended."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def of_trees(roots: Collection[int]) -> float:
    """
    CPU seconds, user and system, of these processes, of all below them, and of all of those that have ended.

    What has ended is counted by the parent that waited for it.
    """
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it ended while we looked
                continue
            parents[int(entry.name)] = int(fields[1])
            ticks[int(entry.name)] = sum(int(field) for field in fields[11:15])
    return sum(spent for pid, spent in ticks.items() if _is_below(pid, roots, parents)) / _TICKS


def _is_below(pid: int, roots: Collection[int], parents: dict[int, int]) -> bool:
    while pid in parents:
        if pid in roots:
            return True
        pid = parents[pid]
    return False
