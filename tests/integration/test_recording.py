"""A live is recorded to its end: whole segments in order, what lacks is told, dead attempts are gone on from."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading import live as live_module
from include.ytdlp_ops.downloading.directories import directory_for, take_over
from include.ytdlp_ops.downloading.infos import cut_to_format
from include.ytdlp_ops.downloading.runner import Downloaded, Progress, download_format
from include.ytdlp_ops.downloading.verifying import MediaFacts, verify
from include.ytdlp_ops.errors import BadInput, DownloadFailed, LeaseLost
from tests.live_streams import CHUNKS, Live, is_on, whole
from tests.media_site import MediaSite


@pytest.fixture
def site(segments: Path) -> Iterator[MediaSite]:
    with MediaSite(segments) as site:
        yield site


def info(url: str, live_status: str = "is_live") -> dict[str, Any]:
    fmt = {
        "format_id": "96",
        "protocol": "m3u8_native",
        "url": url,
        "ext": "mp4",
        "vcodec": "avc1",
        "acodec": "none",
    }
    return {"id": "v", "title": "v", "live_status": live_status, "duration": 99, "formats": [fmt]}


Record = Callable[..., Downloaded]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    def run(about: dict[str, Any], token: str = "one", **more: Any) -> Downloaded:
        return download_format(about, "96", directory=directory_for(tmp_path, "v", token), proxy=None, **more)

    return run


def facts_of(path: Path) -> MediaFacts:
    return verify(path, expected_bytes=None, expected_duration=8, expect_video=True, expect_audio=False)


@pytest.mark.parametrize("window", [0, 3])
def test_a_live_that_still_lists_its_beginning_is_recorded_whole(
    site: MediaSite, record: Record, segments: Path, window: int
) -> None:
    told: list[Progress] = []

    made = record(info(is_on(site, Live(window=window))), on_progress=told.append)

    assert made.path.read_bytes() == whole(segments)
    assert (made.live, made.partial) == (True, None)
    assert facts_of(made.path).video_codec == "h264"
    assert [progress.fragment for progress in told] == list(range(8))
    assert [name for name, _ in site.asked if name in CHUNKS] == CHUNKS, "each is asked for once"


def test_an_encrypted_live_is_opened_with_its_keys(site: MediaSite, record: Record, segments: Path) -> None:
    names = [f"index{number}.ts" for number in range(8)]
    lines = (segments / "index.m3u8").read_text().splitlines()
    head = next(line for line in lines if line.startswith("#EXT-X-KEY")) + "\n"
    wanted = record(info(site.url("index.m3u8"), "was_live"), "vod").path.read_bytes()

    made = record(info(is_on(site, Live(names, head=head))))

    assert made.path.read_bytes() == wanted
    assert facts_of(made.path).container == "mpegts"


def test_a_live_that_was_joined_late_is_told_to_be_partial(
    site: MediaSite, record: Record, segments: Path
) -> None:
    live = Live(first=1000, window=2, listed=4)

    made = record(info(is_on(site, live)))

    assert made.path.read_bytes() == whole(segments, CHUNKS[2:])
    assert made.partial == "its beginning had gone from the playlist"


def test_segments_that_do_not_come_are_left_out_and_counted(
    site: MediaSite, record: Record, segments: Path
) -> None:
    site.statuses["chunk-3.m4s"] = 404

    made = record(info(is_on(site, Live())))

    assert made.path.read_bytes() == whole(segments, CHUNKS[:2] + CHUNKS[3:])
    assert made.partial == "segments in between that did not come: 1"


def test_a_live_that_goes_away_without_a_word_keeps_what_came(
    site: MediaSite, record: Record, segments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "PATIENCE_SECONDS", 0.5)

    def gone(progress: Progress) -> None:
        if progress.fragment == 4:
            site.statuses["live.m3u8"] = 404

    made = record(info(is_on(site, Live())), on_progress=gone)

    assert made.path.read_bytes() == whole(segments, CHUNKS[:5])
    assert made.partial is not None
    assert "HTTP 404" in made.partial


@pytest.mark.slow
def test_a_page_in_place_of_the_playlist_is_outlasted(site: MediaSite, record: Record, segments: Path) -> None:
    live = Live()
    url, answers = is_on(site, live), iter(["<html>busy</html>"] * 2)

    def busy(progress: Progress) -> None:
        if progress.fragment == 4:
            site.made["live.m3u8"] = lambda: next(answers, None) or live.playlist()

    made = record(info(url), on_progress=busy)

    assert made.path.read_bytes() == whole(segments)
    assert made.partial is None


def test_a_live_that_brings_nothing_new_is_over_at_last(
    site: MediaSite, record: Record, segments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "PATIENCE_SECONDS", 0.5)

    made = record(info(is_on(site, Live(ends=False))))

    assert made.path.read_bytes() == whole(segments)
    assert made.partial is not None
    assert made.partial.startswith("nothing new came for")


@pytest.mark.parametrize(("status", "code"), [(403, Code.MEDIA_403), (404, Code.MEDIA_GONE)])
def test_a_live_that_is_refused_from_the_first_fails_at_once(
    site: MediaSite, record: Record, status: int, code: Code
) -> None:
    url = is_on(site, Live())
    site.statuses["live.m3u8"] = status

    with pytest.raises(DownloadFailed) as failed:
        record(info(url))

    assert failed.value.code is code
    assert site.url("") not in failed.value.message


def test_a_live_whose_url_has_expired_goes_back_for_a_fresh_one(site: MediaSite, record: Record) -> None:
    url = is_on(site, Live()) + f"?expire={int(time.time()) - 60}"
    site.statuses["live.m3u8"] = 403

    with pytest.raises(DownloadFailed) as failed:
        record(info(url))

    assert failed.value.code is Code.URL_EXPIRED


def test_a_url_that_expires_meanwhile_does_not_end_the_recording(
    site: MediaSite, record: Record, segments: Path
) -> None:
    url = is_on(site, Live()) + f"?expire={int(time.time()) - 60}"

    made = record(info(url))

    assert made.path.read_bytes() == whole(segments)


def test_a_live_that_outlasts_its_url_is_gone_on_with_by_a_fresh_one(
    site: MediaSite, record: Record, segments: Path, tmp_path: Path
) -> None:
    url = is_on(site, Live())

    def refused(progress: Progress) -> None:
        if progress.fragment == 4:
            site.statuses["live.m3u8"] = 403

    with pytest.raises(DownloadFailed) as failed:
        record(info(f"{url}?expire={int(time.time()) - 60}"), "first", on_progress=refused)
    site.statuses.clear()
    about = info(f"{url}?expire={int(time.time()) + 3600}")
    take_over(tmp_path, "v", "one", cut_to_format(about, "96")["formats"][0])
    made = record(about)

    assert failed.value.code is Code.URL_EXPIRED
    assert made.path.read_bytes() == whole(segments)
    assert made.partial is None
    assert [name for name, _ in site.asked if name in CHUNKS] == CHUNKS


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("<html>not here</html>", Code.BAD_MEDIA),
        ('#EXTM3U\n#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://x"\n#EXTINF:1,\nx.ts\n', Code.DRM),
        ("#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:many\n", Code.BAD_MEDIA),
    ],
)
def test_what_can_not_be_recorded_says_why(site: MediaSite, record: Record, text: str, code: Code) -> None:
    site.made["live.m3u8"] = lambda: text

    with pytest.raises(DownloadFailed) as failed:
        record(info(site.url("live.m3u8")))

    assert failed.value.code is code


def test_segments_at_private_addresses_are_not_asked_for(site: MediaSite, record: Record) -> None:
    url = is_on(site, Live())

    with pytest.raises(BadInput, match="127\\.0\\.0\\.1"):
        record(info(url), allow_private_targets=False)

    assert site.asked == []


def test_a_stop_is_heard_while_nothing_new_comes(site: MediaSite, record: Record) -> None:
    reason, told = LeaseLost("another worker has it"), list[Progress]()
    url = is_on(site, Live(ends=False))

    with pytest.raises(LeaseLost) as stopped:
        record(
            info(url),
            on_progress=told.append,
            should_stop=lambda: reason if told and told[-1].fragment == 7 else None,
        )

    assert stopped.value is reason


def test_another_attempt_goes_on_from_what_a_stopped_one_left(
    site: MediaSite, record: Record, segments: Path, tmp_path: Path
) -> None:
    about, told, reason = info(is_on(site, Live())), list[Progress](), LeaseLost("another worker has it")
    with pytest.raises(LeaseLost):
        record(
            about,
            "dead",
            on_progress=told.append,
            should_stop=lambda: reason if told and told[-1].fragment == 3 else None,
        )

    taken = take_over(tmp_path, "v", "one", cut_to_format(about, "96")["formats"][0])
    made = record(about)

    assert taken == len(whole(segments, CHUNKS[:4]))
    assert made.path.read_bytes() == whole(segments)
    assert made.partial is None
    assert [name for name, _ in site.asked if name in CHUNKS] == CHUNKS


def test_what_the_next_attempt_came_too_late_for_is_counted(
    site: MediaSite, record: Record, segments: Path, tmp_path: Path
) -> None:
    live, told, reason = Live(window=2), list[Progress](), LeaseLost("another worker has it")
    about = info(is_on(site, live))
    with pytest.raises(LeaseLost):
        record(
            about,
            "dead",
            on_progress=told.append,
            should_stop=lambda: reason if told and told[-1].fragment == 1 else None,
        )
    live.listed = 7

    take_over(tmp_path, "v", "one", cut_to_format(about, "96")["formats"][0])
    made = record(about)

    assert made.path.read_bytes() == whole(segments, CHUNKS[:2] + CHUNKS[5:])
    assert made.partial == "segments in between that did not come: 3"


CHILD = """
import json, sys
from pathlib import Path
from include.ytdlp_ops.downloading.runner import download_format
info, directory = json.loads(sys.argv[1]), Path(sys.argv[2])
download_format(
    info, "96", directory=directory, proxy=None,
    on_progress=lambda progress: print(progress.fragment, flush=True),
)
"""


def test_a_killed_recording_keeps_its_bytes_for_the_next_attempt(
    site: MediaSite, record: Record, segments: Path, tmp_path: Path
) -> None:
    about = info(is_on(site, Live()))
    command = [sys.executable, "-c", CHILD, json.dumps(about), str(directory_for(tmp_path, "v", "dead"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path.cwd()) as child:
        assert child.stdout
        next(line for line in child.stdout if int(line) >= 2)
        child.send_signal(signal.SIGKILL)

    taken = take_over(tmp_path, "v", "one", cut_to_format(about, "96")["formats"][0])
    made = record(about)

    assert taken >= len(whole(segments, CHUNKS[:3]))
    assert made.path.read_bytes() == whole(segments)
    assert facts_of(made.path).video_codec == "h264"


def test_the_disk_and_the_limits_are_looked_after(site: MediaSite, record: Record) -> None:
    class Stopwatch:
        came = 0

        def spend(self, count: int) -> float:
            self.came += count
            return 0.0

    pace = Stopwatch()

    made = record(info(is_on(site, Live())), paces=[pace])

    assert pace.came >= made.path.stat().st_size
