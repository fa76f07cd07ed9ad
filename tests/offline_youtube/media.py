"""The media that every video has, made with ffmpeg once per folder."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DURATION = 4
"""Seconds of media."""

_X264 = "-c:v libx264 -preset ultrafast -crf 35 -g 60 -pix_fmt yuv420p"
_FRAGMENTED = "-movflags +frag_keyframe+empty_moov+default_base_moof"


def _picture(size: str, rate: int) -> str:
    return f"-f lavfi -i testsrc=size={size}:rate={rate}:duration={DURATION}"


def _sound(rate: int) -> str:
    return f"-f lavfi -i sine=frequency=440:sample_rate={rate}:duration={DURATION}"


@dataclass(frozen=True)
class Media:
    """
    One format's file.

    :param name: file name.
    :param mime: as the player response gives it, codecs included.
    :param said: what else the player response says of it.
    :param ffmpeg: arguments that make it.
    """

    name: str
    mime: str
    said: Mapping[str, Any]
    ffmpeg: str


def _size(width: int, height: int, fps: int, quality: str) -> dict[str, Any]:
    label = f"{height}p{fps if fps > 30 else ''}"
    return {"width": width, "height": height, "fps": fps, "quality": quality, "qualityLabel": label}


def _audio(rate: int, quality: str) -> dict[str, Any]:
    return {"audioQuality": f"AUDIO_QUALITY_{quality}", "audioSampleRate": str(rate), "audioChannels": 2}


ITAGS: Mapping[int, Media] = {
    18: Media(
        "18.mp4",
        'video/mp4; codecs="avc1.42001E, mp4a.40.2"',
        {**_size(640, 360, 30, "medium"), **_audio(44100, "LOW")},
        f"{_picture('640x360', 30)} {_sound(44100)} {_X264} -c:a aac -ac 2 -movflags +faststart",
    ),
    299: Media(
        "299.mp4",
        'video/mp4; codecs="avc1.64002a"',
        _size(1920, 1080, 60, "hd1080"),
        f"{_picture('1920x1080', 60)} {_X264} -an {_FRAGMENTED}",
    ),
    136: Media(
        "136.mp4",
        'video/mp4; codecs="avc1.4d401f"',
        _size(1280, 720, 30, "hd720"),
        f"{_picture('1280x720', 30)} {_X264} -an {_FRAGMENTED}",
    ),
    140: Media(
        "140.m4a",
        'audio/mp4; codecs="mp4a.40.2"',
        {"quality": "tiny", **_audio(44100, "MEDIUM")},
        f"{_sound(44100)} -c:a aac -b:a 128k -ac 2 -vn -f mp4 {_FRAGMENTED}",
    ),
    251: Media(
        "251.webm",
        'audio/webm; codecs="opus"',
        {"quality": "tiny", **_audio(48000, "MEDIUM")},
        f"{_sound(48000)} -c:a libopus -b:a 96k -ac 2 -vn",
    ),
}


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
    import imageio_ffmpeg  # type: ignore[import-untyped]  # the wheel has no types

    for media in ITAGS.values():
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-nostdin", *media.ffmpeg.split()]
        subprocess.run([*command, str(folder / media.name)], check=True)
