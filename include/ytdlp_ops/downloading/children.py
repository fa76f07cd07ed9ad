"""The ffmpeg that yt-dlp starts for some streams: it ends with this process, and hears its download's stops."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from typing import Any

from include.ytdlp_ops.downloading.watching import Watch
from include.ytdlp_ops.ending import killed_with_us

_LOOK_SECONDS = 0.5


@contextlib.contextmanager
def watched_children(watch: Watch) -> Iterator[None]:
    """Have yt-dlp's downloaders start their programs so; holds for the whole process."""
    from yt_dlp.downloader import external  # type: ignore[import-untyped]  # ships no types

    before = external.Popen
    external.Popen = _watched(before, watch)
    try:
        yield
    finally:
        external.Popen = before


def _watched(base: Any, watch: Watch) -> Any:
    """yt-dlp's `Popen`, whose wait for the end asks the watch."""

    class WatchedPopen(base):  # type: ignore[misc]  # untyped
        _asks = True

        def __init__(self, *args: Any, **more: Any) -> None:
            # one system call, looked up before the fork
            super().__init__(*args, **more, preexec_fn=killed_with_us())

        def wait(self, timeout: float | None = None) -> int:
            while timeout is None and self._asks:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return int(super().wait(_LOOK_SECONDS))
                self._ask()
            return int(super().wait(timeout))

        def _ask(self) -> None:
            try:
                watch.ask()
            except BaseException:
                self._asks = False  # yt-dlp kills it, and waits for that
                raise

    return WatchedPopen
