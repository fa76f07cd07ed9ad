"""
Kills a forked copy of this process at the n-th change that it makes to the outside world.

A change is an audit event of Python's: a file made, renamed, linked, removed or opened for writing, a program
started, and ``tests.step``, which is raised around calls to a store. So the boundaries are all that there are, not
those that somebody thought of.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

STEP = "tests.step"
"""An audit event of our own: ``sys.audit(STEP, what)``."""

_CHANGES = frozenset(
    {"os.link", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "subprocess.Popen", STEP}
)
_MAX_STEPS = 500


def run_to_the_end(job: Callable[[], None]) -> None:
    """Run a job in a fork; raise if it fails."""
    if _forked(job):
        raise RuntimeError("the job failed, see above")


def steps_of(job: Callable[[], None], before_each: Callable[[], None]) -> Iterator[tuple[int, str]]:
    """
    Run a job killed at its first change, then, afresh, at its second, and so on, until it lives.

    Yields after each kill: the number of the change, and what it was.
    """
    for number in range(_MAX_STEPS):
        before_each()
        reader, writer = os.pipe()
        status = _forked(functools.partial(_dying, job, number, writer))
        os.close(writer)
        with open(reader, "rb") as said:  # noqa: PTH123 - a descriptor
            what = said.read().decode()
        if not status:
            return
        if status != -signal.SIGKILL:
            raise RuntimeError(f"the job failed by itself: {status}")
        yield number, what
    raise RuntimeError("the job does not end")


def _dying(job: Callable[[], None], number: int, writer: int) -> None:
    seen = 0

    def count(event: str, args: tuple[Any, ...]) -> None:
        nonlocal seen
        if event in _CHANGES or (event == "open" and _writes(args)):
            if seen == number:
                os.write(writer, f"{event} {str(args[0])[-100:]}".encode())
                os.kill(os.getpid(), signal.SIGKILL)
            seen += 1

    sys.addaudithook(count)
    job()


def _writes(args: tuple[Any, ...]) -> bool:
    _, _mode, flags = args
    return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)) and args[0] != "/dev/null"


def _forked(job: Callable[[], None]) -> int:
    """Exit status of a fork that does the job; the negative signal if one killed it."""
    pid = os.fork()
    if not pid:
        try:
            job()
        except BaseException:  # noqa: BLE001 - the fork must not go on as this process
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
