"""Downloads one format of an info with real yt-dlp, in this process, and never extracts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.diagnosis import diagnose
from include.ytdlp_ops.diagnosis.signals import RetryRecorder, WarningRecorder, read_signal
from include.ytdlp_ops.downloading.directories import is_whole, promised_size, target_in, write_version
from include.ytdlp_ops.downloading.fragments import close, keep_ledgers, rewind
from include.ytdlp_ops.downloading.infos import PLAIN_PROTOCOLS, cut_to_format, protocol_of
from include.ytdlp_ops.downloading.options import Transfer, download_options, isolated
from include.ytdlp_ops.downloading.pacing import DownloadPace, Pace
from include.ytdlp_ops.downloading.ranges import WORTH_IT_BYTES, NoRanges, RangeSource, download_ranges
from include.ytdlp_ops.downloading.watching import LONGEST_WAIT_SECONDS, Progress, Stopped, Watch
from include.ytdlp_ops.errors import DownloadFailed
from include.ytdlp_ops.local_io import local_failure

__all__ = ["LONGEST_WAIT_SECONDS", "Progress", "download_format"]


def download_format(
    info: dict[str, Any],
    format_id: str,
    *,
    directory: Path,
    proxy: str | None,
    ca_file: Path | None = None,
    transfer: Transfer | None = None,
    paces: Sequence[Pace] = (),
    reserve_bytes: int | None = None,
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
    :param transfer: a profile's wishes.
    :param paces: limits on bandwidth that hold besides the profile's, such as the host's.
    :param reserve_bytes: free space to leave on the file system, looked at every 64 MB; None: it isn't.
    :param on_progress: told of every block that came, often many in a second, by one thread or by several.
    :param should_stop: asked as often, and before each retry; an exception that it returns ends the download and
        is raised as it is. What has come stays as a ``.part``.
    :raises DownloadFailed: why it failed, with code and outcome.
    """
    cut = cut_to_format(info, format_id)
    fmt, transfer = cut["formats"][0], transfer or Transfer()
    target, plain = target_in(directory, fmt), protocol_of(fmt) in PLAIN_PROTOCOLS
    try:
        write_version(directory, fmt)
        if is_whole(target, fmt):
            return target
        if not plain:
            rewind(target)
    except OSError as error:
        raise local_failure(error, f"{str(directory)!r} can't be written to") from None
    watch = Watch(
        directory,
        on_progress=on_progress,
        should_stop=should_stop,
        paces=[*paces, *([DownloadPace(transfer.rate_limit)] if transfer.rate_limit else [])],
        reserve_bytes=reserve_bytes,
    )
    available_at = fmt.pop("available_at", 0)
    options = download_options(
        target=target,
        proxy=proxy,
        ca_file=ca_file,
        transfer=transfer,
        needs_ffmpeg=not plain,
        pause=watch.before_retry,
    )
    with isolated(ca_file), _diagnosed(watch, fmt["url"]) as logger:
        watch.wait_until(available_at)
        _run(cut, {**options, "logger": logger, "progress_hooks": [watch.on_block]}, transfer, watch, target)
    return _arrived(target)


def _run(info: dict[str, Any], options: dict[str, Any], transfer: Transfer, watch: Watch, target: Path) -> None:
    import yt_dlp  # type: ignore[import-untyped]  # ships no types

    keep_ledgers()
    fmt = info["formats"][0]
    size = promised_size(fmt) if protocol_of(fmt) in PLAIN_PROTOCOLS else None
    with yt_dlp.YoutubeDL(options, auto_init=False) as ydl:
        if transfer.connections > 1 and (size or 0) >= WORTH_IT_BYTES:
            source = RangeSource(ydl=ydl, fmt=fmt, size=size or 0, retries=transfer.retries)
            with contextlib.suppress(NoRanges):
                download_ranges(source, target.with_name(f"{target.name}.part"), transfer.connections, watch)
        if not is_whole(target, fmt):
            # process_ie_result, not download_with_info_file: that one needs the info on disk, and extracts again
            try:
                ydl.process_ie_result(info, download=True)
            finally:
                close(target)


@contextlib.contextmanager
def _diagnosed(watch: Watch, media_url: str) -> Iterator[WarningRecorder]:
    """Turn whatever yt-dlp raises into `DownloadFailed`, or into what the caller wanted raised."""
    logger, last = WarningRecorder(), list[object]()
    with RetryRecorder() as retries:
        try:
            yield logger
        except Stopped:
            assert watch.reason is not None
            raise watch.reason from None
        except DownloadFailed:
            raise
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
