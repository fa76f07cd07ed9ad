"""Downloads one format of an info with real yt-dlp, in this process, and never extracts."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.diagnosis import diagnose
from include.ytdlp_ops.diagnosis.signals import RetryRecorder, WarningRecorder, read_signal
from include.ytdlp_ops.downloading.directories import is_whole, target_in, write_version
from include.ytdlp_ops.downloading.infos import PLAIN_PROTOCOLS, cut_to_format, protocol_of
from include.ytdlp_ops.downloading.options import download_options, isolated, pause_before_retry
from include.ytdlp_ops.errors import DownloadFailed
from include.ytdlp_ops.local_io import local_failure

LONGEST_WAIT_SECONDS = 120.0
"""For how long a media URL may ask to be waited for, before it is tried all the same."""


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


def download_format(
    info: dict[str, Any],
    format_id: str,
    *,
    directory: Path,
    proxy: str | None,
    ca_file: Path | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], BaseException | None] | None = None,
) -> Path:
    """
    Download one format into a directory of its own; a ``.part`` that lies there is resumed, or is all there is.

    What comes out exists and isn't empty; whether it is what was promised, `verify` tells.

    :param info: a loaded info; it is cut to the format first.
    :param directory: from `directory_for`.
    :param proxy: the egress that extracted: the media URL is bound to it.
    :param ca_file: a PEM bundle to trust instead of certifi's.
    :param on_progress: told of every block that came, often many in a second.
    :param should_stop: asked as often, and before each retry; an exception that it returns ends the download and
        is raised as it is. What has come stays as a ``.part``.
    :raises DownloadFailed: why it failed, with code and outcome.
    """
    cut = cut_to_format(info, format_id)
    fmt = cut["formats"][0]
    target = target_in(directory, fmt)
    try:
        write_version(directory, fmt)
        if is_whole(target, fmt):
            return target
    except OSError as error:
        raise local_failure(error, f"{str(directory)!r} can't be written to") from None
    watch = _Watch(on_progress, should_stop)
    available_at = fmt.pop("available_at", 0)
    options = download_options(
        target=target,
        proxy=proxy,
        ca_file=ca_file,
        needs_ffmpeg=protocol_of(fmt) not in PLAIN_PROTOCOLS,
        pause=watch.before_retry,
    )
    with isolated(ca_file), _diagnosed(watch, fmt["url"]) as logger:
        watch.wait_until(available_at)
        _run(cut, {**options, "logger": logger, "progress_hooks": [watch.on_block]})
    return _arrived(target)


def _run(info: dict[str, Any], options: dict[str, Any]) -> None:
    import yt_dlp  # type: ignore[import-untyped]  # ships no types

    # process_ie_result, not download_with_info_file: that one needs the info on disk, and extracts again
    with yt_dlp.YoutubeDL(options, auto_init=False) as ydl:
        ydl.process_ie_result(info, download=True)


@contextlib.contextmanager
def _diagnosed(watch: _Watch, media_url: str) -> Iterator[WarningRecorder]:
    """Turn whatever yt-dlp raises into `DownloadFailed`, or into what the caller wanted raised."""
    logger, last = WarningRecorder(), list[object]()
    with RetryRecorder() as retries:
        try:
            yield logger
        except _Stopped:
            assert watch.reason is not None
            raise watch.reason from None
        except Exception as error:  # noqa: BLE001 - every failure of yt-dlp's is told apart by the diagnosis
            last.append(error)
            said = diagnose(
                read_signal(
                    error,
                    stage="download",
                    warnings=logger.warnings,
                    retried=retries.errors,
                    media_url=media_url,
                )
            )
            # "from None": yt-dlp's own texts may hold the media URL, which is a credential
            raise DownloadFailed(
                said.code, said.message, outcome=said.outcome, retry_after=said.retry_after
            ) from None
        finally:
            _close_answers([*last, *retries.errors])


def _close_answers(errors: list[object]) -> None:
    """yt-dlp leaves the connection of an error's answer open until the garbage collector comes."""
    for error in errors:
        wrapped = getattr(error, "exc_info", (None, None))[1]  # of a DownloadError
        for holder in (error, wrapped):
            if response := getattr(holder, "response", None):
                response.close()


def _arrived(target: Path) -> Path:
    """yt-dlp also ends well without a file."""
    try:
        size = target.stat().st_size
    except FileNotFoundError:
        what = f"yt-dlp ended without an error, and without {target.name!r}"
        raise DownloadFailed(Code.UNKNOWN, what) from None
    if not size:
        target.unlink()  # else the next run takes it for done
        raise DownloadFailed(Code.BAD_MEDIA, f"{target.name!r} came empty")
    return target


class _Stopped(Exception):
    """Gets through yt-dlp, which would wrap an OSError or a DownloadError of the caller's."""


class _Watch:
    """yt-dlp's calls during a download, passed on to the caller."""

    def __init__(
        self,
        on_progress: Callable[[Progress], None] | None,
        should_stop: Callable[[], BaseException | None] | None,
    ) -> None:
        self._on_progress = on_progress
        self._should_stop = should_stop
        self.reason: BaseException | None = None

    def on_block(self, status: dict[str, Any]) -> None:
        if self._on_progress:
            self._on_progress(_progress(status))
        self._ask()

    def before_retry(self, n: int) -> float:
        self._ask()
        return pause_before_retry(n)

    def wait_until(self, available_at: float) -> None:
        """The site's own delay, for its advertisements; yt-dlp would sleep for any time, and hear no stop."""
        end = min(available_at, time.time() + LONGEST_WAIT_SECONDS)
        while (left := end - time.time()) > 0:
            self._ask()
            time.sleep(min(left, 1))

    def _ask(self) -> None:
        if self._should_stop and (reason := self._should_stop()):
            self.reason = reason
            raise _Stopped


def _progress(status: dict[str, Any]) -> Progress:
    total = status.get("total_bytes") or status.get("total_bytes_estimate")
    return Progress(
        downloaded_bytes=status.get("downloaded_bytes"),
        total_bytes=None if total is None else int(total),
        speed=status.get("speed"),
        eta=status.get("eta"),
        fragment=status.get("fragment_index"),
    )
