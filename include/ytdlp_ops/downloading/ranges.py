"""
One file over one connection or several, for sites that limit each of them.

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
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.watching import Progress, Stopped, Watch
from include.ytdlp_ops.errors import DownloadFailed

RANGE_BYTES = 4 << 20
WORTH_IT_BYTES = 2 * RANGE_BYTES
"""Less than this is fetched over one connection."""
STEPS = (4, 8)
"""As many connections are opened where nobody says how many, and one is slow."""
SLOW = 5 << 20
"""Bytes a second; a connection that brings more is fast enough to stay alone."""

_SECONDS_TO_GO = 5.0  # for less it is not worth to open more
_WINDOW_SECONDS = 0.75
_WINDOWS = 2  # as often in a row one is slow, before it counts as slow
_GAIN = 1.25  # as much more has to come over the connections of a step
_BLOCK_BYTES = 256 << 10
_LEAST_BLOCK, _MOST_BLOCK = 16 << 10, 4 << 20
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


def download_ranges(source: RangeSource, part: Path, connections: int | None, watch: Watch) -> None:
    """
    Fetch what is missing of the file, and append it to the part; whatever ends it, what came in order is kept.

    :param connections: how many; None: one, and where that is slow, more as long as they bring more.
    :raises NoRanges: if the server knows none; also if one connection breaks that was alone, for yt-dlp to go on.
    :raises Stopped: if the watch says so.
    :raises DownloadFailed: `BAD_MEDIA` if the server's file has another size.
    :raises Exception: yt-dlp's networking errors.
    """
    with part.open("ab") as file:
        speed = None if connections else _Alone(source, watch, file).read()
        if file.tell() < source.size:
            with _Fetching(source, watch, have=file.tell(), connections=connections, speed=speed) as fetching:
                for content in fetching.in_order():
                    file.write(content)
                    file.flush()  # a killed process leaves it


class _Alone:
    """One connection, for as long as it is fast enough: read as yt-dlp does, in blocks that fit its speed."""

    def __init__(self, source: RangeSource, watch: Watch, file: IO[bytes]) -> None:
        self._source, self._watch, self._file = source, watch, file
        self._have = self._from = file.tell()
        self._block, self._began = _LEAST_BLOCK, time.monotonic()
        self._seconds, self._window, self._slow = 0.0, (0, 0.0), 0

    def read(self) -> float:
        """
        Append to the file, to its end or until it proves slow; its speed then.

        :raises NoRanges: if the server knows none, or the connection breaks.
        """
        from yt_dlp.networking.exceptions import (  # type: ignore[import-untyped]  # ships no types
            HTTPError,
            TransportError,
        )

        chunk = (self._source.fmt.get("downloader_options") or {}).get("http_chunk_size") or self._source.size
        try:
            while self._have < self._source.size and self._slow < _WINDOWS:
                before = self._have
                self._read(min(before + chunk, self._source.size))
                if self._have == before:
                    raise NoRanges
        except (TransportError, HTTPError) as error:
            if isinstance(error, HTTPError):
                if error.status < 500:
                    raise
                error.response.close()
            raise NoRanges from None  # yt-dlp tries again
        return self._speed()

    def _read(self, end: int) -> None:
        with _open_range(self._source, self._have, end) as response:
            while self._have < end and self._slow < _WINDOWS:
                began = time.monotonic()
                block = response.read(min(end - self._have, self._block))
                took = time.monotonic() - began
                if not block:
                    return
                self._file.write(block)
                self._have += len(block)
                self._measure(len(block), took)
                self._watch.tell(self._progress())
                self._watch.on_bytes(len(block))

    def _progress(self) -> Progress:
        speed = (self._have - self._from) / max(time.monotonic() - self._began, 0.001)
        return Progress(self._have, self._source.size, speed, (self._source.size - self._have) / speed, None)

    def _speed(self) -> float:
        return max(self._have - self._from, 1) / max(self._seconds, 0.001)

    def _measure(self, count: int, took: float) -> None:
        """Reading alone is timed: where our own limits are what slows it down, the bytes wait in the socket."""
        self._seconds += took
        if took < 0.1:
            self._block = min(2 * self._block, _MOST_BLOCK)
        elif took > 0.5:
            self._block = max(self._block // 2, _LEAST_BLOCK)
        count, took = self._window[0] + count, self._window[1] + took
        self._window = (count, took)
        if took >= _WINDOW_SECONDS:
            left = self._source.size - self._have
            is_slow = count / took < SLOW and left * took / count > _SECONDS_TO_GO
            self._slow = self._slow + 1 if is_slow else 0
            self._window = (0, 0.0)


class _Fetching:
    """
    Ranges side by side.

    :param connections: how many; None: those of `STEPS`, as long as each step pays.
    :param speed: of one connection, bytes a second.
    """

    def __init__(
        self, source: RangeSource, watch: Watch, *, have: int, connections: int | None, speed: float | None
    ) -> None:
        self._source, self._watch = source, watch
        self._have, self._came = have, 0
        self._steps = deque(() if connections else STEPS)
        self._connections_before, self._connections = 1, connections or self._steps.popleft()
        self._watches_gain = connections is None
        self._speed_before = speed or 0.0
        self._window = (0, time.monotonic())
        self._starts = iter(range(have, source.size, RANGE_BYTES))
        self._running: deque[Future[bytearray]] = deque()
        self._pool = ThreadPoolExecutor(connections or max(STEPS), thread_name_prefix="range")
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
        self._begin_more()
        while self._running:
            if self._running[0].done():
                yield self._running.popleft().result()  # written before anything may stop it
            else:
                wait(self._unfinished(), timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
            self._tell()
            self._grow()
            self._begin_more()

    def _unfinished(self) -> list[Future[bytearray]]:
        return [future for future in self._running if not future.done()]

    def _begin_more(self) -> None:
        room = min(self._connections - len(self._unfinished()), _AHEAD * self._connections - len(self._running))
        for start in itertools.islice(self._starts, max(0, room)):
            end = min(start + RANGE_BYTES, self._source.size)
            self._running.append(self._pool.submit(self._fetch, start, end))

    def _grow(self) -> None:
        """More connections, as long as the last step paid; one that did not is taken back."""
        came_before, since = self._window
        took = time.monotonic() - since
        if not self._watches_gain or took < _WINDOW_SECONDS:
            return
        speed = (self._came - came_before) / took
        pays = speed >= _GAIN * self._speed_before
        self._watches_gain = pays and bool(self._steps)
        if not pays:
            self._connections = self._connections_before
        elif self._steps:
            self._connections_before, self._connections = self._connections, self._steps.popleft()
        self._speed_before, self._window = speed, (self._came, time.monotonic())

    def _tell(self) -> None:
        got, size = self._have + self._came, self._source.size
        speed = self._came / max(time.monotonic() - self._began, 0.001)
        eta = (size - got) / speed if speed else None
        self._watch.tell(Progress(got, size, speed, eta, None))
        self._watch.ask()

    def _fetch(self, start: int, end: int) -> bytearray:
        """One range; what came of it before a cut is not asked for again."""
        from yt_dlp.networking.exceptions import (
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
        from yt_dlp.networking.exceptions import IncompleteRead

        left = end - start
        with _open_range(self._source, start, end) as response:
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


def _open_range(source: RangeSource, start: int, end: int) -> Any:
    """
    A response that brings these bytes.

    :raises NoRanges: if the server sends others.
    """
    from yt_dlp.networking import Request  # type: ignore[import-untyped]  # ships no types

    headers = {**source.fmt.get("http_headers", {}), "Accept-Encoding": "identity"}
    response = source.ydl.urlopen(
        Request(source.fmt["url"], headers={**headers, "Range": f"bytes={start}-{end - 1}"})
    )
    try:
        _check_range(response, start, source.size)
    except BaseException:
        response.close()
        raise
    return response


def _check_range(response: Any, start: int, size: int) -> None:
    if response.status != 206:
        raise NoRanges
    said = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.get_header("Content-Range") or "")
    if not said or int(said[1]) != start:
        raise NoRanges
    if int(said[2]) != size:
        raise DownloadFailed(Code.BAD_MEDIA, f"the server's file has {said[2]} bytes; {size} were promised")
