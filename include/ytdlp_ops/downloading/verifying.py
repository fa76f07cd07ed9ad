"""Whether a file is what was promised: its bytes, its length and its streams, read to the end."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import DownloadFailed
from include.ytdlp_ops.local_io import local_failure

if TYPE_CHECKING:
    import av
    import av.container
    import av.stream

_TOLERANCE_SECONDS, _TOLERANCE = 2.0, 0.02
# Media only: a file that came from anywhere may be a playlist, which FFmpeg would follow to other files and hosts.
_CONTAINERS = "mov,matroska,webm,mpegts,ogg,flv,avi,asf,mp3,aac,flac,wav,ac3,eac3,mpeg,3gp,caf,amr"
_OPEN_OPTIONS = {"format_whitelist": _CONTAINERS, "protocol_whitelist": "file"}


@dataclass(frozen=True)
class StreamFacts:
    """One stream; what doesn't apply to its kind is None."""

    kind: str
    codec: str | None
    width: int | None = None
    height: int | None = None
    fps: float | None = None
    channels: int | None = None
    sample_rate: int | None = None


@dataclass(frozen=True)
class MediaFacts:
    """
    What a file really holds.

    :param container: FFmpeg's name of the format: ``mov,mp4,m4a,3gp,3g2,mj2``.
    :param bytes: size of the file.
    :param duration: seconds from the first packet's start to the last one's end, not what the header claims.
    """

    container: str
    bytes: int
    duration: float
    streams: list[StreamFacts] = field(default_factory=list)

    @property
    def video_codec(self) -> str | None:
        """Codec of the first video stream."""
        return self._codec("video")

    @property
    def audio_codec(self) -> str | None:
        """Codec of the first audio stream."""
        return self._codec("audio")

    def to_record(self) -> dict[str, Any]:
        """Plain JSON values, without what is None."""
        streams = [
            {key: value for key, value in asdict(stream).items() if value is not None} for stream in self.streams
        ]
        return {**asdict(self), "streams": streams}

    def _codec(self, kind: str) -> str | None:
        return next((stream.codec for stream in self.streams if stream.kind == kind), None)


def verify(
    path: Path,
    *,
    expected_bytes: int | None,
    expected_duration: float | None,
    expect_video: bool,
    expect_audio: bool,
) -> MediaFacts:
    """
    Read a media file once, to its end, and compare it with what was promised.

    :param expected_bytes: exact size, if one was promised.
    :param expected_duration: seconds; 2 s or 2 % off are let pass, whichever is more.
    :raises DownloadFailed: `BAD_MEDIA`, saying which promise was broken; `LOCAL_IO` if the file isn't there.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise local_failure(error, f"{str(path)!r} can't be looked at") from None
    if not size:
        raise _broken(path, "is empty")
    if expected_bytes is not None and size != expected_bytes:
        raise _broken(path, f"has {size} bytes; {expected_bytes} were promised{_page_hint(path)}")
    facts = _read(path, size)
    for kind, expected, codec in (
        ("video", expect_video, facts.video_codec),
        ("audio", expect_audio, facts.audio_codec),
    ):
        if expected and codec is None:
            there = ", ".join(stream.kind for stream in facts.streams) or "none"
            raise _broken(path, f"has no {kind} stream, which was promised; its streams: {there}")
    if expected_duration is not None:
        allowed = max(_TOLERANCE_SECONDS, _TOLERANCE * expected_duration)
        if abs(facts.duration - expected_duration) > allowed:
            raise _broken(path, f"lasts {facts.duration:.1f} s; {expected_duration:.1f} s were promised")
    return facts


def sha256(path: Path) -> str:
    """The file's SHA-256, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(path: Path, size: int) -> MediaFacts:
    import av

    try:
        with av.open(f"file:{path}", options=dict(_OPEN_OPTIONS)) as container:
            streams = [_facts(stream) for stream in container.streams]
            duration = _seconds(container.demux())
            return MediaFacts(container.format.name, size, duration, streams)
    except av.FFmpegError as error:
        raise _broken(path, f"is no media file: {error.strerror}{_page_hint(path)}") from None


def _seconds(packets: Iterable[av.Packet[Any]]) -> float:
    first, last = float("inf"), 0.0
    for packet in packets:
        at = packet.pts if packet.pts is not None else packet.dts
        if at is None or packet.time_base is None:  # the empty packet that ends each stream
            continue
        first = min(first, float(at * packet.time_base))
        last = max(last, float((at + (packet.duration or 0)) * packet.time_base))
    return max(0.0, last - first)


def _facts(stream: av.stream.Stream) -> StreamFacts:
    import av

    context = stream.codec_context
    codec = context.codec.canonical_name if context else None  # None: no decoder for it here
    if isinstance(stream, av.VideoStream):
        rate = stream.average_rate
        return StreamFacts(
            "video", codec or "unknown", stream.width, stream.height, round(float(rate), 3) if rate else None
        )
    if isinstance(stream, av.AudioStream):
        return StreamFacts("audio", codec or "unknown", channels=stream.channels, sample_rate=stream.rate)
    return StreamFacts(stream.type, codec)


def _page_hint(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(512).lstrip().lower()
    return "; it is a web page" if start.startswith((b"<html", b"<!doctype html")) else ""


def _broken(path: Path, what: str) -> DownloadFailed:
    return DownloadFailed(Code.BAD_MEDIA, f"{path.name!r} {what}")
