"""Faults 13, 16, 17, 21, 22 and 24 with real downloads: real yt-dlp, real processes, real signals."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from include.ytdlp_ops.downloading.infos import cut_to_format
from include.ytdlp_ops.downloading.verifying import sha256
from include.ytdlp_ops.models import FormatItem
from include.ytdlp_ops.ops_server.client import OpsServerClient
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.recovery import sweep
from include.ytdlp_ops.storage.info_store import open_info_store
from tests.faults.downloaders import settings_of, start_downloader
from tests.faults.outcomes import assert_nothing_lost, until
from tests.offline_youtube.server import OfflineYouTube
from tests.ops_servers import OpsServer, start
from tests.servers import Valkey


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfflineYouTube]:
    with OfflineYouTube(tmp_path_factory.getbasetemp() / "offline-youtube") as site:
        yield site


@pytest.fixture(scope="module")
def ops_server(site: OfflineYouTube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpsServer]:
    server = start(site, tmp_path_factory.mktemp("server"), ("good1",))
    yield server
    server.stop()


class OneHost:
    """One host with one queue of format jobs, and the processes that work on them."""

    def __init__(self, server: Valkey, queue: Queue, home: Path, site: OfflineYouTube) -> None:
        self.server, self.queue, self.home, self.site = server, queue, home, site
        self.settings = settings_of(home, site.bundle_file)
        self._stack = ExitStack()

    def submit(self, client: OpsServerClient, video_id: str, format_id: str = "299") -> str:
        """Put one job into the inbox, as auth would."""
        answer = client.info(video_id, egress="good1")
        store = open_info_store(self.settings.info_store)
        found = next(each for each in answer.info["formats"] if each["format_id"] == format_id)
        uri = store.put("job", cut_to_format(answer.info, format_id), proxy=answer.proxy, expires_at=None)
        url = f"https://www.youtube.com/watch?v={video_id}"
        job = FormatItem(
            url=url,
            extractor="youtube",
            video_id=video_id,
            format_id=format_id,
            info_json_path=uri,
            egress="good1",
            bytes=found.get("filesize"),
            group=url,
        )
        self.queue.submit([job])
        return job.item_id

    def worker(self, *options: str) -> subprocess.Popen[str]:
        process = start_downloader(self.server.url, self.home, self.site.bundle_file, *options)
        self._stack.callback(self._end, process)
        return process

    def run(self, *options: str) -> str:
        """One worker to its end; what it said."""
        said, _ = self.worker(*options).communicate(timeout=60)
        return said.strip()

    def stalled_comes_back(self) -> None:
        until(lambda: sweep(self.queue).returned)

    def files(self) -> list[Path]:
        return sorted(self.settings.staging_dir.glob("*")) if self.settings.staging_dir.exists() else []

    def downloading(self, least_bytes: int = 20_000) -> bool:
        return any(part.stat().st_size > least_bytes for part in self.settings.work_dir.rglob("*.part"))

    def close(self) -> None:
        self._stack.close()

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def host(server: Valkey, patient: Queue, tmp_path: Path, site: OfflineYouTube) -> Iterator[OneHost]:
    site.reset()
    host = OneHost(server, Queue(patient.client, Stage.DL), tmp_path / "home", site)
    yield host
    host.close()


def assert_done(host: OneHost, item_id: str) -> None:
    """One record, one file, and it is what the record says."""
    place, record = host.queue.find(item_id) or (None, {})
    assert place == Place.RESULT, record
    assert host.files() == [Path(record["path"])]
    assert sha256(Path(record["path"])) == record["sha256"]
    assert_nothing_lost(host.queue, [item_id])
    assert {where: depth for where, depth in host.queue.depths().items() if depth} == {"result": 1}


@pytest.mark.slow
def test_13_a_download_killed_in_the_middle_is_resumed_by_the_next_attempt(
    host: OneHost, ops_server: OpsServer
) -> None:
    with ops_server.client() as client:
        item_id = host.submit(client, "mslow-00001")
    first = host.worker("--lease-ms", "1000")
    until(host.downloading)

    first.send_signal(signal.SIGKILL)
    first.wait()
    host.stalled_comes_back()
    asked = len(host.site.log)

    assert host.run() == "result"
    assert_done(host, item_id)
    ranges = [str(entry["range"]) for entry in host.site.log[asked:] if entry.get("media")]
    assert ranges
    assert not any(asked_for.startswith("bytes=0-") for asked_for in ranges)


@pytest.mark.parametrize(("how", "attempt"), [(signal.SIGKILL, 2), (signal.SIGTERM, 1)])
def test_13_a_recording_ended_in_the_middle_is_gone_on_with(
    host: OneHost, ops_server: OpsServer, how: signal.Signals, attempt: int
) -> None:
    with ops_server.client() as client:
        item_id = host.submit(client, "growing-013", "95")  # live for three seconds
    first = host.worker("--lease-ms", "1000")
    until(lambda: host.downloading(least_bytes=1))

    first.send_signal(how)
    first.wait()
    until(lambda: sweep(host.queue).returned or host.queue.depths()["inbox"])

    assert host.run() == "result"
    assert_done(host, item_id)
    record = (host.queue.find(item_id) or (None, {}))[1]
    assert (record["attempt"], record.get("partial")) == (attempt, None)
    assert record["duration"] == pytest.approx(8, abs=0.2)


@pytest.mark.slow
def test_16_a_download_frozen_past_its_lease_moves_no_file_when_it_wakes(
    host: OneHost, ops_server: OpsServer
) -> None:
    with ops_server.client() as client:
        item_id = host.submit(client, "mslow-00002")
    frozen = host.worker("--lease-ms", "1000")
    until(host.downloading)
    frozen.send_signal(signal.SIGSTOP)
    host.stalled_comes_back()

    assert host.run() == "result"
    record = (host.queue.find(item_id) or (None, {}))[1]
    frozen.send_signal(signal.SIGCONT)
    said, _ = frozen.communicate(timeout=60)

    assert said.strip() == "lost"
    assert (host.queue.find(item_id) or (None, {}))[1] == record
    assert_done(host, item_id)


@pytest.mark.slow
def test_17_a_download_told_to_stop_is_handed_back_and_resumed(host: OneHost, ops_server: OpsServer) -> None:
    with ops_server.client() as client:
        item_id = host.submit(client, "mslow-00003")
    first = host.worker()
    until(host.downloading)

    first.send_signal(signal.SIGTERM)
    said, _ = first.communicate(timeout=20)

    assert said.strip() == "handed back"
    assert host.queue.depths()["inbox"] == 1
    assert host.run() == "result"
    assert (host.queue.find(item_id) or (None, {}))[1]["attempt"] == 1
    assert_done(host, item_id)


@pytest.mark.parametrize("died_at", ["downloaded", "verified", "placed"])
def test_21_a_death_before_the_finish_makes_no_second_file(
    host: OneHost, ops_server: OpsServer, died_at: str
) -> None:
    with ops_server.client() as client:
        item_id = host.submit(client, "ok-00000021")

    host.run("--die-at", died_at, "--lease-ms", "300")
    host.stalled_comes_back()

    assert host.run() == "result"
    assert_done(host, item_id)


def test_22_a_death_after_the_finish_changes_nothing(host: OneHost, ops_server: OpsServer) -> None:
    with ops_server.client() as client:
        item_id = host.submit(client, "ok-00000022")

    host.run("--die-at", "finished", "--lease-ms", "300")

    assert sweep(host.queue).returned == 0
    assert_done(host, item_id)


def test_24_a_full_disk_hands_the_job_back_and_this_host_claims_it_no_more(
    host: OneHost, ops_server: OpsServer
) -> None:
    with ops_server.client() as client:
        item_id = host.submit(client, "ok-00000024")
    host.settings.staging_dir.parent.mkdir(parents=True, exist_ok=True)
    host.settings.staging_dir.symlink_to("/proc/1")  # nothing can be written there, not even by root

    said = host.run()

    assert said == "handed back"
    assert host.queue.claim(1, host="here").records == []
    (record,) = host.queue.claim(1, host="elsewhere").records
    assert (record["id"], record["attempt"]) == (item_id, 1)
    assert "here" in record["released_because"]
