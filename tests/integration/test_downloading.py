"""Real yt-dlp downloads from the offline site: what arrives, what is asked for, and what every failure becomes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.downloading.directories import directory_for, take_over, target_in, write_version
from include.ytdlp_ops.downloading.infos import cut_to_format
from include.ytdlp_ops.downloading.options import isolated
from include.ytdlp_ops.downloading.runner import Progress, download_format
from include.ytdlp_ops.errors import DownloadFailed, LeaseLost
from tests.offline_youtube.server import OfflineYouTube

ITEM = "youtube:video:299"
EXTRACT = {"quiet": True, "no_warnings": True, "cachedir": False, "allowed_extractors": ["youtube"]}


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfflineYouTube]:
    with OfflineYouTube(tmp_path_factory.getbasetemp() / "offline-youtube") as site:
        yield site


@dataclass
class Desk:
    """What every test here does: extract as the ops server would, then download as a worker would."""

    site: OfflineYouTube
    work_dir: Path

    def info(self, video_id: str = "goodvideo01", **options: Any) -> dict[str, Any]:
        """An info by egress1; the site's log begins after it."""
        import yt_dlp  # type: ignore[import-untyped]  # ships no types

        params = {**EXTRACT, "proxy": self.site.proxy("egress1"), "compat_opts": {"no-certifi"}, **options}
        with isolated(self.site.bundle_file), yt_dlp.YoutubeDL(params) as ydl:
            info = ydl.extract_info(f"https://www.youtube.com/watch?v={video_id}", download=False, process=True)
            clean: dict[str, Any] = json.loads(json.dumps(ydl.sanitize_info(info, True)))
        self.site.reset()
        return clean

    def directory(self, token: str = "one") -> Path:
        return directory_for(self.work_dir, ITEM, token)

    def download(
        self, info: dict[str, Any], format_id: str = "299", *, egress: str = "egress1", **more: Any
    ) -> Path:
        given = {"directory": self.directory(), "ca_file": self.site.bundle_file, **more}
        return download_format(info, format_id, proxy=self.site.proxy(egress), **given).path

    def failure(self, video_id: str, format_id: str = "299", **more: Any) -> DownloadFailed:
        info = self.info(video_id)
        with pytest.raises(DownloadFailed) as failed:
            self.download(info, format_id, **more)
        return failed.value

    def original(self, name: str) -> bytes:
        return (self.site.media_folder / name).read_bytes()

    def ranges(self) -> list[str]:
        """What was asked for, from which byte."""
        return [entry.get("range", "all").split("-")[0] for entry in self.site.log if "media" in entry]


@pytest.fixture
def desk(offline: OfflineYouTube, tmp_path: Path) -> Desk:
    offline.reset()
    return Desk(offline, tmp_path / "work")


@pytest.mark.parametrize(("format_id", "name"), [("299", "299.mp4"), ("140", "140.m4a"), ("18", "18.mp4")])
def test_a_format_arrives_byte_for_byte_and_tells_its_progress(desk: Desk, format_id: str, name: str) -> None:
    told: list[Progress] = []

    path = desk.download(desk.info(), format_id, on_progress=told.append)

    assert path.read_bytes() == desk.original(name)
    assert path.parent == desk.directory()
    counts = [progress.downloaded_bytes or 0 for progress in told]
    assert counts == sorted(counts)
    assert (told[-1].downloaded_bytes, told[-1].total_bytes) == (path.stat().st_size, path.stat().st_size)


def test_only_the_media_is_asked_for_also_when_it_fails(desk: Desk) -> None:
    info = desk.info("m403-000000")

    with pytest.raises(DownloadFailed):
        desk.download(info)

    assert info["webpage_url"]
    assert [entry.get("path") for entry in desk.site.log] == [None]
    assert [entry["status"] for entry in desk.site.log] == [403]


def test_only_the_media_and_its_version_lie_in_the_directory(desk: Desk) -> None:
    path = desk.download(desk.info())

    assert sorted(entry.name for entry in path.parent.iterdir()) == sorted([path.name, "version.json"])


@pytest.mark.parametrize(
    ("video_id", "code"),
    [
        ("m403-000000", Code.MEDIA_403),
        ("m404-000000", Code.MEDIA_GONE),
        ("m410-000000", Code.MEDIA_GONE),
        ("m429-000000", Code.HTTP_429),
        ("expired-000", Code.URL_EXPIRED),
        ("mempty-0000", Code.NETWORK),
    ],
)
def test_a_failure_of_the_media_server_has_its_code(desk: Desk, video_id: str, code: Code) -> None:
    failure = desk.failure(video_id)

    assert failure.code is code
    assert not [path for path in desk.directory().iterdir() if path.suffix == ".mp4"]


def test_another_egress_than_the_one_that_extracted_is_refused_by_the_site(desk: Desk) -> None:
    failure = desk.failure("goodvideo01", egress="egress2")

    assert failure.code is Code.MEDIA_403


def test_a_certificate_that_is_not_trusted_ends_the_download(desk: Desk) -> None:
    failure = desk.failure("goodvideo01", ca_file=None)

    assert (failure.code, failure.outcome) == (Code.TLS_INTERCEPTED, Outcome.ROTATE)
    assert desk.site.log == []


def test_no_failure_shows_the_media_url_or_the_proxy(desk: Desk) -> None:
    for video_id in ("m403-000000", "m429-000000", "mempty-0000"):
        failure = desk.failure(video_id)

        assert "videoplayback" not in f"{failure!r} {failure.__cause__!r}"
        assert "egress1" not in failure.message
        assert failure.__suppress_context__


def test_a_server_that_is_out_of_service_twice_is_asked_a_third_time(desk: Desk) -> None:
    path = desk.download(desk.info("m503x2-0000"))

    assert path.read_bytes() == desk.original("299.mp4")
    assert [entry["status"] for entry in desk.site.log] == [503, 503, 206]


def test_a_cut_answer_is_resumed_where_it_stopped(desk: Desk) -> None:
    path = desk.download(desk.info("mcut-000000"))

    sent = sum(entry["bytes"] for entry in desk.site.log)
    assert path.read_bytes() == desk.original("299.mp4")
    assert len(desk.ranges()) > 1
    assert sent < path.stat().st_size + 65536  # a block that was cut is asked for again


def test_a_part_left_in_the_directory_is_resumed(desk: Desk) -> None:
    info = desk.info()
    target = target_in(desk.directory(), cut_to_format(info, "299")["formats"][0])
    target.with_name(f"{target.name}.part").write_bytes(desk.original("299.mp4")[:50000])

    path = desk.download(info)

    assert path.read_bytes() == desk.original("299.mp4")
    assert desk.ranges() == ["bytes=50000"]


def test_a_whole_file_that_a_dead_attempt_left_is_not_sent_again(desk: Desk) -> None:
    info = desk.info()
    fmt = cut_to_format(info, "299")["formats"][0]
    left = desk.directory("dead")
    write_version(left, fmt)
    target_in(left, fmt).write_bytes(desk.original("299.mp4"))

    taken = take_over(desk.work_dir, ITEM, "one", fmt)
    path = desk.download(info)

    assert taken == path.stat().st_size
    assert path.read_bytes() == desk.original("299.mp4")
    assert desk.site.log == []


def test_a_stop_in_mid_download_raises_what_the_caller_said_and_keeps_the_part(desk: Desk) -> None:
    reason, told = LeaseLost("another worker has it"), list[Progress]()

    with pytest.raises(LeaseLost) as stopped:
        desk.download(
            desk.info("mslow-00000"),
            on_progress=told.append,
            should_stop=lambda: reason if len(told) > 3 else None,
        )

    assert stopped.value is reason
    left = [path.name for path in desk.directory().iterdir() if path.name != "version.json"]
    assert [name.endswith(".mp4.part") for name in left] == [True]


@pytest.mark.parametrize(
    "reason", [OSError(28, "No space"), KeyboardInterrupt(), DownloadFailed(Code.CANCELLED, "c")]
)
def test_no_kind_of_exception_is_wrapped_on_its_way_to_the_caller(desk: Desk, reason: BaseException) -> None:
    info = desk.info()

    with pytest.raises(type(reason)) as stopped:
        desk.download(info, should_stop=lambda: reason)

    assert stopped.value is reason


def test_a_stop_is_heard_while_a_retry_is_waited_for(desk: Desk) -> None:
    reason, info = LeaseLost("another worker has it"), desk.info()

    with pytest.raises(LeaseLost):
        desk.download(info, egress="reset", should_stop=lambda: reason)

    assert [entry for entry in desk.site.log if "media" in entry] == []


def test_media_is_not_asked_for_before_the_site_allows_it(desk: Desk) -> None:
    info = desk.info()
    allowed_at = time.time() + 0.5
    for fmt in info["formats"]:
        fmt["available_at"] = allowed_at

    desk.download(info)

    assert desk.site.log[0]["t"] >= round(allowed_at, 3)


def test_a_stop_is_heard_while_the_site_lets_one_wait(desk: Desk) -> None:
    reason, info = LeaseLost("another worker has it"), desk.info()
    for fmt in info["formats"]:
        fmt["available_at"] = time.time() + 1e6

    with pytest.raises(LeaseLost):
        desk.download(info, should_stop=lambda: reason)

    assert desk.site.log == []


def break_with_a_full_disk(part: Path) -> None:
    part.symlink_to("/dev/full")


def break_with_a_directory(part: Path) -> None:
    part.mkdir()


@pytest.mark.parametrize(
    ("broken", "code"), [(break_with_a_full_disk, Code.DISK), (break_with_a_directory, Code.LOCAL_IO)]
)
def test_this_hosts_own_trouble_hands_the_item_back(
    desk: Desk, broken: Callable[[Path], None], code: Code
) -> None:
    info = desk.info()
    target = target_in(desk.directory(), cut_to_format(info, "299")["formats"][0])
    broken(target.with_name(f"{target.name}.part"))

    with pytest.raises(DownloadFailed) as failed:
        desk.download(info)

    assert (failed.value.code, failed.value.outcome) == (code, Outcome.OPERATOR)


def test_a_directory_that_is_gone_is_this_hosts_trouble(desk: Desk, tmp_path: Path) -> None:
    failure = desk.failure("goodvideo01", directory=tmp_path / "gone")

    assert failure.code is Code.LOCAL_IO


def test_a_format_in_fragments_arrives_and_counts_them(desk: Desk) -> None:
    info = desk.info(extractor_args={"youtube": {"formats": ["dashy"]}})
    format_id = next(fmt["format_id"] for fmt in info["formats"] if fmt["protocol"] == "http_dash_segments")
    told: list[Progress] = []

    path = desk.download(info, format_id, on_progress=told.append)

    assert path.stat().st_size > 0
    assert 1 in {progress.fragment for progress in told}


CHILD = """
import json, sys
from pathlib import Path
from include.ytdlp_ops.downloading.runner import download_format
given = json.load(sys.stdin)
download_format(
    given["info"], "140", directory=Path(given["directory"]), proxy=given["proxy"], ca_file=Path(given["ca_file"]),
    on_progress=lambda progress: print(progress.downloaded_bytes, flush=True),
)
"""


def test_what_a_killed_process_left_is_taken_over_and_only_the_rest_is_asked_for(desk: Desk) -> None:
    info = desk.info("mslow-00000")
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )
    assert child.stdin
    assert child.stdout
    with child, child.stdin, child.stdout:
        given = {"directory": str(desk.directory("dead")), "proxy": desk.site.proxy("egress1"), "info": info}
        json.dump({**given, "ca_file": str(desk.site.bundle_file)}, child.stdin)
        child.stdin.close()
        reached = next(done for done in map(int, child.stdout) if done > 30000)
        child.send_signal(signal.SIGKILL)

    taken = take_over(desk.work_dir, ITEM, "one", cut_to_format(info, "140")["formats"][0])
    path = desk.download(info, "140")

    assert 0 < taken <= reached + 16384
    assert desk.ranges() == ["bytes=0", f"bytes={taken}"]
    assert path.read_bytes() == desk.original("140.m4a")
