"""
What yt-dlp says of a failure, and what it drops on the way, as a `Signal`.

yt-dlp keeps the playability status to itself, turns the error of its last retry into text, and says why a client
failed in a warning only. One recorder for each, and `read_signal` to put it all together.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import urlsplit

from include.ytdlp_ops.diagnosis.values import Playability, Signal
from include.ytdlp_ops.diagnosis.wording import plain

if TYPE_CHECKING:
    from yt_dlp.extractor.common import InfoExtractor  # type: ignore[import-untyped]  # yt-dlp has no types

MAX_WARNINGS = 200

_EXPLAINS = re.compile(
    r"HTTP Error \d{3}|Unable to connect to proxy|timed out|CERTIFICATE_VERIFY_FAILED|SABR|PO Token"
    r"|This video is DRM protected|no longer valid|n challenge solving failed|Signature solving failed"
    r"|No supported JavaScript runtime",
    re.IGNORECASE,
)
_RETRIES_ARE_OVER = re.compile(r"Got error: |fragment \d+ not found|file is empty|Did not get any data")


def read_signal(
    error: BaseException,
    *,
    stage: str,
    playability: Iterable[Playability] = (),
    warnings: Iterable[str] = (),
    retried: Sequence[object] = (),
    media_url: str | None = None,
) -> Signal:
    """
    All that is known of this failure.

    :param playability: a recording extractor's ``seen``.
    :param warnings: a `WarningRecorder`'s ``warnings``.
    :param retried: a `RetryRecorder`'s ``errors``; the last counts, where yt-dlp gave up after its retries.
    :param media_url: the URL that was being downloaded.
    """
    text = str(getattr(error, "msg", None) or error)
    found = list(_chain(error))
    if retried and _RETRIES_ARE_OVER.search(text):
        found += _chain(retried[-1])
    http = next((each for each in found if type(each).__name__ == "HTTPError" and hasattr(each, "status")), None)
    countries = next((each.countries for each in found if getattr(each, "countries", None)), ())
    return Signal(
        stage=stage,
        text=plain(text),
        classes=tuple(type(each).__name__ for each in found),
        status=getattr(http, "status", None),
        host=urlsplit(getattr(getattr(http, "response", None), "url", None) or "").hostname,
        errno=next((each.errno for each in found if _is_file_error(each, error, text)), None),
        playability=tuple(playability),
        warned=tuple(sorted({part for warning in warnings for part in _EXPLAINS.findall(warning)})),
        countries=tuple(countries),
        media_url=media_url,
    )


def _chain(error: object) -> Iterator[Any]:
    """Every exception below this one, once: what it wraps, its cause, what was being handled when it came."""
    todo, seen = [error], set[int]()
    while todo:
        each = todo.pop(0)
        if not isinstance(each, BaseException) or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        wrapped = getattr(each, "exc_info", None)
        todo += [wrapped[1] if wrapped else None, getattr(each, "cause", None), each.__cause__, each.__context__]
        todo += [*each.args, getattr(each, "reason", None)]


def _is_file_error(each: Any, error: BaseException, text: str) -> bool:
    """
    Whether this errno is errno's, and what the failure is about.

    TLS and name lookup count on their own; a file that was missed on the way explains nothing.
    """
    if not isinstance(each, OSError) or isinstance(each, ssl.SSLError | socket.gaierror | socket.herror):
        return False
    return bool(each.errno) and (each is error or bool(each.strerror and each.strerror in text))


class WarningRecorder:
    """
    A yt-dlp ``logger`` that keeps warnings and errors, and is silent.

    ``warnings`` and ``errors`` hold the first `MAX_WARNINGS` of each.
    """

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.errors: list[str] = []

    def debug(self, message: str) -> None:
        """Drop what yt-dlp prints."""

    def info(self, message: str) -> None:
        """Drop what yt-dlp prints."""

    def warning(self, message: str) -> None:
        """Keep it."""
        self.warnings += [message][: MAX_WARNINGS - len(self.warnings)]

    def error(self, message: str) -> None:
        """Keep it."""
        self.errors += [message][: MAX_WARNINGS - len(self.errors)]


class RetryRecorder:
    """
    Keeps the errors that the downloaders retry after, before they are turned into text.

    While one is open, yt-dlp's ``FileDownloader.report_retry`` is wrapped, in the whole process.

    :param ydl: record only what this `YoutubeDL` does; None: what any does.
    """

    _open: ClassVar[list[RetryRecorder]] = []
    _lock: ClassVar[threading.Lock] = threading.Lock()
    _original: ClassVar[Any] = None

    def __init__(self, ydl: object | None = None) -> None:
        self.ydl = ydl
        self.errors: list[object] = []

    def __enter__(self) -> Self:
        from yt_dlp.downloader.common import FileDownloader  # type: ignore[import-untyped]  # as above

        with self._lock:
            if not self._open:
                RetryRecorder._original = FileDownloader.report_retry
                FileDownloader.report_retry = _recorded(self._open, FileDownloader.report_retry)
            self._open.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        from yt_dlp.downloader.common import FileDownloader

        with self._lock:
            self._open.remove(self)
            if not self._open:
                FileDownloader.report_retry = RetryRecorder._original


def _recorded(recorders: list[RetryRecorder], report_retry: Any) -> Any:
    def recorded(downloader: Any, error: object, *args: Any, **kwargs: Any) -> Any:
        for recorder in list(recorders):
            if recorder.ydl in (None, downloader.ydl):
                recorder.errors.append(error)
        return report_retry(downloader, error, *args, **kwargs)

    return recorded


def recording_youtube_ie() -> InfoExtractor:
    """
    A YouTube extractor for `YoutubeDL.add_info_extractor`.

    Its ``seen`` holds what each client was told of the video that was extracted last.
    """
    return _recording_class()()


@cache
def _recording_class() -> Any:
    from yt_dlp.extractor.youtube import YoutubeIE  # type: ignore[import-untyped]  # as above

    class RecordingYoutubeIE(YoutubeIE):  # type: ignore[misc]  # as above
        seen: Sequence[Playability] = ()

        @classmethod
        def ie_key(cls) -> str:
            return "Youtube"

        def _extract_player_responses(self, *args: Any, **kwargs: Any) -> Any:
            self.seen = []
            responses, player_url = super()._extract_player_responses(*args, **kwargs)
            self.seen = [_told(response) for response in responses]
            return responses, player_url

    return RecordingYoutubeIE


def _told(response: dict[str, Any]) -> Playability:
    said = response.get("playabilityStatus") or {}
    microformat = (response.get("microformat") or {}).get("playerMicroformatRenderer") or {}
    return Playability(
        status=said.get("status"),
        reason=said.get("reason"),
        screen=next(iter(said.get("errorScreen") or {}), None),
        starts=(microformat.get("liveBroadcastDetails") or {}).get("startTimestamp"),
        client=(response.get("streamingData") or {}).get("__yt_dlp_client"),
    )
