"""Joins verified formats into one file without encoding anew: the same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import DownloadFailed
from include.ytdlp_ops.local_io import local_failure
from include.ytdlp_ops.storage.publishing.muxing import FAST_START, Embedding, Track, mux_command
from include.ytdlp_ops.storage.publishing.probing import Probe, probe
from include.ytdlp_ops.storage.publishing.processes import run_ffmpeg

EXTENSIONS = ("mp4", "m4a", "webm", "mkv", "mka")
"""Of all that a merge may make."""

_TOLERANCE_SECONDS, _TOLERANCE = 2.0, 0.02

_AUTO_MP4 = ({"h264", "hevc", "av1"}, {"aac", "mp3", "ac3", "eac3", "alac"})
_MP4 = ({*_AUTO_MP4[0], "vp9", "mpeg4", "mpeg2video"}, {*_AUTO_MP4[1], "opus", "flac", "mp2", "dts"})
_WEBM = ({"vp8", "vp9", "av1"}, {"opus", "vorbis"})


@dataclass(frozen=True)
class Merged:
    """
    The merged file.

    :param ext: of its name: ``mp4``, ``m4a``, ``webm``, ``mkv``, ``mka``.
    :param duration: seconds.
    :param left_out: what was asked for and can't be in it, for the record.
    """

    path: Path
    container: str
    ext: str
    bytes: int
    duration: float | None
    video_codecs: list[str]
    audio_codecs: list[str]
    audio_languages: list[str | None]
    left_out: list[str] = field(default_factory=list)


def merge(
    tracks: Sequence[Track],
    directory: Path,
    *,
    ffmpeg: str,
    container: str = "auto",
    embedding: Embedding | None = None,
    should_stop: Callable[[], BaseException | None] | None = None,
) -> Merged:
    """
    Merge into ``merged.<ext>`` in a directory, which is there only when it is whole; a second try makes it anew.

    :param tracks: the formats' files; the first one's sound is the default.
    :param directory: of this attempt alone.
    :param ffmpeg: the program.
    :param container: ``auto``, ``mp4``, ``webm``, ``mkv``; what it can't hold goes into mkv, and is told.
    :param should_stop: an exception that it returns is raised.
    :raises DownloadFailed: `BAD_MEDIA` if the inputs can't be joined or the result isn't what they were;
        `FFMPEG_MISSING`, `DISK`, `LOCAL_IO`.
    """
    embedding = embedding or Embedding()
    probes = [probe(track.path) for track in tracks]
    chosen, ext = container_for(probes, container)
    left_out = (
        [] if container in ("auto", chosen) else [f"{container} can't hold {_codecs(probes)}: made {chosen}"]
    )
    output, growing = directory / f"merged.{ext}", directory / f"merging.{ext}"
    mux = mux_command(list(zip(tracks, probes, strict=True)), growing, chosen, embedding)
    try:
        for path, text in mux.files.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise local_failure(error, f"{str(directory)!r} can't be written to") from None
    try:
        run_ffmpeg([ffmpeg, *mux.arguments, *mux.layout, f"file:{growing}"], should_stop=should_stop)
    except DownloadFailed as error:
        if "moov_size" not in error.message:
            raise
        run_ffmpeg([ffmpeg, *mux.arguments, *FAST_START, f"file:{growing}"], should_stop=should_stop)
    made = _verified(growing, probes)
    try:
        growing.replace(output)
    except OSError as error:
        raise local_failure(error, f"{str(output)!r} can't be made") from None
    languages = [stream.language for stream in made.streams if stream.kind == "audio"]
    video, audio = made.codecs("video"), made.codecs("audio")
    return Merged(
        output, chosen, ext, made.bytes, made.duration, video, audio, languages, [*left_out, *mux.left_out]
    )


def container_for(probes: Sequence[Probe], wish: str) -> tuple[str, str]:
    """Container and file ending for these streams."""
    video = {codec for one in probes for codec in one.codecs("video")}
    audio = {codec for one in probes for codec in one.codecs("audio")}

    def fits(known: tuple[set[str], set[str]]) -> bool:
        return video <= known[0] and audio <= known[1]

    if (wish == "mp4" and fits(_MP4)) or (wish == "auto" and fits(_AUTO_MP4)):
        return "mp4", "mp4" if video else "m4a"
    if wish in ("webm", "auto") and fits(_WEBM):
        return "webm", "webm"
    return "mkv", "mkv" if video else "mka"


def _codecs(probes: Sequence[Probe]) -> str:
    return ", ".join(codec for one in probes for kind in ("video", "audio") for codec in one.codecs(kind))


def _verified(path: Path, probes: Sequence[Probe]) -> Probe:
    """The result's probe, if it holds every stream of the inputs, to their end."""
    made = probe(path, to_end=True)
    for kind in ("video", "audio"):
        wanted = [codec for one in probes for codec in one.codecs(kind)]
        if made.codecs(kind) != wanted:
            what = f"{kind} streams {made.codecs(kind)}; the inputs have {wanted}"
            raise DownloadFailed(Code.BAD_MEDIA, f"the merged file has {what}")
    longest = max((one.duration or 0.0 for one in probes), default=0.0)
    allowed = max(_TOLERANCE_SECONDS, _TOLERANCE * longest)
    for what, seconds in (("lasts", made.duration), ("ends at", made.end)):
        if longest and seconds is not None and abs(seconds - longest) > allowed:
            said = f"the merged file {what} {seconds:.1f} s; the inputs last {longest:.1f} s"
            raise DownloadFailed(Code.BAD_MEDIA, said)
    return made
