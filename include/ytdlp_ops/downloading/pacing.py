"""Limits on bandwidth: of one download, and of all downloads of a host together."""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
from pathlib import Path
from typing import Protocol

_LONGEST_DEBT_SECONDS = 300.0  # a file from before a reboot tells a time that will not come


class Pace(Protocol):
    """Says how long to wait after bytes have come; several threads may ask."""

    def spend(self, count: int) -> float:
        """Account for bytes that came: seconds to wait before the next ones are read. Of 0: how long still."""


class DownloadPace:
    """A limit on one download, shared by its connections."""

    def __init__(self, bytes_per_second: float) -> None:
        self._rate = bytes_per_second
        self._lock = threading.Lock()
        self._paid_until = 0.0

    def spend(self, count: int) -> float:
        """Account for bytes that came: seconds to wait before the next ones are read. Of 0: how long still."""
        with self._lock:
            now = time.monotonic()
            self._paid_until = max(self._paid_until, now) + count / self._rate
            return self._paid_until - now


class HostPace:
    """
    A limit on all processes of this host that name the same file; nothing is left to clean up if one dies.

    :param file: in a directory of this host alone, such as the work directory.
    """

    def __init__(self, file: Path, bytes_per_second: float) -> None:
        self._file, self._rate = file, bytes_per_second
        self._paid_until = 0.0  # this download's own turn: what others spend later does not put it off

    def spend(self, count: int) -> float:
        """
        Account for bytes that came: seconds to wait before the next ones are read. Of 0: how long still.

        :raises OSError: if the file can't be written.
        """
        if count:
            self._paid_until = self._pay(count)
        return self._paid_until - time.monotonic()

    def _pay(self, count: int) -> float:
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            stored = os.pread(descriptor, 8, 0)
            now = time.monotonic()  # one clock for all processes since boot
            paid_until = struct.unpack("d", stored)[0] if len(stored) == 8 else now
            if not now < paid_until < now + _LONGEST_DEBT_SECONDS:
                paid_until = now
            paid_until = float(paid_until + count / self._rate)
            os.pwrite(descriptor, struct.pack("d", paid_until), 0)
            return paid_until
        finally:
            os.close(descriptor)  # and unlocks
