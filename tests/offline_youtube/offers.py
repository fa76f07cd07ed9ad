"""Media that only some videos of the site offer; each is made when it is first asked for."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.offline_youtube.media import Media, audio, encoded, picture, size, sound

SPARSE_BYTES = 2 << 30

_X264 = "-c:v libx264 -preset ultrafast -crf 40 -g 30 -pix_fmt yuv420p"
_VP9 = "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -b:v 100k"
_FRAGMENTED = "-movflags +frag_keyframe+empty_moov+default_base_moof"
_AVC, _AAC = 'video/mp4; codecs="avc1.4d401e"', 'audio/mp4; codecs="mp4a.40.2"'
_WAV_RATE, _WAV_HEADER = 192_000, 44  # bytes a second: 48 kHz, two channels of 16 bits


def _silence(target: Path) -> None:
    """A WAV file that is sparse: all of its samples are zeros that no disk holds."""
    data = SPARSE_BYTES - _WAV_HEADER
    with target.open("wb") as file:
        file.write(
            struct.pack("<4sI4s4sIHHIIHH", b"RIFF", data + 36, b"WAVE", b"fmt ", 16, 1, 2, 48000, _WAV_RATE, 4, 16)
        )
        file.write(struct.pack("<4sI", b"data", data))
        file.truncate(SPARSE_BYTES)


def _spoken(language: str, name: str, kind: str, frequency: int, *, default: bool = False) -> Media:
    """A track of sound, as the site tells several of one video apart."""
    track = {"id": f"{language}.{3 + frequency % 7}", "displayName": name, "audioIsDefault": default}
    return encoded(
        140,
        f"140-{language}-{kind}.m4a",
        _AAC,
        {"quality": "tiny", **audio(48000, "MEDIUM"), "audioTrack": track},
        f"{sound(48000, frequency)} -c:a aac -b:a 64k -ac 2 -vn -f mp4 {_FRAGMENTED}",
        xtags=f"acont={kind}:lang={language}",
    )


VERTICAL = encoded(
    134, "vertical.mp4", _AVC, size(360, 640, 30, "medium"), f"{picture('360x640', 30)} {_X264} -an {_FRAGMENTED}"
)
TENBIT = encoded(
    332,
    "tenbit.webm",
    'video/webm; codecs="vp09.02.21.10"',
    size(320, 180, 60, "medium") | {"colorInfo": {"primaries": "COLOR_PRIMARIES_BT2020"}},
    f"{picture('320x180', 60)} {_VP9} -pix_fmt yuv420p10le -profile:v 2 -an",
)
STILL = encoded(
    160,
    "still.mp4",
    _AVC,
    size(320, 180, 30, "tiny"),
    f"-f lavfi -i testsrc=size=320x180:rate=30 -frames:v 1 {_X264} -an",
    seconds=0,
)
LANGUAGES = (
    _spoken("en-US", "English (US) original", "original", 440, default=True),
    _spoken("de", "German", "dubbed-auto", 550),
    _spoken("en-US", "English (US) descriptive", "descriptive", 660),
)
SPARSE = Media(
    999,
    "sparse.wav",
    "audio/wav",
    {"quality": "tiny", **audio(48000, "HIGH")},
    _silence,
    seconds=(SPARSE_BYTES - _WAV_HEADER) / _WAV_RATE,
)
