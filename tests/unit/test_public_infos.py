"""What may be kept of an info: no URL of media, no header, no cookie, whatever is in it."""

from __future__ import annotations

import json
from typing import Any

from include.ytdlp_ops.storage.publishing.public_infos import public_info, tags_of

SECRETS = {
    "url": "https://media/SECRET", "manifest_url": "https://media/SECRET", "http_headers": {"Cookie": "SECRET"},
    "cookies": "SECRET", "proxy": "http://u:SECRET@p", "fragment_base_url": "https://media/SECRET",
    "fragments": [{"url": "https://media/SECRET"}], "request_data": "SECRET", "__x": "SECRET",
    "requested_formats": [{"url": "SECRET"}], "filepath": "SECRET", "_filename": "SECRET", "ytdlp_ops": "SECRET",
    "subtitles": {"en": [{"url": "https://media/SECRET"}]}, "thumbnails": [{"url": "https://media/SECRET"}],
    "automatic_captions": {"en": [{"url": "SECRET"}]}, "heatmap": ["SECRET"], "thumbnail": "https://media/SECRET",
}  # fmt: skip


def test_what_signs_in_or_fetches_media_is_left_out() -> None:
    fmt = {"format_id": "299", "vcodec": "avc1", "height": 1080, **SECRETS}

    public = public_info({"id": "a", "title": "T", "formats": [fmt], **SECRETS}, ["299"])

    assert "SECRET" not in json.dumps(public)
    assert public == {
        "id": "a", "title": "T", "formats": [{"format_id": "299", "vcodec": "avc1", "height": 1080}],
    }  # fmt: skip


def test_formats_that_were_not_taken_are_not_told_of() -> None:
    info = {"id": "a", "formats": [{"format_id": "1"}, {"format_id": "2"}, "hostile"]}

    assert public_info(info, ["2"])["formats"] == [{"format_id": "2"}]


def test_fields_of_the_wrong_kind_are_left_out() -> None:
    hostile: dict[str, Any] = {
        "id": "a", "title": {"x": 1}, "duration": "long", "view_count": float("nan"), "like_count": True,
        "tags": "no list", "chapters": [1, {"title": "x"}, {"start_time": 0, "end_time": 9, "url": "SECRET"}],
        "categories": ["ok", 5],
    }  # fmt: skip

    public = public_info(hostile)

    assert public == {"id": "a", "categories": ["ok"], "chapters": [{"start_time": 0, "end_time": 9}]}


def test_a_page_with_a_password_is_left_out() -> None:
    public = public_info({"id": "a", "webpage_url": "https://u:p@host/", "channel_url": "javascript:1"})

    assert public == {"id": "a"}


def test_half_a_surrogate_pair_becomes_writable() -> None:
    assert public_info({"id": "a", "title": "x\ud800y"})["title"] == "x?y"


def test_tags_are_named_as_yt_dlp_names_them_and_hold_nothing_empty() -> None:
    public = public_info(
        {
            "id": "a", "title": "T", "uploader": "U", "artists": ["A", "B"], "upload_date": "20260102",
            "album": "", "webpage_url": "https://h/", "season_number": 2,
        }
    )  # fmt: skip

    assert tags_of(public) == {
        "title": "T", "artist": "A, B", "date": "20260102", "comment": "https://h/", "purl": "https://h/",
        "season_number": "2",
    }  # fmt: skip
