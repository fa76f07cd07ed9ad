"""Which formats a selector picks: yt-dlp's own choice, from a loaded info."""

from __future__ import annotations

import copy
import socket
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.selecting import bound_to, expires_at, select_formats
from include.ytdlp_ops.errors import BadInput, DownloadFailed

URL = "https://rr1---sn-x.googlevideo.com/videoplayback?expire=1900000000&itag="


def a_format(format_id: str, vcodec: str, acodec: str, **more: Any) -> dict[str, Any]:
    kind = {"ext": "mp4", "protocol": "https", "vcodec": vcodec, "acodec": acodec}
    return {"format_id": format_id, "url": URL + format_id, **kind, **more}


INFO: dict[str, Any] = {
    "id": "dQw4w9WgXcQ",
    "title": "A title",
    "extractor": "youtube",
    "duration": 4,
    "webpage_url": "https://www.youtube.com/watch?v=dQw4w9WgXcQ",
    "formats": [
        a_format("sb0", "none", "none", ext="mhtml", protocol="mhtml"),
        a_format("140", "none", "mp4a.40.2", ext="m4a", filesize=66662, abr=128),
        a_format("18", "avc1.42001E", "mp4a.40.2", width=640, height=360, fps=30),
        a_format("136", "avc1.4d401f", "none", width=1280, height=720, fps=30, filesize=100),
        a_format("299", "avc1.64002a", "none", width=1920, height=1080, fps=60, filesize=268306),
    ],
}


@pytest.mark.parametrize(
    ("selector", "picked"),
    [
        ("299+140", ["299", "140"]),
        ("18", ["18"]),
        ("bv*+ba/b", ["299", "140"]),
        ("bv*[height<=720]+ba", ["136", "140"]),
        ("137/136", ["136"]),
        ("18,140", ["18", "140"]),
        ("299,299+140", ["299", "140"]),
        ("all[vcodec=none]", ["140"]),
    ],
)
def test_a_selector_picks_what_yt_dlp_picks_each_format_once(selector: str, picked: list[str]) -> None:
    assert [wanted.format_id for wanted in select_formats(INFO, selector)] == picked


def test_a_wanted_format_carries_what_was_promised() -> None:
    wanted = select_formats(INFO, "299")[0]

    assert (wanted.bytes, wanted.duration, wanted.ext, wanted.protocol) == (268306, 4, "mp4", "https")
    assert (wanted.vcodec, wanted.acodec, wanted.width, wanted.height, wanted.fps) == (
        "avc1.64002a", "none", 1920, 1080, 60,
    )  # fmt: skip
    assert (wanted.url_host, wanted.expires_at) == ("rr1---sn-x.googlevideo.com", 1900000000)


@pytest.mark.parametrize("selector", ["sb0", "mhtml", "137", "bv*[height>4000]"])
def test_a_selector_that_matches_nothing_is_told_with_what_there_is(selector: str) -> None:
    with pytest.raises(DownloadFailed, match="of 'dQw4w9WgXcQ'; it has: 140, 18, 136, 299") as refused:
        select_formats(INFO, selector)

    assert refused.value.code is Code.FORMAT_MISSING
    assert repr(selector) in refused.value.message


@pytest.mark.parametrize(
    "selector", ["", " ", "-", "bv*[height<=", "((((", "best[height=?]", 'b[format_note~="("]']
)
def test_what_is_no_selector_is_refused_by_name(selector: str) -> None:
    with pytest.raises(BadInput, match="selector") as refused:
        select_formats(INFO, selector)

    assert repr(selector) in str(refused.value)


def test_an_info_with_storyboards_only_has_no_format() -> None:
    with pytest.raises(DownloadFailed, match="it has: none"):
        select_formats({**INFO, "formats": INFO["formats"][:1]}, "all")


def test_selecting_asks_nobody_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = copy.deepcopy(INFO)
    hostile["additional_urls"] = ["https://www.youtube.com/watch?v=aaaaaaaaaaa"]
    hostile["formats"][4].update(__needs_testing=True, has_drm="maybe")
    before, asked = copy.deepcopy(hostile), []
    monkeypatch.setattr(socket.socket, "connect", lambda *address: asked.append(address))

    select_formats(hostile, "18")

    assert hostile == before
    assert asked == []


def test_formats_of_other_protocols_are_not_there() -> None:
    formats = [*INFO["formats"], a_format("rtmp", "avc1", "mp4a", protocol="rtmp", url="rtmp://h/a", height=4320)]

    assert [wanted.format_id for wanted in select_formats({**INFO, "formats": formats}, "b")] == ["18"]


def test_a_live_s_formats_can_be_picked() -> None:
    formats = [a_format("96", "avc1", "mp4a", protocol="m3u8_native")]

    assert select_formats({**INFO, "live_status": "is_live", "formats": formats}, "b")[0].protocol == "m3u8_native"


@pytest.mark.parametrize(
    ("url", "ends"),
    [
        ("https://h/videoplayback?expire=1900000000&ip=1", 1900000000.0),
        ("https://h/api/manifest/hls_playlist/expire/1900000000/ei/x/ip/1/index.m3u8", 1900000000.0),
        ("https://h/videoplayback?ip=1", None),
        ("https://h/videoplayback?expire=soon", None),
        ("http://[broken?expire=1", None),
        ("", None),
    ],
)
def test_a_url_tells_when_it_ends(url: str, ends: float | None) -> None:
    assert expires_at(url) == ends


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://h/videoplayback?expire=1900000000&ip=10.0.0.1&id=x", "10.0.0.1"),
        ("https://h/videoplayback?ip=2001%3Adb8%3A%3A1", "2001:db8::1"),
        ("https://h/api/manifest/hls_playlist/ip/10.0.0.1/index.m3u8", "10.0.0.1"),
        ("https://h/videoplayback?zip=1", None),
    ],
)
def test_a_url_tells_whose_it_is(url: str, address: str | None) -> None:
    assert bound_to(url) == address


def test_of_a_live_picture_and_sound_together_go_first() -> None:
    apart = [
        a_format("140", "none", "mp4a", protocol="m3u8_native"),
        a_format("299", "avc1", "none", protocol="m3u8"),
    ]
    together = a_format("96", "avc1", "mp4a", protocol="m3u8_native")
    live = {**INFO, "live_status": "is_live"}

    picked = [
        [fmt.format_id for fmt in select_formats({**live, "formats": formats}, selector)]
        for formats, selector in (
            ([*apart, together], "bv*+ba/b"),
            ([*apart, together], "ba"),
            (apart, "bv*+ba/b"),
        )
    ]

    assert picked == [["96"], ["140"], ["299", "140"]]


def test_of_a_live_nothing_is_picked_that_can_not_be_recorded() -> None:
    formats = [a_format("299", "avc1", "none", protocol="https")]

    with pytest.raises(DownloadFailed, match="it has: none"):
        select_formats({**INFO, "live_status": "is_live", "formats": formats}, "b/bv")
