"""An HLS media playlist (RFC 8216), as far as recording needs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import DownloadFailed


@dataclass(frozen=True)
class Place:
    """
    Where bytes are.

    :param start: the first byte; None: all of them.
    :param end: the one behind the last.
    """

    url: str = field(repr=False)
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class Segment:
    """
    One segment.

    :param sequence: its number in the stream.
    :param header: of fragmented mp4; None: it needs none.
    :param key_url: of AES-128; None: it is not encrypted.
    :param iv: 16 bytes.
    """

    sequence: int
    place: Place
    header: Place | None
    key_url: str | None = field(repr=False)
    iv: bytes


@dataclass
class Playlist:
    """
    What a playlist says now.

    :param ended: nothing will be added.
    :param has_beginning: its first segment is the stream's first.
    :param target_seconds: longest segment.
    """

    segments: list[Segment] = field(default_factory=list)
    ended: bool = False
    has_beginning: bool = False
    target_seconds: float = 5.0


def read_playlist(text: str, url: str) -> Playlist:
    """
    Read a playlist.

    :param url: where it came from, for what it names relatively.
    :raises DownloadFailed: `BAD_MEDIA` if it is none; `DRM` if its segments are locked in a way that has no key.
    """
    if not text.lstrip("\ufeff").startswith("#EXTM3U"):
        raise DownloadFailed(Code.BAD_MEDIA, "the playlist is none: it does not begin with #EXTM3U")
    reader = _Reader(url)
    for line in filter(None, (line.strip() for line in text.splitlines())):
        try:
            reader.take(line)
        except (ValueError, KeyError) as error:
            raise DownloadFailed(Code.BAD_MEDIA, f"the playlist's {line.split(':')[0]!r} can't be read") from error
    playlist = reader.playlist
    playlist.has_beginning = reader.event or bool(playlist.segments and playlist.segments[0].sequence == 0)
    return playlist


class _Reader:
    def __init__(self, url: str) -> None:
        self.playlist, self.event = Playlist(), False
        self._url, self._sequence, self._range_end = url, 0, 0
        self._range: str | None = None
        self._header: Place | None = None
        self._key_url: str | None = None
        self._iv: bytes | None = None

    def take(self, line: str) -> None:
        if not line.startswith("#"):
            self._segment(line)
            return
        tag, _, value = line.partition(":")
        if tag == "#EXT-X-MEDIA-SEQUENCE":
            self._sequence = int(value)
        elif tag == "#EXT-X-TARGETDURATION":
            self.playlist.target_seconds = max(0.1, float(value))
        elif tag == "#EXT-X-PLAYLIST-TYPE":
            self.event = True  # EVENT and VOD: none is taken away
        elif tag == "#EXT-X-ENDLIST":
            self.playlist.ended = True
        elif tag == "#EXT-X-BYTERANGE":
            self._range = value
        elif tag == "#EXT-X-MAP":
            self._map(_attributes(value))
        elif tag == "#EXT-X-KEY":
            self._key(_attributes(value))

    def _segment(self, line: str) -> None:
        iv = self._iv or self._sequence.to_bytes(16, "big")
        place = self._place(line, self._range)
        self.playlist.segments.append(Segment(self._sequence, place, self._header, self._key_url, iv))
        self._sequence += 1
        self._range = None

    def _place(self, url: str, byte_range: str | None) -> Place:
        where = urljoin(self._url, url)
        if not byte_range:
            return Place(where)
        length, _, start = byte_range.partition("@")
        begin = int(start) if start else self._range_end  # without a start it follows the one before
        self._range_end = begin + int(length)
        return Place(where, begin, self._range_end)

    def _map(self, said: dict[str, Any]) -> None:
        self._header = self._place(said["URI"], said.get("BYTERANGE"))

    def _key(self, said: dict[str, Any]) -> None:
        method = said["METHOD"]
        if method not in ("NONE", "AES-128") or said.get("KEYFORMAT", "identity") != "identity":
            raise DownloadFailed(Code.DRM, f"the live's segments are locked by {method!r}; only AES-128 is opened")
        self._key_url = urljoin(self._url, said["URI"]) if method == "AES-128" else None
        iv = said.get("IV")
        self._iv = bytes.fromhex(iv[2:].zfill(32)) if iv else None


def _attributes(value: str) -> dict[str, Any]:
    from yt_dlp.utils import parse_m3u8_attributes  # type: ignore[import-untyped]  # ships no types

    said: dict[str, Any] = parse_m3u8_attributes(value)
    return said


def new_segments(playlist: Playlist, following: int | None) -> Iterator[Segment]:
    """
    Those that were not had yet.

    :param following: number of the next one; None: all are new.
    """
    listed = playlist.segments
    if following is not None and listed and listed[-1].sequence + len(listed) < following:
        following = None  # far behind: the stream began anew. A little behind is another server's older copy
    yield from (one for one in listed if following is None or one.sequence >= following)
