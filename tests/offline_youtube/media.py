"""The media that every video has, made with ffmpeg once per folder, and how any other is made."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

DURATION = 4
"""Seconds of media."""

_X264 = "-c:v libx264 -preset ultrafast -crf 35 -g 60 -pix_fmt yuv420p"
_FRAGMENTED = "-movflags +frag_keyframe+empty_moov+default_base_moof"


def picture(size: str, rate: int, seconds: float = DURATION) -> str:
    """ffmpeg's arguments for moving pictures."""
    return f"-f lavfi -i testsrc=size={size}:rate={rate}:duration={seconds}"


def sound(rate: int, frequency: int = 440, seconds: float = DURATION) -> str:
    """ffmpeg's arguments for a tone."""
    return f"-f lavfi -i sine=frequency={frequency}:sample_rate={rate}:duration={seconds}"


def by_ffmpeg(arguments: str, target: Path) -> None:
    """Make a file, in its own folder."""
    import imageio_ffmpeg  # type: ignore[import-untyped]  # the wheel has no types

    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-nostdin", *arguments.split(), str(target)]
    subprocess.run(command, check=True, cwd=target.parent)


@dataclass(frozen=True)
class Media:
    """
    One format's file.

    :param itag: the site's number of the format.
    :param name: file name.
    :param mime: as the player response gives it, codecs included.
    :param said: what else the player response says of it.
    :param make: makes it.
    :param xtags: what tells formats of one itag apart: ``acont=dubbed:lang=de``.
    :param seconds: how long it lasts.
    """

    itag: int
    name: str
    mime: str
    said: Mapping[str, Any]
    make: Callable[[Path], None]
    xtags: str = ""
    seconds: float = DURATION


def size(width: int, height: int, fps: int, quality: str) -> dict[str, Any]:
    """What the player response says of pictures."""
    label = f"{min(width, height)}p{fps if fps > 30 else ''}"
    return {"width": width, "height": height, "fps": fps, "quality": quality, "qualityLabel": label}


def audio(rate: int, quality: str) -> dict[str, Any]:
    """What the player response says of sound."""
    return {"audioQuality": f"AUDIO_QUALITY_{quality}", "audioSampleRate": str(rate), "audioChannels": 2}


def encoded(itag: int, name: str, mime: str, said: Mapping[str, Any], arguments: str, **more: Any) -> Media:
    """Media that ffmpeg makes with these arguments."""
    return Media(itag, name, mime, said, partial(by_ffmpeg, arguments), **more)


_USUAL = (
    encoded(
        18,
        "18.mp4",
        'video/mp4; codecs="avc1.42001E, mp4a.40.2"',
        {**size(640, 360, 30, "medium"), **audio(44100, "LOW")},
        f"{picture('640x360', 30)} {sound(44100)} {_X264} -c:a aac -ac 2 -movflags +faststart",
    ),
    encoded(
        299,
        "299.mp4",
        'video/mp4; codecs="avc1.64002a"',
        size(1920, 1080, 60, "hd1080"),
        f"{picture('1920x1080', 60)} {_X264} -an {_FRAGMENTED}",
    ),
    encoded(
        136,
        "136.mp4",
        'video/mp4; codecs="avc1.4d401f"',
        size(1280, 720, 30, "hd720"),
        f"{picture('1280x720', 30)} {_X264} -an {_FRAGMENTED}",
    ),
    encoded(
        140,
        "140.m4a",
        'audio/mp4; codecs="mp4a.40.2"',
        {"quality": "tiny", **audio(44100, "MEDIUM")},
        f"{sound(44100)} -c:a aac -b:a 128k -ac 2 -vn -f mp4 {_FRAGMENTED}",
    ),
    encoded(
        251,
        "251.webm",
        'audio/webm; codecs="opus"',
        {"quality": "tiny", **audio(48000, "MEDIUM")},
        f"{sound(48000)} -c:a libopus -b:a 96k -ac 2 -vn",
    ),
)
ITAGS: Mapping[int, Media] = {media.itag: media for media in _USUAL}


def made_once(target: Path, make: Callable[[Path], None]) -> Path:
    """
    The folder `target`, filled by `make` if it is not there yet.

    It is filled under another name and renamed, so that it is whole or absent; where two processes do so at
    once, the first rename wins and the other's work is thrown away.
    """
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    growing = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        make(growing)
        growing.rename(target)
    except OSError:
        if not target.is_dir():
            raise
    finally:
        shutil.rmtree(growing, ignore_errors=True)
    return target


def make_media(folder: Path) -> None:
    """Make every file of `ITAGS` in `folder`; about two seconds of work."""
    for media in ITAGS.values():
        media.make(folder / media.name)
