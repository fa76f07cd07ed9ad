"""
One file over several connections, for sites that limit each of them.

Ranges are fetched side by side and written in order, so that the ``.part`` is at any time a prefix of the file:
yt-dlp itself, or a later attempt, goes on from it.
"""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.watching import Progress, Stopped, Watch
from include.ytdlp_ops.errors import DownloadFailed

RANGE_BYTES = 4 << 20
WORTH_IT_BYTES = 2 * RANGE_BYTES
"""Less than this is fetched over one connection."""

_BLOCK_BYTES = 256 << 10
_AHEAD = 2  # ranges in memory for each connection: one slow range does not stop the others at once
_LOOK_SECONDS = 0.25


class NoRanges(Exception):
    """The server sends the whole file whatever is asked for."""


@dataclass(frozen=True, kw_only=True)
class RangeSource:
    """
    Where ranges come from.

    :param ydl: the `YoutubeDL` whose networking is used: its proxy, its trust, its time-outs.
    :param fmt: the format, cut.
    :param size: of the whole file.
    :param retries: of one range that brings nothing new.
    """

    ydl: Any
    fmt: dict[str, Any]
    size: int
    retries: int


def download_ranges(source: RangeSource, part: Path, connections: int, watch: Watch) -> None:
    """
    Fetch what is missing of the file, and append it to the part; whatever ends it, what came in order is kept.

    :raises NoRanges: if the server knows none.
    :raises Stopped: if the watch says so.
    :raises DownloadFailed: `BAD_MEDIA` if the server's file has another size.
    :raises Exception: yt-dlp's networking errors.
    """
    with part.open("ab") as file, _Fetching(source, watch, have=file.tell(), connections=connections) as fetching:
        for content in fetching.in_order():
            file.write(content)
            file.flush()  # a killed process leaves it


class _Fetching:
    def __init__(self, source: RangeSource, watch: Watch, *, have: int, connections: int) -> None:
        self._source, self._watch = source, watch
        self._have, self._came = have, 0
        self._ahead = connections * _AHEAD
        self._pool = ThreadPoolExecutor(connections, thread_name_prefix="range")
        self._given_up = threading.Event()
        self._began = time.monotonic()
        self._lock = threading.Lock()

    def __enter__(self) -> _Fetching:
        return self

    def __exit__(self, *exc: object) -> None:
        self._given_up.set()
        self._pool.shutdown(cancel_futures=True)

    def in_order(self) -> Iterator[bytearray]:
        """The ranges' contents one after another, while later ones are being fetched."""
        starts = iter(range(self._have, self._source.size, RANGE_BYTES))
        running = deque(self._begin(start) for start in itertools.islice(starts, self._ahead))
        while running:
            first = running.popleft()
            while not wait([first], timeout=_LOOK_SECONDS).done:
                self._tell()
            yield first.result()  # written before anything may stop it
            self._tell()
            running.extend(self._begin(start) for start in itertools.islice(starts, 1))

    def _begin(self, start: int) -> Future[bytearray]:
        return self._pool.submit(self._fetch, start, min(start + RANGE_BYTES, self._source.size))

    def _tell(self) -> None:
        got, size = self._have + self._came, self._source.size
        speed = self._came / max(time.monotonic() - self._began, 0.001)
        eta = (size - got) / speed if speed else None
        self._watch.tell(Progress(got, size, speed, eta, None))
        self._watch.ask()

    def _fetch(self, start: int, end: int) -> bytearray:
        """One range; what came of it before a cut is not asked for again."""
        from yt_dlp.networking.exceptions import (  # type: ignore[import-untyped]  # ships no types
            CertificateVerifyError,
            HTTPError,
            TransportError,
        )

        content, failures = bytearray(), 0
        while start + len(content) < end:
            before = len(content)
            try:
                self._read(start + before, end, content)
            except CertificateVerifyError:
                raise
            except (TransportError, HTTPError) as error:
                passing = not isinstance(error, HTTPError) or error.status >= 500
                failures = failures + 1 if len(content) == before else 1
                if not passing or failures > self._source.retries:
                    raise
                self._given_up.wait(self._watch.before_retry(failures - 1))
        return content

    def _read(self, start: int, end: int, content: bytearray) -> None:
        from yt_dlp.networking import Request  # type: ignore[import-untyped]  # ships no types
        from yt_dlp.networking.exceptions import IncompleteRead

        fmt = self._source.fmt
        headers = {
            **fmt.get("http_headers", {}),
            "Accept-Encoding": "identity",
            "Range": f"bytes={start}-{end - 1}",
        }
        left = end - start
        with self._source.ydl.urlopen(Request(fmt["url"], headers=headers)) as response:
            _check_range(response, start, self._source.size)
            while left and (block := response.read(min(left, _BLOCK_BYTES))):
                content += block
                left -= len(block)
                with self._lock:
                    self._came += len(block)
                self._watch.on_bytes(len(block))
                if self._given_up.is_set():
                    raise Stopped
        if left:
            raise IncompleteRead(partial=end - start - left, expected=left)


def _check_range(response: Any, start: int, size: int) -> None:
    if response.status != 206:
        raise NoRanges
    said = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.get_header("Content-Range") or "")
    if not said or int(said[1]) != start:
        raise NoRanges
    if int(said[2]) != size:
        raise DownloadFailed(Code.BAD_MEDIA, f"the server's file has {said[2]} bytes; {size} were promised")
