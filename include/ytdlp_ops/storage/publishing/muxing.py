"""ffmpeg's arguments for a merge: which streams, in which order, with which tags."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from include.ytdlp_ops.storage.publishing.probing import CONTAINERS, Probe

_SUBTITLE_CODECS = {"mp4": "mov_text", "webm": "webvtt", "mkv": "copy"}
_MUXERS = {"mp4": "mp4", "webm": "webm", "mkv": "matroska"}
_PICTURES = (
    (b"\xff\xd8\xff", "jpg", "image/jpeg", "jpeg_pipe"),
    (b"\x89PNG", "png", "image/png", "png_pipe"),
    (b"RIFF", "webp", "image/webp", "webp_pipe"),
)
FAST_START = ["-movflags", "+faststart"]
"""Moves an mp4's index to its front, by writing the file a second time."""

_SPECIAL = re.compile(r"([=;#\\\n])")

# Room for the index at the file's front, so that it need not be written a second time: bytes for each packet, and
# how much of the file may be spent on it.
_INDEX_BYTES, _INDEX_FLOOR, _INDEX_SHARE = 24, 64 << 10, 0.01


@dataclass(frozen=True)
class Track:
    """
    A file to merge, or subtitles to embed (``.vtt``, ``.srt``).

    :param language: of its sound or text, as yt-dlp says it: ``de``, ``en-US``.
    """

    path: Path
    language: str | None = None


@dataclass(frozen=True, kw_only=True)
class Embedding:
    """
    What goes in besides the streams.

    :param metadata: tags: ``title``, ``artist``, ``date``, ``comment`` …
    :param chapters: ``{"start_time": …, "end_time": …, "title": …}``, seconds.
    :param thumbnail: a JPEG, PNG or WebP.
    """

    metadata: Mapping[str, str] = field(default_factory=dict)
    chapters: Sequence[Mapping[str, Any]] = ()
    thumbnail: Path | None = None
    subtitles: Sequence[Track] = ()


@dataclass
class Mux:
    """
    What to run.

    :param arguments: for ffmpeg; the layout and the output follow.
    :param layout: where the index goes.
    :param files: to be written first.
    :param left_out: what was asked for and this container can't hold.
    """

    arguments: list[str]
    layout: list[str] = field(default_factory=list)
    files: dict[Path, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def mux_command(inputs: Sequence[tuple[Track, Probe]], output: Path, container: str, embedding: Embedding) -> Mux:
    """Arguments that copy every picture and sound of the inputs into the output."""
    mux = Mux(["-nostdin", "-hide_banner", "-loglevel", "error", "-y"])
    for track, _ in inputs:
        mux.arguments += ["-protocol_whitelist", "file", "-format_whitelist", CONTAINERS]
        mux.arguments += ["-i", f"file:{track.path}"]
    after: list[str] = []
    for number in range(len(inputs)):
        after += ["-map", f"{number}:V?", "-map", f"{number}:a?"]
    number = len(inputs)
    after += ["-c", "copy", "-map_metadata:s", "-1", *_languages(inputs)]
    tags = output.with_name("tags.ffmeta")
    mux.files[tags] = _ffmetadata(embedding)
    mux.arguments += ["-f", "ffmetadata", "-i", f"file:{tags}"]
    after += ["-map_metadata", f"{number}", "-map_chapters", f"{number}"]
    number += 1
    for index, subtitle in enumerate(embedding.subtitles):
        form = "srt" if subtitle.path.suffix == ".srt" else "webvtt"
        mux.arguments += ["-f", form, "-i", f"file:{subtitle.path}"]
        after += ["-map", f"{number}:s", f"-c:s:{index}", _SUBTITLE_CODECS[container]]
        after += [f"-metadata:s:s:{index}", f"language={_language(subtitle.language)}"]
        number += 1
    if embedding.thumbnail:
        after += _cover(mux, embedding.thumbnail, number, container, inputs)
    mux.arguments += [*after, "-fflags", "+bitexact", "-f", _MUXERS[container]]  # no dates, no random ids
    mux.layout = _layout(inputs) if container == "mp4" else []
    return mux


def _languages(inputs: Sequence[tuple[Track, Probe]]) -> Iterator[str]:
    index = 0
    for track, one in inputs:
        for stream in one.streams:
            if stream.kind == "audio":
                language = _language(track.language or stream.language)
                yield from (f"-metadata:s:a:{index}", f"language={language}")
                yield from (f"-disposition:a:{index}", "0" if index else "default")
                index += 1


def _language(name: str | None) -> str:
    """Three letters, as every container takes them; ``und`` for what isn't known."""
    from yt_dlp.utils import ISO639Utils  # type: ignore[import-untyped]  # ships no types

    first = re.split(r"[-_]", name or "")[0].lower()
    if re.fullmatch(r"[a-z]{3}", first):
        return first
    return str(ISO639Utils.short2long(first) or "und") if len(first) == 2 else "und"


def _ffmetadata(embedding: Embedding) -> str:
    lines = [";FFMETADATA1"]
    lines += [f"{_escaped(key)}={_escaped(value)}" for key, value in sorted(embedding.metadata.items()) if value]
    for chapter in embedding.chapters:
        start, end = (round(float(chapter[key]) * 1000) for key in ("start_time", "end_time"))
        if 0 <= start < end:
            lines += ["[CHAPTER]", "TIMEBASE=1/1000", f"START={start}", f"END={end}"]
            lines += [f"title={_escaped(str(chapter.get('title') or ''))}"]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    kept = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return _SPECIAL.sub(r"\\\1", kept)


def _cover(
    mux: Mux, picture: Path, number: int, container: str, inputs: Sequence[tuple[Track, Probe]]
) -> list[str]:
    with picture.open("rb") as file:
        start = file.read(8)
    kind = next((kind for kind in _PICTURES if start.startswith(kind[0])), None)
    if kind is None or container == "webm":
        mux.left_out.append(f"the thumbnail: {'webm holds none' if kind else 'it is neither JPEG, PNG nor WebP'}")
        return []
    _, ext, mime, demuxer = kind
    if container == "mkv":
        tags = ["-metadata:s:t:0", f"mimetype={mime}", "-metadata:s:t:0", f"filename=cover.{ext}"]
        return ["-attach", str(picture), *tags]
    mux.arguments += ["-f", demuxer, "-i", f"file:{picture}"]
    index = sum(len(one.codecs("video")) for _, one in inputs)
    codec = "mjpeg" if ext == "webp" else "copy"  # players know no WebP in mp4
    return ["-map", f"{number}:v", f"-c:v:{index}", codec, f"-disposition:v:{index}", "attached_pic"]


def _layout(inputs: Sequence[tuple[Track, Probe]]) -> list[str]:
    """An mp4's index in front, so that it plays while it comes: in room kept for it, if that costs little."""
    packets = sum((one.duration or 0) * stream.rate for _, one in inputs for stream in one.streams)
    room = int(packets * _INDEX_BYTES) + _INDEX_FLOOR
    known = all(one.duration for _, one in inputs)
    if known and room < _INDEX_SHARE * sum(one.bytes for _, one in inputs):
        return ["-moov_size", str(room)]
    return FAST_START
