"""Only what a download needs comes out of an info, whoever made it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.downloading.infos import clean_info, cut_to_format
from include.ytdlp_ops.errors import DownloadFailed


def an_info(**changed: Any) -> dict[str, Any]:
    """One video with one format; `changed` changes the format."""
    fmt = {
        "format_id": "299",
        "url": "https://rr1.googlevideo.com/videoplayback?expire=1900000000",
        "ext": "mp4",
        "protocol": "https",
        "vcodec": "avc1",
        "acodec": "none",
        "filesize": 1000,
        "http_headers": {"User-Agent": "a browser"},
        "downloader_options": {"http_chunk_size": 10485760},
        **changed,
    }
    return {"id": "dQw4w9WgXcQ", "title": "A title", "extractor": "youtube", "duration": 4, "formats": [fmt]}


def test_the_cut_info_holds_one_format_with_its_size_and_headers() -> None:
    info = an_info()
    info["formats"].append({**info["formats"][0], "format_id": "140"})

    cut = cut_to_format(info, "299")

    assert cut["formats"] == info["formats"][:1]
    assert (cut["id"], cut["title"], cut["duration"]) == ("dQw4w9WgXcQ", "A title", 4)


def test_cutting_leaves_the_info_as_it_was() -> None:
    info = an_info()
    before = copy.deepcopy(info)

    cut_to_format(info, "299")["formats"][0]["http_headers"].clear()

    assert info == before


@pytest.mark.parametrize(
    "field",
    [
        "webpage_url", "original_url", "additional_urls", "entries", "_type", "url", "_filename", "filepath",
        "requested_downloads", "requested_formats", "requested_subtitles", "__postprocessors", "__files_to_move",
        "__finaldir", "section_start", "section_end", "cookies", "http_headers", "external_downloader",
    ],
)  # fmt: skip
def test_a_field_that_extracts_again_or_chooses_files_is_dropped(field: str) -> None:
    info = {**an_info(), field: "https://elsewhere.example/"}

    assert field not in cut_to_format(info, "299")


@pytest.mark.parametrize(
    "field", ["cookies", "filepath", "request_data", "impersonate", "hls_aes", "__needs_testing"]
)
def test_a_format_keeps_known_fields_only(field: str) -> None:
    assert field not in cut_to_format(an_info(**{field: "x"}), "299")["formats"][0]


@pytest.mark.parametrize(
    "header",
    ["Cookie", "Authorization", "Ytdl-Request-Proxy", "Ytdl-socks-proxy", "Range", "Host", "X-Forwarded-For"],
)
def test_a_header_that_changes_the_way_or_the_identity_is_dropped(header: str) -> None:
    info = an_info(http_headers={header: "x", header.lower(): "x", "User-Agent": "kept", "Referer": "a\r\nb: c"})

    assert cut_to_format(info, "299")["formats"][0]["http_headers"] == {"User-Agent": "kept"}


def test_of_the_downloaders_options_only_the_chunk_size_passes() -> None:
    info = an_info(downloader_options={"http_chunk_size": 1024, "ffmpeg_args": ["-i", "/etc/passwd"]})

    assert cut_to_format(info, "299")["formats"][0]["downloader_options"] == {"http_chunk_size": 1024}


@pytest.mark.parametrize(
    "changed",
    [
        {"url": "file:///etc/passwd"},
        {"url": "data:video/mp4;base64,AAAA"},
        {"url": "rtmp://host/app"},
        {"url": "ftp://host/file"},
        {"url": "https://"},
        {"url": "http://[broken"},
        {"url": 7},
        {"url": None},
        {"manifest_url": "file:///etc/passwd"},
        {"protocol": "rtmp"},
        {"protocol": "m3u8"},
        {"protocol": "websocket_frag"},
        {"protocol": "https+file"},
        {"protocol": "http_dash_segments", "fragments": [{"url": "file:///etc/passwd"}]},
        {"protocol": "http_dash_segments", "fragments": [{"path": "file:///etc/passwd"}]},
        {"protocol": "http_dash_segments", "fragment_base_url": "file:///etc/"},
    ],
)
def test_what_is_not_fetched_over_http_is_refused_and_extracted_again(changed: dict[str, Any]) -> None:
    with pytest.raises(DownloadFailed) as refused:
        cut_to_format(an_info(**changed), "299")

    assert (refused.value.code, refused.value.outcome) == (Code.LOCAL_INPUT, Outcome.RETRY)
    assert "passwd" not in refused.value.message


@pytest.mark.parametrize(
    "info",
    [None, [], "info", {}, {"id": 7, "formats": []}, {"id": "x"}, {"id": "x", "formats": "all"},
     {"id": "x", "formats": [1]}, {"id": "x", "formats": None}],
)  # fmt: skip
def test_what_is_no_info_is_refused(info: Any) -> None:
    with pytest.raises(DownloadFailed) as refused:
        cut_to_format(info, "299")

    assert refused.value.code == Code.LOCAL_INPUT


def test_a_missing_format_is_told_with_what_there_is() -> None:
    with pytest.raises(DownloadFailed, match="'137' is not in the info; it has: 299") as refused:
        cut_to_format(an_info(), "137")

    assert refused.value.code == Code.FORMAT_MISSING


def test_a_value_of_the_wrong_type_is_dropped() -> None:
    hostile = json.loads(
        '{"height": "1080", "width": [1], "filesize": NaN, "tbr": Infinity, "fps": true, "vcodec": {}}'
    )

    cut = cut_to_format(an_info(**hostile), "299")

    assert not set(cut["formats"][0]) & set(hostile)


@pytest.mark.parametrize("ext", ["../../etc/cron.d/x", "mp4/..", "", "%(title)s", "m p4", "a" * 17, "mp\u0664"])
def test_an_extension_that_is_no_plain_word_is_replaced(ext: str) -> None:
    assert cut_to_format(an_info(ext=ext), "299")["formats"][0]["ext"] == "unknown_video"


def test_a_direct_link_without_a_list_is_its_own_format() -> None:
    info = {
        "id": "clip",
        "url": "https://site.example/clip.mp4",
        "ext": "mp4",
        "format_id": "0",
        "protocol": "https",
    }

    assert [fmt["url"] for fmt in clean_info(info)["formats"]] == ["https://site.example/clip.mp4"]


@pytest.mark.parametrize(
    ("given", "made"),
    [(["a", "a", "b"], ["a-0", "a-1", "b"]), (["x/y", "a,b+c"], ["x_y", "a_b_c"]), ([None, ""], ["0", "1"])],
)
def test_each_format_has_an_id_of_its_own_that_a_selector_can_name(given: list[Any], made: list[str]) -> None:
    info = an_info()
    info["formats"] = [{**info["formats"][0], "format_id": each} for each in given]

    assert [fmt["format_id"] for fmt in clean_info(info)["formats"]] == made
    assert cut_to_format(info, made[0])["formats"][0]["format_id"] == made[0]


@pytest.mark.parametrize("fragment", [{}, {"path": "seg/1"}, {"path": "//["}, {"url": "/seg/1"}])
def test_a_fragment_that_leads_nowhere_is_refused(fragment: dict[str, str]) -> None:
    with pytest.raises(DownloadFailed):
        cut_to_format(an_info(protocol="http_dash_segments", fragments=[fragment]), "299")
