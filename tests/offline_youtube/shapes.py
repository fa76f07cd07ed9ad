"""Media of many shapes, small, made with ffmpeg once per folder; beside what every video of the site has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.offline_youtube.media import by_ffmpeg, picture, sound

SECONDS = 3

_X264 = "-c:v libx264 -preset ultrafast -crf 40 -g 30"
_FRAGMENTED = "-movflags +frag_keyframe+empty_moov+default_base_moof"


def _picture(size: str) -> str:
    return picture(size, 30, SECONDS)


def _sound(frequency: int) -> str:
    return sound(48000, frequency, SECONDS)


SHAPES: Mapping[str, str] = {
    "h264.mp4": f"{_picture('320x180')} {_X264} -pix_fmt yuv420p -an {_FRAGMENTED}",
    "vertical.mp4": f"{_picture('180x320')} {_X264} -pix_fmt yuv420p -an {_FRAGMENTED}",
    "tenbit.mp4": f"{_picture('320x180')} {_X264} -pix_fmt yuv420p10le -an {_FRAGMENTED}",
    "still.mp4": f"-f lavfi -i testsrc=size=320x180:rate=30 -frames:v 1 {_X264} -pix_fmt yuv420p -an",
    "vp9.webm": f"{_picture('160x90')} -c:v libvpx-vp9 -deadline realtime -cpu-used 8 -b:v 100k -an",
    "en.m4a": f"{_sound(440)} -c:a aac -b:a 64k -f mp4 {_FRAGMENTED}",
    "de.m4a": f"{_sound(660)} -c:a aac -b:a 64k -f mp4 {_FRAGMENTED}",
    "opus.webm": f"{_sound(440)} -c:a libopus -b:a 48k",
    "both.ts": f"{_picture('320x180')} {_sound(440)} {_X264} -pix_fmt yuv420p -c:a aac -f mpegts",
    "cover.jpg": "-f lavfi -i testsrc=size=320x180:rate=1:duration=1 -frames:v 1 -c:v mjpeg -pix_fmt yuvj420p",
    "cover.png": "-f lavfi -i testsrc=size=320x180:rate=1:duration=1 -frames:v 1 -c:v png",
    "cover.webp": "-f lavfi -i testsrc=size=320x180:rate=1:duration=1 -frames:v 1 -c:v libwebp -f webp",
}
"""File name -> ffmpeg's arguments."""

SUBTITLES: Mapping[str, str] = {
    "en.vtt": "WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n\n00:01.000 --> 00:02.500\nWorld\n",
    "de.srt": "1\n00:00:00,000 --> 00:00:01,000\nHallo\n\n2\n00:00:01,000 --> 00:00:02,500\nWelt\n",
}


def make_shapes(folder: Path) -> None:
    """Make every file of `SHAPES` and `SUBTITLES` in a folder; about two seconds of work."""
    for name, arguments in SHAPES.items():
        by_ffmpeg(arguments, folder / name)
    for name, text in SUBTITLES.items():
        (folder / name).write_text(text, encoding="utf-8")


def make_segments(folder: Path) -> None:
    """An HLS stream with AES-128 (``index.m3u8``), and a DASH one (``init.m4s``, ``chunk-1.m4s`` …), 8 s each."""
    (folder / "key.bin").write_bytes(b"0123456789abcdef")
    (folder / "key.txt").write_text(f"key.bin\n{folder / 'key.bin'}\n")
    hls = "-f hls -hls_time 1 -hls_list_size 0 -hls_playlist_type vod -hls_key_info_file key.txt"
    dash = "-f dash -seg_duration 1 -use_template 1 -init_seg_name init.m4s -media_seg_name chunk-$Number$.m4s"
    for name, arguments in (("index.m3u8", hls), ("x.mpd", dash)):
        by_ffmpeg(f"{picture('160x90', 30, 8)} {_X264} -pix_fmt yuv420p {arguments}", folder / name)
