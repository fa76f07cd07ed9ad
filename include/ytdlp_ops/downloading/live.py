"""
A live stream, recorded segment by segment from its HLS playlist, until it ends.

Not by yt-dlp: its own HLS downloader refuses what is live, and the ffmpeg that it starts instead knows no limits
on bandwidth, hears no stop, trusts any certificate and leaves nothing to go on from. Its networking is used.

The part holds whole segments at any time, mpegts or fragmented mp4 behind its header, and the ledger tells which:
it plays wherever it ends, and a later attempt goes on from it.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.fragments import read_ledger_facts, write_ledger
from include.ytdlp_ops.downloading.guarding import refused_target
from include.ytdlp_ops.downloading.playlists import Place, Playlist, Segment, new_segments, read_playlist
from include.ytdlp_ops.downloading.selecting import expires_at
from include.ytdlp_ops.downloading.watching import Progress, Watch
from include.ytdlp_ops.errors import DownloadFailed

PATIENCE_SECONDS = 300.0
"""How long nothing new may come, before a live counts as ended although nobody said so."""

_MOST_BYTES = 256 << 20  # of a segment: they are held in memory
_PLAYLIST_BYTES = 16 << 20
_BLOCK_BYTES = 256 << 10
_LOST = (401, 403, 404, 410)  # of a segment: it has left the playlist


@dataclass
class Recording:
    """
    What was recorded.

    :param following: number of the segment after the last one; None before the first.
    :param from_start: whether the first segment was the stream's first.
    :param missing: segments in between that did not come.
    :param ended: why it is over: None where the site said so.
    :param header: digest of the header that the last segments belong to.
    """

    following: int | None = None
    from_start: bool = False
    missing: int = 0
    ended: str | None = None
    header: str | None = None

    @property
    def partial(self) -> str | None:
        """What of the live isn't there, for people; None if it is whole."""
        said = [
            None if self.from_start else "its beginning had gone from the playlist",
            f"segments in between that did not come: {self.missing}" if self.missing else None,
            self.ended,
        ]
        return "; ".join(filter(None, said)) or None


@dataclass(frozen=True, kw_only=True)
class LiveSource:
    """
    Where the stream comes from.

    :param ydl: the `YoutubeDL` whose networking is used.
    :param fmt: the format, cut.
    :param retries: of one segment.
    :param patience_seconds: how long nothing new may come.
    """

    ydl: Any
    fmt: dict[str, Any]
    retries: int
    patience_seconds: float = field(default_factory=lambda: PATIENCE_SECONDS)


def record(source: LiveSource, target: Path, watch: Watch) -> Recording:
    """
    Record until the stream ends, behind what lies there; the part then becomes the file.

    :param target: has been rewound.
    :raises Stopped: if the watch says so.
    :raises DownloadFailed: `BAD_MEDIA` or `DRM` for a playlist that can't be recorded from.
    :raises Exception: yt-dlp's networking errors, where nothing has come at all, or the URL has ended.
    """
    part = target.with_name(f"{target.name}.part")
    recorder = _Recorder(source, target, watch)
    with part.open("ab") as file:
        recorder.run(file)
    part.rename(target)
    return recorder.made


class _Recorder:
    def __init__(self, source: LiveSource, target: Path, watch: Watch) -> None:
        self._source, self._target, self._watch = source, target, watch
        self.made = Recording(**read_ledger_facts(target))
        self.made.ended = None
        self._size = 0
        self._began, self._came = time.monotonic(), 0
        self._asked_at = self._began
        self._keys: dict[str, bytes] = {}

    def run(self, file: Any) -> None:
        self._size = file.tell()
        new_at, trouble = time.monotonic(), None
        while True:
            try:
                playlist, trouble = self._playlist(), None
            except _network_error() as error:
                if _status(error) in _LOST and (not self._size or self._has_expired()):
                    raise
                playlist, trouble = Playlist(), _set_aside(error)
            except DownloadFailed as error:  # a page in place of the playlist, say
                if not self._size:
                    raise
                playlist, trouble = Playlist(), error
            if self._take(playlist, file):
                new_at = time.monotonic()
            if playlist.ended:
                return
            if time.monotonic() - new_at > self._source.patience_seconds:
                self._give_up(trouble)
                return
            # RFC 8216, 6.3.4: half a segment's time, where nothing was new
            self._watch.pause(playlist.target_seconds * (1 if new_at > self._asked_at else 0.5))

    def _take(self, playlist: Playlist, file: Any) -> bool:
        """Append what is new; whether there was anything."""
        before = self._size
        for segment in new_segments(playlist, self.made.following):
            self._watch.ask()
            if self.made.following is None:
                self.made.from_start = playlist.has_beginning
            elif segment.sequence > self.made.following:
                self.made.missing += segment.sequence - self.made.following
            content = self._content(segment)
            if content is None:
                self.made.missing += 1
            else:
                file.write(content)
                file.flush()  # a killed process leaves it
                self._size += len(content)
            self.made.following = segment.sequence + 1
            write_ledger(self._target, self.made.following, self._size, asdict(self.made))
            self._tell(segment)
        return self._size > before

    def _has_expired(self) -> bool:
        """Whether a fresh URL may help: the next attempt goes on from these bytes, if it comes to this host."""
        ends = expires_at(self._source.fmt["url"])
        return ends is not None and ends <= time.time()

    def _give_up(self, trouble: Exception | None) -> None:
        """
        :raises Exception: the trouble, where nothing has come.
        """
        waited = f"{self._source.patience_seconds:.0f} s"
        if not self._size:
            raise trouble or DownloadFailed(Code.NETWORK, f"the live's playlist brought nothing for {waited}")
        self.made.ended = f"{_why(trouble)} for {waited}, and nobody said that the live has ended"

    def _playlist(self) -> Playlist:
        self._asked_at = time.monotonic()
        self._watch.ask()
        content, url = self._get(Place(self._source.fmt["url"]), most=_PLAYLIST_BYTES)
        return read_playlist(content.decode("utf-8", "replace"), url)

    def _content(self, segment: Segment) -> bytes | None:
        """A segment behind its header, decrypted; None if it can't be had."""
        from yt_dlp.aes import aes_cbc_decrypt_bytes, unpad_pkcs7  # type: ignore[import-untyped]  # ships no types

        content = self._patiently(segment.place)
        header = self._patiently(segment.header) if segment.header else b""
        if content is None or header is None:
            return None
        if segment.key_url:
            key = self._keys.get(segment.key_url) or self._patiently(Place(segment.key_url))
            if key is None:
                return None
            self._keys[segment.key_url] = key
            try:
                content = bytes(unpad_pkcs7(aes_cbc_decrypt_bytes(content, key, segment.iv)))
            except (ValueError, IndexError):  # cut short, or of another key
                return None
        return self._new_header(header) + content

    def _new_header(self, header: bytes) -> bytes:
        digest = hashlib.sha256(header).hexdigest()[:16] if header else None
        if digest == self.made.header:
            return b""
        self.made.header = digest
        return header

    def _patiently(self, place: Place) -> bytes | None:
        failures = 0
        while True:
            try:
                return self._get(place, most=_MOST_BYTES)[0]
            except _network_error() as error:
                failures += 1
                if _status(_set_aside(error)) in _LOST or failures > self._source.retries:
                    return None
            self._watch.pause(self._watch.before_retry(failures - 1))

    def _get(self, place: Place, *, most: int) -> tuple[bytes, str]:
        """Bytes, and the URL that they came from in the end."""
        from yt_dlp.networking import Request  # type: ignore[import-untyped]  # ships no types

        headers = {**self._source.fmt.get("http_headers", {})}
        if place.start is not None and place.end is not None:
            headers["Range"] = f"bytes={place.start}-{place.end - 1}"
        content = bytearray()
        with self._source.ydl.urlopen(Request(place.url, headers=headers)) as response:
            while block := response.read(_BLOCK_BYTES):
                content += block
                if len(content) > most:
                    raise DownloadFailed(Code.BAD_MEDIA, f"a part of the live has more than {most} bytes")
                self._watch.on_bytes(len(block))
        self._came += len(content)
        return bytes(content), response.url

    def _tell(self, segment: Segment) -> None:
        speed = self._came / max(time.monotonic() - self._began, 0.001)
        self._watch.tell(Progress(self._size, None, speed, None, segment.sequence))


def _network_error() -> type[Exception]:
    from yt_dlp.networking.exceptions import RequestError  # type: ignore[import-untyped]  # ships no types

    error: type[Exception] = RequestError
    return error


def _why(trouble: Exception | None) -> str:
    """In words that hold no URL."""
    if trouble is None:
        return "nothing new came"
    status = _status(trouble)
    return f"its playlist answered HTTP {status}" if status else "its playlist could not be had"


def _status(error: Exception | None) -> int | None:
    """Of an HTTP answer; None of other trouble."""
    return getattr(error, "status", None)


def _set_aside(error: Exception) -> Exception:
    """
    An error that another try may mend, its connection closed.

    :raises Exception: itself, where it is our own refusal to go to a private address.
    """
    if refused_target(error):
        raise error
    if response := getattr(error, "response", None):
        response.close()
    return error
