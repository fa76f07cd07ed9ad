"""Streams in segments: HLS, whole or growing, with or without AES-128, and DASH; as data, with no HTTP in it."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from tests.offline_youtube.media import by_ffmpeg, picture, sound
from tests.offline_youtube.signing import is_signed_for, signed
from tests.offline_youtube.stock import Stock

SEGMENTS = 8
"""Of a second each."""

_KEY = b"0123456789abcdef"
_THERE_AT_FIRST, _WINDOW = 2, 6
_VARIANTS = {92: ("320x180", 300_000), 95: ("640x360", 900_000)}  # itag: size and bits a second
_DASH = {
    136: ("0", 'mimeType="video/mp4" codecs="avc1.4d401f" width="320" height="180" frameRate="30"'),
    140: ("1", 'mimeType="audio/mp4" codecs="mp4a.40.2" audioSamplingRate="48000"'),
}
_ENCODED = "-c:v libx264 -preset ultrafast -crf 40 -g 30 -pix_fmt yuv420p -c:a aac -ac 2"
_HLS_TYPE, _DASH_TYPE = "application/vnd.apple.mpegurl", "application/dash+xml"


class Kind(NamedTuple):
    """
    How a stream comes.

    :param hls: whether as HLS: the itags of `_VARIANTS`, muxed.
    :param dash: whether as DASH: pictures 136 and sound 140.
    :param encrypted: whether HLS comes with AES-128.
    :param every: seconds between two segments of a live; None: all are there.
    :param ends: whether a live ends, after `SEGMENTS`.
    """

    hls: bool = False
    dash: bool = False
    encrypted: bool = False
    every: float | None = None
    ends: bool = True


NO_STREAM = Kind()


class Piece(NamedTuple):
    """Status, content type, body."""

    status: int
    kind: str
    body: bytes


_FORBIDDEN, _NOT_THERE = Piece(403, "text/plain", b""), Piece(404, "text/plain", b"")


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A manifest or a segment of one video, with what its URL says."""

    said: Mapping[str, str]
    kind: Kind
    there: int

    def url(self, what: str, ending: str, **more: str) -> str:
        """The address of another piece of this stream, signed alike."""
        said = signed({**{key: self.said[key] for key in ("expire", "ip", "vid", "itag")}, **more})
        pairs = "/".join(f"{key}/{value}" for key, value in said.items())
        host = "rr1---sn-offline" if what == "videoplayback" else "manifest"
        return f"https://{host}.googlevideo.com/{what}/{pairs}{ending}"


class Streams:
    """
    All streams.

    :param stock: where segments lie.
    :param kind_of: the stream of a video.

    A live's clock begins when its playlist is first asked for: two segments are there, and another comes every
    `Kind.every` seconds.
    """

    def __init__(self, stock: Stock, kind_of: Callable[[str], Kind]) -> None:
        self._stock, self._kind_of = stock, kind_of
        self._began: dict[str, float] = {}
        self._lock = threading.Lock()

    def reset(self) -> None:
        """Lives begin anew."""
        with self._lock:
            self._began.clear()

    def end(self, video_id: str) -> None:
        """Let a live be over now."""
        with self._lock:
            self._began[video_id] = time.monotonic() - 3600

    def has_ended(self, video_id: str) -> bool:
        """Whether it is a live that is over."""
        kind, began = self._kind_of(video_id), self._began.get(video_id)
        return kind.every is not None and began is not None and kind.ends and _there(kind, began) >= SEGMENTS

    def manifests(self, video_id: str, ip: str, expire: int) -> dict[str, str]:
        """What the player response says of a video's manifests."""
        kind, found = self._kind_of(video_id), {}
        said = {"expire": str(expire), "ip": ip, "vid": video_id, "itag": "0"}
        asked = _Asked(said=said, kind=kind, there=0)
        if kind.hls:
            found["hlsManifestUrl"] = asked.url("api/manifest/hls_variant", "/file/index.m3u8")
        if kind.dash:
            found["dashManifestUrl"] = asked.url("api/manifest/dash", "")
        return found

    def answer(self, path: str, egress: str) -> Piece:
        """What is to be had at this path of googlevideo, asked for through this egress."""
        found = re.fullmatch(r"/(videoplayback|api/manifest/\w+)/(.+)", path)
        parts = found[2].split("/") if found else []
        said = dict(zip(parts[::2], parts[1::2], strict=False))
        if not found or not is_signed_for(said, egress):
            return _FORBIDDEN
        kind = self._kind_of(said["vid"])
        playlist = found[1] == "api/manifest/hls_playlist"
        asked = _Asked(said=said, kind=kind, there=self._there(said["vid"], kind, begins=playlist))
        if found[1] == "videoplayback":
            return self._segment(asked)
        return {"hls_variant": _master, "hls_playlist": _playlist, "dash": _mpd}[found[1].rsplit("/", 1)[1]](asked)

    def _there(self, video_id: str, kind: Kind, *, begins: bool) -> int:
        if kind.every is None:
            return SEGMENTS
        with self._lock:
            began = self._began.setdefault(video_id, time.monotonic()) if begins else self._began.get(video_id)
        return 0 if began is None else _there(kind, began)

    def _segment(self, asked: _Asked) -> Piece:
        itag, number = int(asked.said["itag"]), asked.said.get("sq", "key")
        if number == "key":
            return Piece(200, "application/octet-stream", _KEY)
        if itag in _DASH:
            which = _DASH[itag][0]
            name = f"init-{which}.m4s" if number == "0" else f"chunk-{which}-{number}.m4s"
            return _had(self._stock.file("dash.mpd", _make_dash).with_name(name), "video/mp4")
        if int(number) >= asked.there:
            return _NOT_THERE
        playlist = self._stock.file(f"{itag}.m3u8", lambda target: _make_hls(itag, target))
        piece = _had(playlist.with_name(f"{int(number) % SEGMENTS}.ts"), "video/mp2t")
        return piece._replace(body=_encrypted(piece.body, int(number))) if asked.kind.encrypted else piece


def _there(kind: Kind, began: float) -> int:
    there = _THERE_AT_FIRST + math.floor((time.monotonic() - began) / (kind.every or 1))
    return min(there, SEGMENTS) if kind.ends else there


def _had(path: Path, kind: str) -> Piece:
    return Piece(200, kind, path.read_bytes()) if path.is_file() else _NOT_THERE


def _master(asked: _Asked) -> Piece:
    lines = ["#EXTM3U", "#EXT-X-INDEPENDENT-SEGMENTS"]
    for itag, (resolution, rate) in _VARIANTS.items():
        codecs = "avc1.4d401e,mp4a.40.2"
        lines += [f'#EXT-X-STREAM-INF:BANDWIDTH={rate},CODECS="{codecs}",RESOLUTION={resolution},FRAME-RATE=30']
        lines += [asked.url("api/manifest/hls_playlist", "/file/index.m3u8", itag=str(itag))]
    return Piece(200, _HLS_TYPE, "\n".join([*lines, ""]).encode())


def _playlist(asked: _Asked) -> Piece:
    kind = asked.kind
    first = 0 if kind.ends else max(0, asked.there - _WINDOW)
    lines = ["#EXTM3U", "#EXT-X-VERSION:3", "#EXT-X-TARGETDURATION:1", f"#EXT-X-MEDIA-SEQUENCE:{first}"]
    if kind.encrypted:
        lines += [f'#EXT-X-KEY:METHOD=AES-128,URI="{asked.url("videoplayback", "/file/key.bin")}"']
    for number in range(first, asked.there):
        if number and number % SEGMENTS == 0:  # an endless live begins its segments again
            lines += ["#EXT-X-DISCONTINUITY"]
        lines += ["#EXTINF:1.0,", asked.url("videoplayback", f"/sq/{number}/file/seg.ts")]
    if kind.ends and asked.there >= SEGMENTS:
        lines += ["#EXT-X-ENDLIST"]
    return Piece(200, _HLS_TYPE, "\n".join([*lines, ""]).encode())


def _mpd(asked: _Asked) -> Piece:
    sets = []
    for itag, (_, attributes) in _DASH.items():
        base = asked.url("videoplayback", "/", itag=str(itag))
        listed = "".join(f'<SegmentURL media="sq/{number}"/>' for number in range(1, SEGMENTS + 1))
        sets.append(
            f'<AdaptationSet {attributes}><Representation id="{itag}" bandwidth="64000"><BaseURL>{base}</BaseURL>'
            f'<SegmentList timescale="1" duration="1"><Initialization sourceURL="sq/0"/>{listed}</SegmentList>'
            "</Representation></AdaptationSet>"
        )
    head = f'<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT{SEGMENTS}S">'
    return Piece(200, _DASH_TYPE, f"{head}<Period>{''.join(sets)}</Period></MPD>".encode())


def _encrypted(content: bytes, number: int) -> bytes:
    padder = PKCS7(128).padder()
    encryptor = Cipher(algorithms.AES(_KEY), modes.CBC(number.to_bytes(16, "big"))).encryptor()
    return encryptor.update(padder.update(content) + padder.finalize()) + encryptor.finalize()


def _shown(resolution: str) -> str:
    return f"{picture(resolution, 30, SEGMENTS)} {sound(48000, 440, SEGMENTS)} {_ENCODED}"


def _make_hls(itag: int, target: Path) -> None:
    options = "-f hls -hls_time 1 -hls_list_size 0 -hls_segment_filename %d.ts"
    by_ffmpeg(f"{_shown(_VARIANTS[itag][0])} {options}", target)


def _make_dash(target: Path) -> None:
    names = "-init_seg_name init-$RepresentationID$.m4s -media_seg_name chunk-$RepresentationID$-$Number$.m4s"
    by_ffmpeg(f"{_shown('320x180')} -f dash -seg_duration 1 -use_template 1 {names}", target)
