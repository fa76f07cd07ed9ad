"""Thumbnails and subtitles from a real host: what is chosen, what is refused, and that none is worth a video."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.extras import Extras, ExtrasWanted, fetch_extras, sources_of_extras
from include.ytdlp_ops.errors import DownloadFailed
from tests.media_site import MediaSite
from tests.offline_youtube.media import made_once
from tests.offline_youtube.shapes import make_shapes


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MediaSite]:
    folder = made_once(tmp_path_factory.getbasetemp() / "shapes", make_shapes)
    with MediaSite(folder) as site:
        yield site


@pytest.fixture(autouse=True)
def _afresh(site: MediaSite) -> None:
    site.asked.clear()
    site.statuses.clear()


Fetch = Callable[..., Extras]


@pytest.fixture
def fetch(tmp_path: Path) -> Fetch:
    def fetch_it(info: dict[str, Any], **wanted: Any) -> Extras:
        return fetch_extras(info, tmp_path, ExtrasWanted(**{"allow_private_targets": True, **wanted}))

    return fetch_it


def pictures(site: MediaSite, *names: str) -> dict[str, Any]:
    return {"id": "v", "thumbnails": [{"url": site.url(name, "?sig=SECRET")} for name in names]}


def texts(site: MediaSite) -> dict[str, Any]:
    vtt, srt = site.url("en.vtt"), site.url("de.srt")
    return {
        "id": "v",
        "subtitles": {
            "en": [{"ext": "json3", "url": vtt}, {"ext": "vtt", "url": vtt}],
            "de-DE": [{"ext": "srt", "url": srt}],
            "live_chat": [{"ext": "json", "url": vtt, "protocol": "youtube_live_chat"}],
        },
        "automatic_captions": {
            "en": [{"ext": "vtt", "url": site.url("gone.vtt")}],
            "fr": [{"ext": "vtt", "url": vtt}],
        },
    }


@pytest.mark.parametrize(("best", "ext"), [("cover.jpg", "jpg"), ("cover.png", "png"), ("cover.webp", "webp")])
def test_the_best_thumbnail_is_fetched_and_named_by_what_it_is(
    site: MediaSite, fetch: Fetch, best: str, ext: str
) -> None:
    made = fetch(pictures(site, "gone.jpg", best), thumbnail=True)

    assert made.thumbnail
    assert made.thumbnail.name == f"thumbnail.{ext}"
    assert made.thumbnail.read_bytes() == (site.folder / best).read_bytes()
    assert [name for name, _ in site.asked] == [best]


def test_the_next_best_is_taken_where_the_best_is_gone_or_no_picture(site: MediaSite, fetch: Fetch) -> None:
    made = fetch(pictures(site, "cover.jpg", "en.vtt", "gone.jpg"), thumbnail=True)

    assert made.thumbnail
    assert [name for name, _ in site.asked] == ["gone.jpg", "en.vtt", "cover.jpg"]


def test_a_thumbnail_that_can_not_be_had_is_told_without_its_address(site: MediaSite, fetch: Fetch) -> None:
    made = fetch(pictures(site, "gone.jpg"), thumbnail=True)

    assert made == Extras(missing=["thumbnail: HTTPError 404"])


def test_a_video_without_thumbnail_is_told_of(fetch: Fetch) -> None:
    assert fetch({"id": "v"}, thumbnail=True).missing == ["thumbnail: the site has none"]


def test_what_is_too_large_is_given_up(site: MediaSite, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("include.ytdlp_ops.downloading.extras.MAX_PICTURE_BYTES", 100)

    made = fetch(pictures(site, "cover.jpg"), thumbnail=True)

    assert made.missing == ["thumbnail: more than 100 bytes"]


def test_a_private_address_is_not_asked_unless_allowed(site: MediaSite, fetch: Fetch) -> None:
    made = fetch(pictures(site, "cover.jpg"), thumbnail=True, allow_private_targets=False)

    assert "is a private address" in made.missing[0]
    assert site.asked == []


@pytest.mark.parametrize(
    ("languages", "automatic", "came"),
    [
        (["en"], False, {"en": "vtt"}),
        (["de.*"], False, {"de-DE": "srt"}),
        (["all"], False, {"en": "vtt", "de-DE": "srt"}),
        (["all", "-en"], False, {"de-DE": "srt"}),
        (["fr"], False, {}),
        (["en", "fr"], True, {"en": "vtt", "fr": "vtt"}),
        ([], True, {}),
    ],
)
def test_subtitles_are_chosen_by_language_and_written_ones_go_first(
    site: MediaSite, fetch: Fetch, languages: list[str], automatic: bool, came: dict[str, str]
) -> None:
    made = fetch(texts(site), languages=languages, automatic=automatic)

    assert {one.language: one.path.suffix[1:] for one in made.subtitles} == came
    assert made.missing == []


def test_a_page_instead_of_subtitles_is_refused(site: MediaSite, fetch: Fetch) -> None:
    made = fetch({"subtitles": {"en": [{"ext": "vtt", "url": site.url("de.srt")}]}}, languages=["en"])

    assert made == Extras(missing=["subtitles en: it is no vtt"])


def test_subtitles_that_an_info_holds_itself_are_taken_and_a_hostile_language_names_no_path(
    fetch: Fetch, tmp_path: Path
) -> None:
    made = fetch({"subtitles": {"../../x": [{"ext": "vtt", "data": "WEBVTT\n"}]}}, languages=["all"])

    assert made.subtitles[0].path.parent == tmp_path
    assert made.subtitles[0].path.read_text() == "WEBVTT\n"


@pytest.mark.parametrize(
    "hostile",
    [
        {"thumbnails": "x", "subtitles": "x", "automatic_captions": 5},
        {"thumbnails": [1, {"url": "file:///etc/passwd"}, {"url": 5}], "subtitles": {"en": 5, 5: [], "de": [1]}},
        {"thumbnail": "gopher://x", "subtitles": {"en": [{"ext": "vtt", "url": "file:///etc/passwd"}]}},
        {"subtitles": {"en": [{"ext": "../x", "url": "http://h/"}, {"ext": "vtt", "url": "http://[", "data": 5}]}},
    ],
)
def test_a_hostile_info_has_no_sources(hostile: dict[str, Any]) -> None:
    assert sources_of_extras(hostile) == {"thumbnails": [], "subtitles": {}, "automatic_captions": {}}


def test_a_directory_that_is_gone_is_this_hosts_trouble(site: MediaSite, tmp_path: Path) -> None:
    wanted = ExtrasWanted(thumbnail=True, allow_private_targets=True)

    with pytest.raises(DownloadFailed) as failed:
        fetch_extras(pictures(site, "cover.jpg"), tmp_path / "gone", wanted)

    assert failed.value.code is Code.LOCAL_IO
