"""What a media file says of itself, without reading all of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import DownloadFailed

if TYPE_CHECKING:
    import av.container
    import av.stream

# media only: a file that came from anywhere may be a playlist, which FFmpeg would follow to other files and hosts
CONTAINERS = "mov,matroska,webm,mpegts,ogg,flv,avi,asf,mp3,aac,flac,wav,ac3,eac3,mpeg,3gp,caf,amr"
_PROBE_BYTES = 256 << 10  # FFmpeg's own 5 MB tell no more of streams, and are as much as many videos are
_MICROSECONDS = 1_000_000
_TAIL_SECONDS = 1.0


@dataclass(frozen=True)
class Stream:
    """
    One stream.

    :param kind: ``video``, ``picture`` (a cover), ``audio``, ``subtitle``, or FFmpeg's own word for another.
    :param codec: FFmpeg's name, None if it has none.
    :param language: as its tag says.
    :param rate: packets a second, as far as the header tells.
    """

    kind: str
    codec: str | None
    language: str | None
    rate: float


@dataclass(frozen=True)
class Probe:
    """
    One file.

    :param duration: seconds, as its header says; None if it doesn't.
    :param end: seconds at which its last packets end; None if that was not looked at.
    """

    bytes: int
    duration: float | None
    end: float | None
    streams: tuple[Stream, ...]

    def codecs(self, kind: str) -> list[str]:
        """Of all streams of a kind, in order."""
        return [stream.codec or "unknown" for stream in self.streams if stream.kind == kind]


def probe(path: Path, *, to_end: bool = False) -> Probe:
    """
    Look at a media file's header.

    :param to_end: and at its last second, which a file that breaks off doesn't have.

    :raises DownloadFailed: `BAD_MEDIA` if it is none.
    """
    import av

    options = {"format_whitelist": CONTAINERS, "protocol_whitelist": "file", "probesize": str(_PROBE_BYTES)}
    try:
        with av.open(f"file:{path}", options=options) as container:
            duration = _duration(container)
            streams = tuple(_stream(stream) for stream in container.streams)
            end = _end(container, duration) if to_end else None
            return Probe(path.stat().st_size, duration, end, streams)
    except (av.FFmpegError, OSError) as error:
        said = getattr(error, "strerror", None) or type(error).__name__
        raise DownloadFailed(Code.BAD_MEDIA, f"{path.name!r} can't be read as media: {said}") from None


def _duration(container: av.container.InputContainer) -> float | None:
    """Of mp4 FFmpeg tells the time at which it ends; a live that was joined late does not begin at zero."""
    if not container.duration:
        return None
    begins = (container.start_time or 0) if container.format.name.startswith("mov") else 0
    return max(0, container.duration - begins) / _MICROSECONDS


def _stream(stream: av.stream.Stream) -> Stream:
    import av
    from av.stream import Disposition

    kind, rate = str(stream.type), 0.0
    if isinstance(stream, av.VideoStream):
        kind = "picture" if stream.disposition & Disposition.attached_pic else "video"
        rate = float(stream.average_rate or 60)
    elif isinstance(stream, av.AudioStream):
        rate = stream.rate / (stream.codec_context.frame_size or 960)
    context = stream.codec_context
    return Stream(kind, context.codec.canonical_name if context else None, stream.metadata.get("language"), rate)


def _end(container: av.container.InputContainer, duration: float | None) -> float | None:
    if not duration:
        return None
    container.seek(int(max(0.0, duration - _TAIL_SECONDS) * _MICROSECONDS))
    end = 0.0
    for packet in container.demux():
        at = packet.pts if packet.pts is not None else packet.dts
        if at is not None and packet.time_base is not None:
            end = max(end, float((at + (packet.duration or 0)) * packet.time_base))
    return end - (container.start_time or 0) / _MICROSECONDS
