"""
The one place that builds yt-dlp's options for a download.

Safe by construction: nothing is read from configuration files, plugins, netrc, browsers or caches, nothing is
executed, and nothing but the one media file is written. Users' wishes come in as a `Transfer`, which a profile
makes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.ytdlp_ops.certificates import share_contexts

_LONGEST_PAUSE_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """
    How bytes shall come.

    :param rate_limit: bytes a second, of this download.
    :param concurrent_fragments: of an HLS or DASH format, at once.
    :param connections: of one file, at once; 1: yt-dlp's own single one; None: more where one is slow.
    :param retries: of a connection that fails.
    :param fragment_retries: of each fragment.
    :param socket_timeout: seconds without a byte.
    :param http_chunk_size: most bytes to ask for at once; an info's own size goes first.
    """

    rate_limit: int | None = None
    concurrent_fragments: int = 4
    connections: int | None = None
    retries: int = 10
    fragment_retries: int = 10
    socket_timeout: float = 20.0
    http_chunk_size: int | None = None


def download_options(
    *,
    target: Path,
    proxy: str | None,
    ca_file: Path | None = None,
    transfer: Transfer | None = None,
    needs_ffmpeg: bool = False,
    pause: Callable[..., float] | None = None,
) -> dict[str, Any]:
    """
    Options for `yt_dlp.YoutubeDL` to download one format of a loaded info into one file.

    :param target: the file; while it grows it is called ``<target>.part``.
    :param proxy: the egress that extracted; None for the host's own way out.
    :param ca_file: a PEM bundle to trust instead of certifi's; `isolated` has to be given the same.
    :param transfer: what a profile wishes.
    :param needs_ffmpeg: whether this format can't do without ffmpeg.
    :param pause: called as ``pause(n=…)`` before each retry, from 0; by default `pause_before_retry`.
    """
    transfer = transfer or Transfer()
    options: dict[str, Any] = {
        "format": "all",  # the info holds one
        "outtmpl": {"default": str(target).replace("%", "%%")},
        "overwrites": False,
        "continuedl": True,
        "nopart": False,
        "updatetime": False,
        "fixup": "never",  # it rewrites the file, and the bytes are compared with what was promised
        "allowed_extractors": [],
        "enable_file_urls": False,
        "cachedir": False,
        "usenetrc": False,
        "cookiesfrombrowser": None,
        "postprocessors": [],
        "retries": transfer.retries,
        "fragment_retries": transfer.fragment_retries,
        "concurrent_fragment_downloads": transfer.concurrent_fragments,
        "skip_unavailable_fragments": False,
        "socket_timeout": transfer.socket_timeout,
        "http_chunk_size": transfer.http_chunk_size,
        "retry_sleep_functions": dict.fromkeys(("http", "fragment"), pause or pause_before_retry),
        "noprogress": True,
        "quiet": True,
        "no_color": True,
    }
    if proxy is not None:
        options["proxy"] = proxy
    if ca_file is not None:
        options["compat_opts"] = {"no-certifi"}
    if needs_ffmpeg and (ffmpeg := ffmpeg_path()):
        options["ffmpeg_location"] = ffmpeg
    return options


def pause_before_retry(n: int) -> float:
    """Seconds before a retry: at once at first, for most cuts are passing; doubled up to ten seconds."""
    return float(min(0.25 * 2**n, _LONGEST_PAUSE_SECONDS))


@contextlib.contextmanager
def isolated(ca_file: Path | None) -> Iterator[None]:
    """
    Run yt-dlp without plugins and, given a bundle, with that instead of certifi's.

    OpenSSL and yt-dlp read both from the environment only, so this holds for the whole process.
    """
    share_contexts()
    wanted = {"YTDLP_NO_PLUGINS": "1"} | ({"SSL_CERT_FILE": str(ca_file)} if ca_file else {})
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def warm_up(ca_file: Path | None) -> None:
    """Make the TLS context of ordinary downloads now, for the processes that will be forked."""
    from yt_dlp.networking import common  # type: ignore[import-untyped]  # ships no types

    with isolated(ca_file):
        common.make_ssl_context(verify=True, legacy_support=False, use_certifi=ca_file is None)


def ffmpeg_path() -> str | None:
    """The system's ffmpeg, else the one in the `imageio-ffmpeg` wheel; None if there is neither."""
    if found := shutil.which("ffmpeg"):
        return found
    import imageio_ffmpeg  # type: ignore[import-untyped]  # ships no types

    try:
        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except RuntimeError:
        return None
