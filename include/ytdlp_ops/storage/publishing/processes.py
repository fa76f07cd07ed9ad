"""Runs ffmpeg so that it ends with this process, however this one ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from typing import IO

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.ending import killed_with_us
from include.ytdlp_ops.errors import DownloadFailed

_LOOK_SECONDS = 0.5
_TAIL_BYTES = 2000


def run_ffmpeg(command: Sequence[str], *, should_stop: Callable[[], BaseException | None] | None = None) -> None:
    """
    Run ffmpeg in a process group of its own, to its end.

    :param should_stop: asked twice a second; an exception that it returns is raised, and ffmpeg killed.
    :raises DownloadFailed: `FFMPEG_MISSING`, `DISK`, `BAD_MEDIA` for what ffmpeg can't read or join, `UNKNOWN` if
        it was killed; with the end of what it said.
    """
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(  # noqa: S603 - our own arguments, no shell
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                process_group=0,
                preexec_fn=killed_with_us(),  # noqa: PLW1509 - one system call, looked up before the fork
            )
        except OSError as error:
            what = f"{command[0]!r} can't be started: {error.strerror}; install ffmpeg or imageio-ffmpeg"
            raise DownloadFailed(Code.FFMPEG_MISSING, what) from None
        try:
            _wait(process, should_stop)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if process.returncode:
            raise _failure(process.returncode, _tail(said))


def _wait(process: subprocess.Popen[bytes], should_stop: Callable[[], BaseException | None] | None) -> None:
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK_SECONDS)
            return
        if should_stop and (reason := should_stop()):
            raise reason


def _tail(said: IO[bytes]) -> str:
    said.seek(max(0, said.seek(0, os.SEEK_END) - _TAIL_BYTES))
    lines = said.read().decode("utf-8", "replace").splitlines()
    return " | ".join(line.strip() for line in lines[-6:] if line.strip())


def _failure(code: int, tail: str) -> DownloadFailed:
    if code < 0:
        return DownloadFailed(Code.UNKNOWN, f"ffmpeg was killed by signal {-code}: {tail}")
    if os.strerror(28) in tail or os.strerror(122) in tail:
        return DownloadFailed(Code.DISK, f"ffmpeg can't write: {tail}")
    if os.strerror(13) in tail or os.strerror(30) in tail:
        return DownloadFailed(Code.LOCAL_IO, f"ffmpeg can't write: {tail}")
    return DownloadFailed(Code.BAD_MEDIA, f"ffmpeg can't join the formats: {tail}")
