"""Processes that end with the one that started them, however that one ended."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_libc = ctypes.CDLL(None)


def end_with_parent(parent: int, signal_number: int) -> bool:
    """
    Have the kernel send this process a signal when the thread that started it ends; on Linux only.

    :param parent: the process id of the parent that is meant.
    :returns: False if that has ended already: then no signal comes.
    """
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    return os.getppid() == parent


def killed_with_us() -> Callable[[], None]:
    """What a child calls between fork and exec, so that it is killed when this thread ends: one system call."""
    parent = os.getpid()

    def end_with_us() -> None:
        if not end_with_parent(parent, signal.SIGKILL):
            os._exit(1)

    return end_with_us
