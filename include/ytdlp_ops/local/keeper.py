"""
Ends every session of the stack when the supervisor is gone, however it went.

    python -I -S keeper.py < PIPE

The supervisor writes the id of each session that it starts, one a line. At the end of the pipe, which comes also
when the supervisor is killed, no process of those sessions stays. `PR_SET_PDEATHSIG` alone reaches children, not
what they started. Standard library only; the supervisor uses `end_sessions` as well.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Collection
from pathlib import Path

GRACE_SECONDS = 5.0
_PROC = Path("/proc")


def end_sessions(
    sessions: Collection[int], how: int = signal.SIGTERM, grace_seconds: float = GRACE_SECONDS
) -> None:
    """
    End all processes of the sessions: a signal first, SIGKILL after the grace.

    :param sessions: session ids; a session without processes is fine.
    """
    deadline = time.monotonic() + grace_seconds
    _signal(members(sessions), how)
    while left := members(sessions):
        if time.monotonic() > deadline:
            _signal(left, signal.SIGKILL)
        time.sleep(0.02)


def members(sessions: Collection[int]) -> list[int]:
    """The processes, zombies left out, that belong to one of the sessions."""
    return [pid for pid, session in _living() if session in sessions]


def _living() -> list[tuple[int, int]]:
    found = []
    for entry in _PROC.iterdir() if _PROC.is_dir() else ():
        if entry.name.isdigit():
            try:
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            except OSError:  # it ended while we looked
                continue
            if state not in "ZX":
                found.append((int(entry.name), int(session)))
    return found


def _signal(pids: list[int], how: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, how)
        except ProcessLookupError:
            continue


def main() -> None:
    """Read session ids until the pipe ends, then end them."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    end_sessions({int(line) for line in sys.stdin})


if __name__ == "__main__":
    main()
