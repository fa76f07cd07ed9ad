"""One file over several connections: the same bytes, a part that is always a prefix, and limits that hold."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.directories import directory_for
from include.ytdlp_ops.downloading.options import Transfer
from include.ytdlp_ops.downloading.pacing import HostPace
from include.ytdlp_ops.downloading.ranges import RANGE_BYTES, STEPS
from include.ytdlp_ops.downloading.runner import Progress, download_format
from include.ytdlp_ops.errors import DownloadFailed, LeaseLost
from tests.media_site import MediaSite

SIZE = 5 * RANGE_BYTES + 12345


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("media")
    (folder / "big.mp4").write_bytes(os.urandom(SIZE))
    return folder


@pytest.fixture
def site(folder: Path) -> Iterator[MediaSite]:
    with MediaSite(folder) as site:
        yield site


def download(
    site: MediaSite, tmp_path: Path, *, promised: int = SIZE, connections: int | None = 4, **more: Any
) -> Path:
    fmt = {"format_id": "1", "url": site.url("big.mp4"), "ext": "mp4", "protocol": "http", "filesize": promised}
    fmt["downloader_options"] = more.pop("downloader_options", None)
    wishes = more.pop("wishes", {})
    return download_format(
        {"id": "v", "title": "v", "formats": [fmt]},
        "1",
        directory=directory_for(tmp_path, "v", "one"),
        proxy=None,
        transfer=Transfer(connections=connections, **wishes),
        **more,
    ).path


def part(tmp_path: Path) -> bytes:
    return next(directory_for(tmp_path, "v", "one").glob("*.part")).read_bytes()


@pytest.mark.parametrize("connections", [1, 2, 8, None])
def test_the_bytes_are_the_same_over_any_number_of_connections(
    site: MediaSite, folder: Path, tmp_path: Path, connections: int
) -> None:
    told: list[Progress] = []

    path = download(site, tmp_path, connections=connections, on_progress=told.append)

    assert path.read_bytes() == (folder / "big.mp4").read_bytes()
    assert {left.name for left in path.parent.iterdir()} == {path.name, "version.json"}
    assert (told[-1].downloaded_bytes, told[-1].total_bytes) == (SIZE, SIZE)
    assert len(site.asked) == (1 if connections in (1, None) else 6)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes seconds on purpose, in tenths of them."""
    monkeypatch.setattr("include.ytdlp_ops.downloading.ranges._WINDOW_SECONDS", 0.15)
    monkeypatch.setattr("include.ytdlp_ops.downloading.ranges._SECONDS_TO_GO", 0.5)


@pytest.fixture
def demanding(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts as slow is fast enough for a test."""
    monkeypatch.setattr("include.ytdlp_ops.downloading.ranges.SLOW", 20 << 20)


def starts(site: MediaSite) -> list[int]:
    return [int(asked.removeprefix("bytes=").split("-")[0]) for _, asked in site.asked]


@pytest.mark.usefixtures("hasty", "demanding")
def test_a_host_that_limits_each_connection_gets_more_of_them_by_itself(
    site: MediaSite, folder: Path, tmp_path: Path
) -> None:
    site.rate = 4e6  # five seconds for one
    told: list[Progress] = []
    began = time.monotonic()

    path = download(site, tmp_path, connections=None, on_progress=told.append)

    took = time.monotonic() - began
    first, *others = starts(site)  # the others go side by side
    assert path.read_bytes() == (folder / "big.mp4").read_bytes()
    assert first == 0
    assert 0 < min(others) < RANGE_BYTES
    assert max(STEPS) >= site.most_busy >= min(STEPS)
    assert took < 0.8 * SIZE / 4e6
    counts = [progress.downloaded_bytes or 0 for progress in told]
    assert counts == sorted(counts)


@pytest.mark.usefixtures("hasty", "demanding")
def test_connections_that_bring_no_more_are_given_up_again(site: MediaSite, folder: Path, tmp_path: Path) -> None:
    with MediaSite(folder, line=8e6) as narrow:
        path = download(narrow, tmp_path, connections=None)

        assert path.read_bytes() == (folder / "big.mp4").read_bytes()
        assert min(STEPS) <= narrow.most_busy <= min(STEPS) + 1, (
            "the first connection's answer may still be ending"
        )


@pytest.mark.usefixtures("hasty")
def test_our_own_limit_is_no_reason_for_more_connections(site: MediaSite, folder: Path, tmp_path: Path) -> None:
    path = download(site, tmp_path, connections=None, wishes={"rate_limit": 10 << 20})

    assert path.read_bytes() == (folder / "big.mp4").read_bytes()
    assert starts(site) == [0]


def test_one_connection_asks_in_the_chunks_that_the_site_wants(
    site: MediaSite, folder: Path, tmp_path: Path
) -> None:
    path = download(site, tmp_path, connections=None, downloader_options={"http_chunk_size": 10 << 20})

    assert path.read_bytes() == (folder / "big.mp4").read_bytes()
    assert starts(site) == [0, 10 << 20, 20 << 20]


def test_a_connection_that_breaks_is_gone_on_from_by_ytdlp(site: MediaSite, folder: Path, tmp_path: Path) -> None:
    site.faults["big.mp4"] = 3

    path = download(site, tmp_path, connections=None)

    assert path.read_bytes() == (folder / "big.mp4").read_bytes()
    assert starts(site)[0] == 0
    assert min(starts(site)[1:]) > 0


def test_what_a_stop_leaves_is_a_prefix_and_only_the_rest_is_asked_for(
    site: MediaSite, folder: Path, tmp_path: Path
) -> None:
    site.rate = 20e6
    reason = LeaseLost("another worker has it")

    with pytest.raises(LeaseLost) as stopped:
        download(
            site,
            tmp_path,
            connections=2,
            should_stop=lambda: reason if len(part(tmp_path)) >= RANGE_BYTES else None,
        )
    left = part(tmp_path)
    site.rate = None
    site.asked.clear()
    path = download(site, tmp_path)

    whole = (folder / "big.mp4").read_bytes()
    assert stopped.value is reason
    assert 0 < len(left) < SIZE
    assert whole.startswith(left)
    first = min(int(asked.removeprefix("bytes=").split("-")[0]) for _, asked in site.asked)  # they go side by side
    assert first == len(left)
    assert path.read_bytes() == whole


def test_cut_answers_are_asked_for_again_from_where_they_stopped(
    site: MediaSite, folder: Path, tmp_path: Path
) -> None:
    site.faults["big.mp4"] = 5

    path = download(site, tmp_path)

    assert path.read_bytes() == (folder / "big.mp4").read_bytes()
    assert len(site.asked) == 6 + 5


@pytest.mark.parametrize("connections", [4, None])
def test_a_host_without_ranges_is_read_over_one_connection(
    site: MediaSite, folder: Path, tmp_path: Path, connections: int | None
) -> None:
    site.ranges = False

    path = download(site, tmp_path, connections=connections)

    assert path.read_bytes() == (folder / "big.mp4").read_bytes()


def test_a_file_of_another_size_is_refused(site: MediaSite, tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed) as failed:
        download(site, tmp_path, promised=SIZE - 1)

    assert failed.value.code is Code.BAD_MEDIA
    assert f"has {SIZE} bytes; {SIZE - 1} were promised" in failed.value.message


@pytest.mark.parametrize(("status", "code"), [(403, Code.MEDIA_403), (404, Code.MEDIA_GONE), (429, Code.HTTP_429)])
def test_a_refusal_has_the_code_that_it_has_over_one_connection(
    site: MediaSite, tmp_path: Path, status: int, code: Code
) -> None:
    site.statuses["big.mp4"] = status
    codes = list[Code]()

    for connections in (1, 4, None):
        with pytest.raises(DownloadFailed) as failed:
            download(site, tmp_path, connections=connections)
        codes.append(failed.value.code)

    assert codes == [code] * 3


@pytest.mark.parametrize("connections", [1, 4, None])
def test_a_host_that_is_out_of_service_is_given_up_after_the_retries(
    site: MediaSite, tmp_path: Path, connections: int | None
) -> None:
    site.statuses["big.mp4"] = 503

    with pytest.raises(DownloadFailed) as failed:
        download(site, tmp_path, connections=connections, wishes={"retries": 1})

    assert failed.value.code is Code.NETWORK
    assert len(site.asked) > 1


def test_an_expiry_in_mid_download_keeps_the_bytes(site: MediaSite, folder: Path, tmp_path: Path) -> None:
    site.rate = 20e6

    def refuse_what_comes_next(progress: Progress) -> None:
        if (progress.downloaded_bytes or 0) > 2 * RANGE_BYTES:
            site.statuses["big.mp4"] = 403

    with pytest.raises(DownloadFailed):
        download(site, tmp_path, connections=2, on_progress=refuse_what_comes_next)
    left = part(tmp_path)
    site.rate = None
    site.statuses.clear()
    path = download(site, tmp_path)

    assert len(left) >= RANGE_BYTES
    assert path.read_bytes() == (folder / "big.mp4").read_bytes()


@pytest.mark.parametrize("connections", [1, 4])
def test_a_rate_limit_holds_for_all_connections_together(
    site: MediaSite, folder: Path, tmp_path: Path, connections: int
) -> None:
    began = time.monotonic()

    path = download(site, tmp_path, connections=connections, wishes={"rate_limit": 20 << 20})

    took = time.monotonic() - began
    assert path.read_bytes() == (folder / "big.mp4").read_bytes()
    assert took > 0.7 * SIZE / (20 << 20)


def test_a_limit_of_the_host_is_shared_by_all_that_name_its_file(tmp_path: Path) -> None:
    one, other = (HostPace(tmp_path / "bandwidth", 1000) for _ in range(2))

    waits = [pace.spend(500) for pace in (one, other, one)]

    assert waits == [pytest.approx(wait, abs=0.2) for wait in (0.5, 1.0, 1.5)]


def test_a_limit_that_a_reboot_left_far_ahead_is_forgotten(tmp_path: Path) -> None:
    HostPace(tmp_path / "bandwidth", 1).spend(10_000_000)

    assert HostPace(tmp_path / "bandwidth", 1000).spend(500) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("connections", [1, 4])
def test_a_disk_that_fills_up_meanwhile_ends_the_download_and_keeps_the_part(
    site: MediaSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connections: int
) -> None:
    monkeypatch.setattr("include.ytdlp_ops.downloading.watching.SPACE_EVERY_BYTES", RANGE_BYTES)

    with pytest.raises(DownloadFailed) as failed:
        download(site, tmp_path, connections=connections, reserve_bytes=1 << 60)

    assert failed.value.code is Code.DISK
    assert f"{1 << 60} are to stay free" in failed.value.message
