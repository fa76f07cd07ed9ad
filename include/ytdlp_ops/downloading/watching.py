"""A running download, watched: progress told, limits kept, stops heard, free space looked at."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.ytdlp_ops.downloading.directories import check_space
from include.ytdlp_ops.downloading.options import pause_before_retry
from include.ytdlp_ops.downloading.pacing import Pace
from include.ytdlp_ops.errors import DownloadFailed
from include.ytdlp_ops.local_io import local_failure

LONGEST_WAIT_SECONDS = 120.0
"""For how long a media URL may ask to be waited for, before it is tried all the same."""
SPACE_EVERY_BYTES = 64 << 20
"""How often free space is looked at."""

_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Progress:
    """
    How far a download is; None where yt-dlp doesn't know.

    :param speed: bytes a second.
    :param eta: seconds to go.
    :param fragment: number of the fragment, of a format that has them.
    """

    downloaded_bytes: int | None
    total_bytes: int | None
    speed: float | None
    eta: float | None
    fragment: int | None


class Stopped(Exception):
    """Gets through yt-dlp, which would wrap an OSError or a DownloadError of the caller's."""


class Watch:
    """
    What happens during a download, passed on to the caller; several threads may report.

    :param should_stop: an exception that it returns ends the download; it is kept as `reason`.
    :param paces: limits that hold together.
    :param reserve_bytes: free space to leave in the directory's file system; None: it is not looked at.
    """

    def __init__(
        self,
        directory: Path,
        *,
        on_progress: Callable[[Progress], None] | None = None,
        should_stop: Callable[[], BaseException | None] | None = None,
        paces: Sequence[Pace] = (),
        reserve_bytes: int | None = None,
    ) -> None:
        self._directory = directory
        self._on_progress = on_progress
        self._should_stop = should_stop
        self._paces = paces
        self._reserve_bytes = reserve_bytes
        self._lock = threading.Lock()
        self._done: int | None = None  # as yt-dlp tells it, with what lay there before
        self._came = 0
        self.reason: BaseException | None = None

    def on_block(self, status: dict[str, Any]) -> None:
        """yt-dlp's progress hook."""
        progress = _progress(status)
        self.tell(progress)
        done = progress.downloaded_bytes or 0
        with self._lock:  # fragments that come side by side each tell what all of them have
            before = done if self._done is None else self._done
            self._done = max(before, done)
        self.on_bytes(max(0, done - before))

    def tell(self, progress: Progress) -> None:
        """How far it is."""
        if self._on_progress:
            self._on_progress(progress)

    def on_bytes(self, count: int) -> None:
        """Bytes came: look at the free space now and then, and wait where there are limits."""
        with self._lock:
            looked, self._came = self._came // SPACE_EVERY_BYTES, self._came + count
            look = self._came // SPACE_EVERY_BYTES > looked
        if look and self._reserve_bytes is not None:
            try:
                check_space(self._directory, 0, self._reserve_bytes)
            except DownloadFailed as error:
                self._stop(error)
        self.ask()
        wait = self._spend(count) if count and self._paces else 0
        while wait > 0:
            self.ask()
            time.sleep(min(wait, _LOOK_SECONDS))
            wait = self._spend(0)  # a limit may have been changed meanwhile

    def before_retry(self, n: int) -> float:
        """yt-dlp's question how long to sleep."""
        self.ask()
        return pause_before_retry(n)

    def wait_until(self, available_at: float) -> None:
        """The site's own delay, for its advertisements; yt-dlp would sleep for any time, and hear no stop."""
        self._wait_until(min(available_at, time.time() + LONGEST_WAIT_SECONDS), time.time)

    def pause(self, seconds: float) -> None:
        """Wait, and hear stops meanwhile."""
        self._wait_until(time.monotonic() + seconds, time.monotonic)

    def ask(self) -> None:
        """
        :raises Stopped: if the download shall end.
        """
        if self.reason:  # another thread was told
            raise Stopped
        if self._should_stop and (reason := self._should_stop()):
            self._stop(reason)

    def _wait_until(self, end: float, clock: Callable[[], float]) -> None:
        while (left := end - clock()) > 0:
            self.ask()
            time.sleep(min(left, _LOOK_SECONDS))

    def _spend(self, count: int) -> float:
        try:
            return max(pace.spend(count) for pace in self._paces)
        except OSError as error:
            self._stop(local_failure(error, "the host's bandwidth can't be shared out"))
            raise AssertionError from None  # _stop raises

    def _stop(self, reason: BaseException) -> None:
        self.reason = reason
        raise Stopped


def _progress(status: dict[str, Any]) -> Progress:
    total = status.get("total_bytes") or status.get("total_bytes_estimate")
    return Progress(
        downloaded_bytes=status.get("downloaded_bytes"),
        total_bytes=None if total is None else int(total),
        speed=status.get("speed"),
        eta=status.get("eta"),
        fragment=status.get("fragment_index"),
    )
