"""The offline YouTube, asked by the real yt-dlp, which verifies TLS."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from tests.offline_youtube import OfflineYouTube
from tests.offline_youtube.media import ITAGS, made_once
from tests.offline_youtube.offers import SPARSE, SPARSE_BYTES
from tests.offline_youtube.stock import Stock
from tests.offline_youtube.streams import SEGMENTS
from tests.ops_servers import wait_for

# yt-dlp leaves the sockets of failed answers to the garbage collector

URL = "https://www.youtube.com/watch?v="


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp() / "offline-youtube"


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[OfflineYouTube]:
    with OfflineYouTube(folder) as site, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(site.bundle_file))
        yield site


class Silent:
    """A yt-dlp logger."""

    def debug(self, message: str) -> None: ...
    def warning(self, message: str) -> None: ...
    def error(self, message: str) -> None: ...


def youtube_dl(site: OfflineYouTube, egress: str, folder: Path, **options: Any) -> Any:
    import yt_dlp  # type: ignore[import-untyped]  # yt-dlp has no types

    given = {
        "proxy": site.proxy(egress), "compat_opts": {"no-certifi"}, "cachedir": False, "logger": Silent(),
        "allowed_extractors": ["youtube.*"], "outtmpl": str(folder / "%(id)s.%(format_id)s.%(ext)s"),
        "fixup": "never", "extractor_retries": 0, "socket_timeout": 5,
    }  # fmt: skip
    return yt_dlp.YoutubeDL({**given, **options})


def extract(site: OfflineYouTube, video_id: str, egress: str, folder: Path, format_id: str) -> dict[str, Any]:
    with youtube_dl(site, egress, folder, format=format_id) as ydl:
        info: dict[str, Any] = ydl.extract_info(URL + video_id, download=False)
    return info


def test_a_good_video_is_extracted_and_its_formats_are_downloaded(site: OfflineYouTube, tmp_path: Path) -> None:
    with youtube_dl(site, "egress1", tmp_path, format="299,140") as ydl:
        info = ydl.extract_info(URL + "ok-00000001")

    assert info["title"] == "Offline video ok-00000001"
    assert {"18", "136", "140", "251", "299"} <= {each["format_id"] for each in info["formats"]}
    for itag, name in ((299, "ok-00000001.299.mp4"), (140, "ok-00000001.140.m4a")):
        assert (tmp_path / name).read_bytes() == (site.media_folder / ITAGS[itag].name).read_bytes()


def test_without_our_authority_yt_dlp_refuses(site: OfflineYouTube, tmp_path: Path) -> None:
    from yt_dlp.utils import DownloadError  # type: ignore[import-untyped]  # as above

    options = {"compat_opts": set(), "format": "299", "extractor_args": {"youtube": {"player_skip": ["webpage"]}}}

    with (
        pytest.raises(DownloadError, match="CERTIFICATE_VERIFY_FAILED"),
        youtube_dl(site, "egress1", tmp_path, **options) as ydl,
    ):
        ydl.extract_info(URL + "ok-00000001", download=False)


@pytest.mark.parametrize(("egress", "status"), [("egress1", 206), ("egress2", 403)])
def test_a_media_url_serves_only_the_egress_that_extracted(
    site: OfflineYouTube, tmp_path: Path, egress: str, status: int
) -> None:
    info = extract(site, "ok-0000bind", "egress1", tmp_path, "140")

    assert ask(site, egress, info["url"], {"Range": "bytes=0-9"}) == status


def test_an_expired_media_url_is_forbidden(site: OfflineYouTube, tmp_path: Path) -> None:
    info = extract(site, "expired-000", "egress1", tmp_path, "140")

    assert ask(site, "egress1", info["url"]) == 403


def test_a_cut_download_is_resumed_by_range(site: OfflineYouTube, tmp_path: Path) -> None:
    site.reset()

    with youtube_dl(site, "egress1", tmp_path, format="299", retries=1) as ydl:
        ydl.extract_info(URL + "mcut1-00000")

    whole = (site.media_folder / "299.mp4").read_bytes()
    assert (tmp_path / "mcut1-00000.299.mp4").read_bytes() == whole
    served = [entry for entry in site.log if entry.get("media") == "mcut1-00000"]
    assert [entry.get("fault") for entry in served] == ["cut", None]
    resumed_at = int(served[1]["range"].removeprefix("bytes=").split("-")[0])
    assert 0 < resumed_at <= served[0]["bytes"]  # yt-dlp keeps whole buffers only


def test_the_log_says_who_asked_for_what(site: OfflineYouTube, tmp_path: Path) -> None:
    site.reset()

    extract(site, "ok-00000log", "egress7", tmp_path, "140")

    assert {entry["egress"] for entry in site.log} == {"egress7"}
    assert {"/watch", "/youtubei/v1/player"} <= {entry.get("path") for entry in site.log}


def test_a_host_that_is_not_played_is_refused(site: OfflineYouTube) -> None:
    for host in ("example.com", "notyoutube.com"):
        with pytest.raises(OSError, match="502"):
            ask(site, "egress1", f"https://{host}/")


@pytest.mark.parametrize(("list_id", "count"), [("PLoffline0001", 5), ("PLoffline-25", 25)])
def test_a_playlist_is_listed_through_its_continuations(
    site: OfflineYouTube, tmp_path: Path, list_id: str, count: int
) -> None:
    with youtube_dl(site, "egress1", tmp_path, extract_flat=True) as ydl:
        info = ydl.extract_info(f"https://www.youtube.com/playlist?list={list_id}", download=False)

    assert [entry["id"] for entry in info["entries"]] == [f"ok-{n:08d}" for n in range(1, count + 1)]


def test_a_live_grows_and_ends_and_then_is_a_video(site: OfflineYouTube, tmp_path: Path) -> None:
    site.reset()
    live = extract(site, "growing-001", "egress1", tmp_path, "92")

    first = playlist(site, live["url"])
    wait_for(lambda: len(segments(playlist(site, live["url"]))) > len(segments(first)), "another segment")
    site.streams.end("growing-001")

    last = playlist(site, live["url"])
    assert (live["live_status"], live.get("duration")) == ("is_live", None)
    assert segments(last)[:2] == segments(first)[:2]
    assert ("#EXT-X-ENDLIST" in first, "#EXT-X-ENDLIST" in last) == (False, True)
    assert len(segments(last)) == SEGMENTS
    video = extract(site, "growing-001", "egress1", tmp_path, "92")
    assert (video["live_status"], video["duration"]) == ("was_live", SEGMENTS)


def test_a_live_that_does_not_end_has_a_window_and_begins_its_segments_again(
    site: OfflineYouTube, tmp_path: Path
) -> None:
    live = extract(site, "live-000001", "egress1", tmp_path, "92")
    site.streams.end("live-000001")  # it can't; an hour has passed

    lines = playlist(site, live["url"])

    listed = segments(lines)
    assert int(lines[3].removeprefix("#EXT-X-MEDIA-SEQUENCE:")) > 3000
    assert "#EXT-X-ENDLIST" not in lines
    assert len(listed) == 6
    assert ask(site, "egress1", listed[-1]) == 200


@pytest.mark.parametrize(("egress", "status"), [("egress1", 200), ("egress2", 403)])
def test_manifests_and_segments_serve_only_the_egress_that_extracted(
    site: OfflineYouTube, tmp_path: Path, egress: str, status: int
) -> None:
    hls = extract(site, "hlsaes-0001", "egress1", tmp_path, "92")
    dash = extract(site, "dash-000001", "egress1", tmp_path, "136")
    lines = playlist(site, hls["url"])
    key = lines[4].split('"')[1]

    asked = [hls["manifest_url"], hls["url"], segments(lines)[0], key, dash["manifest_url"]]

    assert [ask(site, egress, url) for url in [*asked, dash["fragment_base_url"] + "sq/0"]] == [status] * 6


@pytest.mark.parametrize(
    ("ext", "begins"),
    [("vtt", "WEBVTT"), ("srt", "1\n00:00:00,000 -->"), ("json3", '{"wireMagic"'), ("ttml", "<?xml")],
)
def test_timed_text_comes_in_the_form_that_is_asked_for(
    site: OfflineYouTube, tmp_path: Path, ext: str, begins: str
) -> None:
    info = extract(site, "subs-000001", "egress1", tmp_path, "140")
    (url,) = [each["url"] for each in info["subtitles"]["de"] if each["ext"] == ext]

    text = read(site, "egress1", url)

    assert text.startswith(begins)
    assert "Hallo" in text
    assert set(info["automatic_captions"]) == {"en-orig", "en", "de", "fr"}


def test_two_gigabytes_take_no_room_and_are_served_by_range(site: OfflineYouTube, tmp_path: Path) -> None:
    info = extract(site, "sparse-0001", "egress1", tmp_path, "999")

    path = site.stock.path(SPARSE)

    assert (info["filesize"], path.stat().st_blocks < 64) == (SPARSE_BYTES, True)
    assert ask(site, "egress1", info["url"], {"Range": f"bytes={SPARSE_BYTES - 4}-"}) == 206


def test_what_few_videos_have_is_made_when_it_is_asked_for(site: OfflineYouTube, tmp_path: Path) -> None:
    (tmp_path / "media").symlink_to(site.media_folder)
    stock = Stock(tmp_path)

    before = sorted(path.name for path in tmp_path.iterdir())
    picture = stock.thumbnail("webp")

    assert before == ["media"]
    assert picture.startswith(b"RIFF")
    assert stock.thumbnail("webp") == picture


def test_two_that_make_a_folder_at_once_get_one_whole_folder(tmp_path: Path) -> None:
    both_make = Barrier(2, timeout=10)

    def make(folder: Path) -> None:
        both_make.wait()
        (folder / "media").write_text("whole")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda target: made_once(target, make), [tmp_path / "made"] * 2))

    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*"))] == [
        "made",
        "made/media",
    ]


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_the_command_says_when_it_listens_and_ends_on_a_signal(
    site: OfflineYouTube, folder: Path, tmp_path: Path, ending: signal.Signals
) -> None:
    ready_file = tmp_path / "ready.json"
    command = [
        sys.executable,
        "-m",
        "tests.offline_youtube",
        "--folder",
        str(folder),
        "--ready-file",
        str(ready_file),
    ]

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.send_signal(ending)
        status = process.wait(10)

    ready = json.loads(ready_file.read_text())
    assert (status, ready["proxy"] in line) == (0, True)
    assert ready["proxy"] == f"http://egress1:x@127.0.0.1:{ready['port']}"
    assert Path(ready["bundle_file"]).read_text().endswith(Path(ready["ca_file"]).read_text())


def playlist(site: OfflineYouTube, url: str) -> list[str]:
    return read(site, "egress1", url).splitlines()


def segments(lines: list[str]) -> list[str]:
    return [line for line in lines if line and not line.startswith("#")]


def read(site: OfflineYouTube, egress: str, url: str) -> str:
    """The text of one answer."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"https": site.proxy(egress)}))
    with opener.open(url, timeout=10) as response:
        return str(response.read().decode())


def ask(site: OfflineYouTube, egress: str, url: str, headers: dict[str, str] | None = None) -> int:
    """The status of one request through an egress, with TLS verified against `SSL_CERT_FILE`."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"https": site.proxy(egress)}))
    try:
        with opener.open(urllib.request.Request(url, headers=headers or {}), timeout=10) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
