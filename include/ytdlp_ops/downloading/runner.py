"""Downloads one format of an info with real yt-dlp, in this process, and never extracts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.diagnosis import diagnose
from include.ytdlp_ops.diagnosis.signals import RetryRecorder, WarningRecorder, read_signal
from include.ytdlp_ops.downloading.children import watched_children
from include.ytdlp_ops.downloading.directories import is_whole, promised_size, target_in, write_version
from include.ytdlp_ops.downloading.fragments import close, keep_ledgers, rewind
from include.ytdlp_ops.downloading.guarding import keep_public, refused_target, without_programs
from include.ytdlp_ops.downloading.infos import PLAIN_PROTOCOLS, cut_to_format, is_live, protocol_of
from include.ytdlp_ops.downloading.live import LiveSource, record
from include.ytdlp_ops.downloading.options import Transfer, download_options, isolated
from include.ytdlp_ops.downloading.pacing import DownloadPace, Pace
from include.ytdlp_ops.downloading.ranges import WORTH_IT_BYTES, NoRanges, RangeSource, download_ranges
from include.ytdlp_ops.downloading.watching import LONGEST_WAIT_SECONDS, Progress, Stopped, Watch
from include.ytdlp_ops.errors import DownloadFailed
from include.ytdlp_ops.local_io import local_failure

__all__ = ["LONGEST_WAIT_SECONDS", "Downloaded", "Progress", "download_format"]


@dataclass(frozen=True, kw_only=True)
class Downloaded:
    """
    A file that exists and isn't empty; whether it is what was promised, `verify` tells.

    :param partial: of a live: what of it isn't there, for people; None if it is whole.
    """

    path: Path
    live: bool = False
    partial: str | None = None


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
    allow_private_targets: bool = True,
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], BaseException | None] | None = None,
) -> Downloaded:
    """
    Download one format into a directory of its own; a ``.part`` that lies there is resumed, or is all there is.

    What is live is recorded until it ends.

    :param info: a loaded info; it is cut to the format first.
    :param directory: from `directory_for`.
    :param proxy: the egress that extracted: the media URL is bound to it.
    :param ca_file: a PEM bundle to trust instead of certifi's.
    :param transfer: a profile's wishes.
    :param paces: limits on bandwidth that hold besides the profile's, such as the host's.
    :param reserve_bytes: free space to leave on the file system, looked at every 64 MB; None: it isn't.
    :param allow_private_targets: else `keep_public` holds.
    :param on_progress: told of every block that came, often many in a second, by one thread or by several.
    :param should_stop: asked as often, and before each retry; an exception that it returns ends the download and
        is raised as it is. What has come stays as a ``.part``.
    :raises DownloadFailed: why it failed, with code and outcome.
    :raises BadInput: if it leads to a private address.
    """
    cut, transfer = cut_to_format(info, format_id), transfer or Transfer()
    fmt, target = cut["formats"][0], target_in(directory, cut["formats"][0])
    if _is_here(directory, target, fmt):
        return Downloaded(path=target)
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
        needs_ffmpeg=protocol_of(fmt) not in PLAIN_PROTOCOLS,
        pause=watch.before_retry,
    )
    with isolated(ca_file), _diagnosed(watch, fmt["url"]) as logger:
        watch.wait_until(available_at)
        options |= {"logger": logger, "progress_hooks": [watch.on_block]}
        partial = _run(cut, options, transfer, watch, target, guarded=not allow_private_targets)
    return Downloaded(path=_arrived(target), live=is_live(cut), partial=partial)


def _is_here(directory: Path, target: Path, fmt: dict[str, Any]) -> bool:
    """Whether it was whole when an earlier attempt ended; what there is otherwise, is made ready to go on from."""
    try:
        write_version(directory, fmt)
        if is_whole(target, fmt):
            return True
        if protocol_of(fmt) not in PLAIN_PROTOCOLS:
            rewind(target)
    except OSError as error:
        raise local_failure(error, f"{str(directory)!r} can't be written to") from None
    return False


def _run(
    info: dict[str, Any],
    options: dict[str, Any],
    transfer: Transfer,
    watch: Watch,
    target: Path,
    *,
    guarded: bool,
) -> str | None:
    """Fetch it; of a live, what of it isn't there."""
    import yt_dlp  # type: ignore[import-untyped]  # ships no types

    fmt = info["formats"][0]
    with yt_dlp.YoutubeDL(options, auto_init=False) as ydl:
        if guarded:
            keep_public(ydl)
        if is_live(info):
            return record(LiveSource(ydl=ydl, fmt=fmt, retries=transfer.fragment_retries), target, watch).partial
        size = promised_size(fmt) if protocol_of(fmt) in PLAIN_PROTOCOLS else None
        if transfer.connections != 1 and (size or 0) >= WORTH_IT_BYTES:
            source = RangeSource(ydl=ydl, fmt=fmt, size=size or 0, retries=transfer.retries)
            with contextlib.suppress(NoRanges):
                download_ranges(source, target.with_name(f"{target.name}.part"), transfer.connections, watch)
        if not is_whole(target, fmt):
            with without_programs() if guarded else contextlib.nullcontext():
                _run_ytdlp(ydl, info, watch, target)
    return None


def _run_ytdlp(ydl: Any, info: dict[str, Any], watch: Watch, target: Path) -> None:
    keep_ledgers()
    try:
        # process_ie_result, not download_with_info_file: that one needs the info on disk, and extracts again
        with watched_children(watch):
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
            if refused := refused_target(error):
                raise refused from None
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
