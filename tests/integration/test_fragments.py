"""HLS with AES-128 and DASH: in parallel, in order, and resumed byte for byte wherever an attempt died."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.directories import directory_for, take_over, target_in
from include.ytdlp_ops.downloading.infos import cut_to_format
from include.ytdlp_ops.downloading.options import Transfer
from include.ytdlp_ops.downloading.runner import Progress, download_format
from include.ytdlp_ops.downloading.verifying import verify
from include.ytdlp_ops.errors import DownloadFailed, LeaseLost
from tests.media_site import MediaSite

CHUNKS = [f"chunk-{number}.m4s" for number in range(1, 9)]


@pytest.fixture
def site(segments: Path) -> Iterator[MediaSite]:
    with MediaSite(segments) as site:
        yield site


def info(site: MediaSite, signature: str = "") -> dict[str, Any]:
    fragments: list[dict[str, Any]] = [{"url": site.url("init.m4s", signature)}]
    fragments += [{"url": site.url(name, signature), "duration": 1.0} for name in CHUNKS]
    picture = {"ext": "mp4", "vcodec": "avc1", "acodec": "none"}
    formats = [
        {"format_id": "hls", "protocol": "m3u8_native", "url": site.url("index.m3u8"), **picture},
        {
            "format_id": "dash",
            "protocol": "http_dash_segments",
            "url": site.url("x.mpd", signature),
            "fragments": fragments,
            **picture,
        },
    ]
    return {"id": "v", "title": "v", "extractor": "generic", "extractor_key": "Generic", "formats": formats}


Download = Callable[..., Path]


@pytest.fixture
def download(tmp_path: Path) -> Download:
    def fetch(about: dict[str, Any], format_id: str, token: str = "one", **more: Any) -> Path:
        directory = directory_for(tmp_path, format_id, token)
        return download_format(about, format_id, directory=directory, proxy=None, **more).path

    return fetch


def whole_dash(segments: Path) -> bytes:
    return b"".join((segments / name).read_bytes() for name in ["init.m4s", *CHUNKS])


@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.parametrize("format_id", ["hls", "dash"])
def test_fragments_arrive_whole_and_in_order(
    site: MediaSite, download: Download, segments: Path, format_id: str, at_once: int
) -> None:
    path = download(info(site), format_id, transfer=Transfer(concurrent_fragments=at_once))

    facts = verify(path, expected_bytes=None, expected_duration=8, expect_video=True, expect_audio=False)
    assert facts.video_codec == "h264"
    if format_id == "dash":
        assert path.read_bytes() == whole_dash(segments)


def stopped_after(
    download: Download, about: dict[str, Any], format_id: str, fragments: int, token: str = "one"
) -> None:
    told: list[Progress] = []
    reason = LeaseLost("another worker has it")

    with pytest.raises(LeaseLost):
        download(
            about,
            format_id,
            token,
            transfer=Transfer(concurrent_fragments=1),
            on_progress=told.append,
            should_stop=lambda: reason if told and (told[-1].fragment or 0) > fragments else None,
        )


def again_from_zero(target: Path) -> None:
    target.with_name(f"{target.name}.ledger").unlink()


def counted_too_low(target: Path) -> None:
    """As a kill between the append and the count leaves it."""
    with target.with_name(f"{target.name}.part").open("ab") as file:
        file.write(b"a fragment that was appended and not counted")


def count_damaged(target: Path) -> None:
    target.with_name(f"{target.name}.ytdl").write_text("{")


def count_gone(target: Path) -> None:
    target.with_name(f"{target.name}.ytdl").unlink()


def part_shorter(target: Path) -> None:
    """As a crash of the machine may leave it."""
    target.with_name(f"{target.name}.part").write_bytes(b"short")


def nothing_more(target: Path) -> None:
    assert target.with_name(f"{target.name}.part").exists()


@pytest.mark.parametrize("format_id", ["hls", "dash"])
@pytest.mark.parametrize(
    ("damage", "resumes"),
    [
        (nothing_more, True),
        (counted_too_low, True),
        (count_damaged, True),
        (count_gone, True),
        (part_shorter, False),
        (again_from_zero, False),
    ],
)
def test_an_attempt_that_died_is_resumed_byte_for_byte(
    site: MediaSite,
    download: Download,
    tmp_path: Path,
    format_id: str,
    damage: Callable[[Path], None],
    resumes: bool,
) -> None:
    about = info(site)
    wanted = download(about, format_id, "whole").read_bytes()
    stopped_after(download, about, format_id, 4)
    fmt = cut_to_format(about, format_id)["formats"][0]
    damage(target_in(directory_for(tmp_path, format_id, "one"), fmt))
    site.asked.clear()

    path = download(about, format_id)

    fetched = [name for name, _ in site.asked if name.startswith(("chunk", "index")) and name != "index.m3u8"]
    assert path.read_bytes() == wanted
    assert (len(fetched) < 8) is resumes


def test_another_attempt_takes_over_fragments_although_the_urls_are_signed_anew(
    site: MediaSite, download: Download, tmp_path: Path, segments: Path
) -> None:
    stopped_after(download, info(site, "?sig=old"), "dash", 4, "dead")
    about = info(site, "?sig=new")
    site.asked.clear()

    taken = take_over(tmp_path, "dash", "one", cut_to_format(about, "dash")["formats"][0])
    path = download(about, "dash")

    assert taken > 0
    assert path.read_bytes() == whole_dash(segments)
    assert 0 < len(site.asked) < 6


def test_what_was_whole_when_its_attempt_died_is_not_fetched_again(
    site: MediaSite, download: Download, tmp_path: Path, segments: Path
) -> None:
    download(info(site, "?sig=old"), "dash", "dead")
    about = info(site, "?sig=new")
    site.asked.clear()

    take_over(tmp_path, "dash", "one", cut_to_format(about, "dash")["formats"][0])
    path = download(about, "dash")

    assert path.read_bytes() == whole_dash(segments)
    assert site.asked == []


def test_fragments_of_another_cut_are_not_taken_over(site: MediaSite, download: Download, tmp_path: Path) -> None:
    stopped_after(download, info(site), "dash", 4, "dead")
    about = info(site)
    about["formats"][1]["fragments"][3]["duration"] = 1.5

    assert take_over(tmp_path, "dash", "one", cut_to_format(about, "dash")["formats"][0]) == 0


def test_a_fragment_that_is_gone_fails_and_keeps_what_came(
    site: MediaSite, download: Download, tmp_path: Path, segments: Path
) -> None:
    site.statuses["chunk-6.m4s"] = 404
    impatient = Transfer(concurrent_fragments=1, fragment_retries=0)

    with pytest.raises(DownloadFailed) as failed:
        download(info(site), "dash", transfer=impatient)
    site.statuses.clear()
    site.asked.clear()
    path = download(info(site), "dash")

    assert failed.value.code in (Code.MEDIA_GONE, Code.NETWORK)
    assert path.read_bytes() == whole_dash(segments)
    assert sorted(name for name, _ in site.asked) == CHUNKS[5:]
