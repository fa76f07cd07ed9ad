"""The stages auth, dl and v01 with the real ops server, yt-dlp and Valkey, against the offline YouTube."""

from __future__ import annotations

import json
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.verifying import sha256
from include.ytdlp_ops.ops_server.client import OpsServerClient
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.records import Record
from include.ytdlp_ops.queues.recovery import sweep
from include.ytdlp_ops.settings import Settings
from include.ytdlp_ops.stages.auth import run_auth
from include.ytdlp_ops.stages.dl import run_dl
from include.ytdlp_ops.stages.running import Ended
from include.ytdlp_ops.stages.v01 import run_v01
from include.ytdlp_ops.stages.working import Runner, StageWork, work_on
from include.ytdlp_ops.storage.info_store import open_info_store
from tests.offline_youtube.server import OfflineYouTube
from tests.ops_servers import OpsServer, start
from tests.servers import free_port

if TYPE_CHECKING:
    from redis import Redis


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfflineYouTube]:
    with OfflineYouTube(tmp_path_factory.getbasetemp() / "offline-youtube") as site:
        yield site


@pytest.fixture(scope="module")
def ops_server(site: OfflineYouTube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpsServer]:
    server = start(site, tmp_path_factory.mktemp("server"), ("good1", "good2"))
    yield server
    server.stop()


class Host:
    """One host: its settings, its queues, and what its workers would do."""

    def __init__(self, client: Redis, site: OfflineYouTube, server: OpsServerClient, home: Path) -> None:
        self.settings = Settings(
            output_dir=home / "output",
            work_dir=home / "work",
            info_store=f"file://{home}/infos",
            formats="299+140",
            ca_file=site.bundle_file,
            reserve_bytes=0,
        )
        self.home = home
        self.store = open_info_store(self.settings.info_store)
        self.server = server
        self.auth, self.dl, self.v01 = (Queue(client, stage) for stage in (Stage.AUTH, Stage.DL, Stage.V01))

    def next_auth(self) -> Ended:
        return self._next(
            self.auth, lambda item: run_auth(item, server=self.server, store=self.store, settings=self.settings)
        )

    def next_dl(self) -> Ended:
        return self._next(self.dl, lambda item: run_dl(item, store=self.store, settings=self.settings))

    def next_v01(self) -> Ended:
        return self._next(self.v01, lambda item: run_v01(item, server=self.server, settings=self.settings))

    def jobs(self) -> list[Record]:
        return [json.loads(element) for element in self.dl.client.lrange(self.dl.keys.inbox, 0, -1)]  # type: ignore[union-attr]  # typed as awaitable too

    def infos(self) -> list[Path]:
        return [path for path in (self.home / "infos").rglob("*") if path.is_file()]

    def _next(self, queue: Queue, work: StageWork) -> Ended:
        (record,) = queue.claim(1).records
        return work_on(queue, record["id"], record["token"], work, runner=Runner(host="here"))


@pytest.fixture
def host(redis_client: Redis, site: OfflineYouTube, ops_server: OpsServer, tmp_path: Path) -> Iterator[Host]:
    site.reset()
    with ops_server.client() as server:
        yield Host(redis_client, site, server, tmp_path)


def record_of(queue: Queue, item_id: str, place: Place) -> Record:
    found = queue.find(item_id)
    assert found is not None
    assert found[0] == place, found
    return found[1]


def watch(video_id: str) -> str:
    return f"https://www.youtube.com/watch?v={video_id}"


def test_a_url_becomes_one_job_for_each_wanted_format(host: Host) -> None:
    host.auth.submit(['{"url": "ok-00000001", "tags": ["music"], "mine": {"kept": []}}'])

    host.next_auth()

    record = record_of(host.auth, watch("ok-00000001"), Place.RESULT)
    assert record["jobs"] == ["youtube:ok-00000001:299", "youtube:ok-00000001:140"]
    video, audio = host.jobs()
    assert (video["format_id"], audio["format_id"]) == ("299", "140")
    for job in (video, audio):
        assert job["tags"] == ["music"]
        assert job["mine"] == {"kept": []}
        assert job["egress"] in ("good1", "good2")
        assert job["group"] == watch("ok-00000001")
        assert job["bytes"] > 0
        assert job["expires_at"] > time.time()


def test_infos_are_credentials_and_stay_out_of_redis(host: Host) -> None:
    host.auth.submit(["ok-00000001"])

    host.next_auth()

    everything = b"".join(
        host.auth.client.dump(key) or b""  # type: ignore[misc]  # typed as awaitable too
        for key in host.auth.client.scan_iter()
    )
    assert b"googlevideo" not in everything
    assert b"127.0.0.1" not in everything
    assert [stat.S_IMODE(path.stat().st_mode) for path in host.infos()] == [0o600, 0o600]


def test_a_job_becomes_a_verified_file_and_its_info_is_deleted(host: Host, site: OfflineYouTube) -> None:
    host.auth.submit(["ok-00000001"])
    host.next_auth()

    host.next_dl()
    host.next_dl()

    for format_id, codec in (("299", "video_codec"), ("140", "audio_codec")):
        record = record_of(host.dl, f"youtube:ok-00000001:{format_id}", Place.RESULT)
        path = Path(record["path"])
        assert path.parent == host.settings.output_dir
        assert path.stat().st_size == record["bytes"]
        assert sha256(path) == record["sha256"]
        assert record[codec]
        assert record["duration"] == pytest.approx(4, abs=0.1)
    assert host.infos() == []
    assert [path for path in host.settings.work_dir.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("video_id", "place", "code"),
    [
        ("private-001", Place.SKIPPED, Code.PRIVATE),
        ("deleted-001", Place.SKIPPED, Code.REMOVED),
        ("bot-0000001", Place.FAIL, Code.BOT_CHECK),
        ("h429-000001", Place.FAIL, Code.HTTP_429),
        ("upcoming-01", Place.DEFERRED, Code.UPCOMING),
        ("live-000001", Place.DEFERRED, Code.UPCOMING),
        ("only18-0001", Place.SKIPPED, Code.FORMAT_MISSING),
    ],
)
def test_a_refused_url_ends_where_its_reason_says(host: Host, video_id: str, place: Place, code: Code) -> None:
    host.auth.submit([watch(video_id)])

    host.next_auth()

    record = record_of(host.auth, watch(video_id), place)
    assert record["code"] == code
    assert host.jobs() == []


@pytest.mark.parametrize(
    ("video_id", "place", "code"),
    [
        ("m404-000001", Place.SKIPPED, Code.MEDIA_GONE),
        ("m410-000001", Place.SKIPPED, Code.MEDIA_GONE),
        ("mhtml-00001", Place.FAIL, Code.BAD_MEDIA),
        ("mtrunc-0001", Place.FAIL, Code.BAD_MEDIA),
        ("mempty-0001", Place.FAIL, None),
        ("expired-001", Place.FAIL, Code.URL_EXPIRED),
    ],
)
def test_bytes_that_are_not_what_was_promised_are_never_placed(
    host: Host, video_id: str, place: Place, code: Code | None
) -> None:
    host.auth.submit([f'{{"url": "{video_id}", "formats": "140"}}'])
    host.next_auth()

    host.next_dl()

    record = record_of(host.dl, f"youtube:{video_id}:140", place)
    assert code is None or record["code"] == code
    assert not host.settings.output_dir.exists() or list(host.settings.output_dir.iterdir()) == []


def test_a_failed_format_goes_back_by_way_of_auth_for_itself_alone(host: Host) -> None:
    host.auth.submit(["expired-001"])
    host.next_auth()
    host.next_dl()
    host.next_dl()
    host.dl.client.zadd(host.dl.keys.due, {f"youtube:expired-001:{fmt}": 1 for fmt in ("299", "140")})

    sweep(host.dl)

    (element,) = host.auth.client.lrange(host.auth.keys.inbox, 0, -1)  # type: ignore[misc]  # typed as awaitable too
    back = json.loads(element)
    assert back["url"] == watch("expired-001")
    assert sorted(back["formats"].split(",")) == ["140", "299"]
    assert back["attempt"] == 2


def test_a_job_whose_info_is_gone_goes_back_to_auth(host: Host) -> None:
    host.auth.submit(["ok-00000001"])
    host.next_auth()
    for path in host.infos():
        path.unlink()

    host.next_dl()

    record = record_of(host.dl, "youtube:ok-00000001:299", Place.FAIL)
    assert record["retryable"] is True
    assert "is gone" in record["message"]


def test_a_job_that_points_outside_the_info_store_reads_nothing(host: Host) -> None:
    host.auth.submit(["ok-00000001"])
    host.next_auth()
    job = host.jobs()[0]
    host.dl.client.delete(host.dl.keys.inbox)
    host.dl.submit([json.dumps({**job, "info_json_path": "file:///etc/passwd"})])

    host.next_dl()

    found = host.dl.find(job["id"])
    assert found is not None
    assert found[0] == Place.FAIL
    assert found[1]["retryable"] is True
    assert "root:" not in json.dumps(found[1])


def test_an_ops_server_that_is_down_is_named_and_the_url_tried_again(host: Host) -> None:
    host.auth.submit(["ok-00000001"])
    port = free_port()
    host.server = OpsServerClient(f"http://127.0.0.1:{port}", "token")

    host.next_auth()
    host.server.close()

    record = record_of(host.auth, watch("ok-00000001"), Place.FAIL)
    assert record["code"] == Code.OPS_SERVER_UNAVAILABLE
    assert record["retryable"] is True
    assert f"127.0.0.1:{port}" in record["message"]


def test_v01_does_it_all_in_one_run(host: Host) -> None:
    host.v01.submit(["ok-00000002"])

    host.next_v01()

    record = record_of(host.v01, watch("ok-00000002"), Place.RESULT)
    assert [made["format_id"] for made in record["files"]] == ["299", "140"]
    assert all(sha256(Path(made["path"])) == made["sha256"] for made in record["files"])
    assert host.auth.client.keys("queue*") == []


def test_a_url_asked_for_again_is_already_done(host: Host, site: OfflineYouTube) -> None:
    host.v01.submit(["ok-00000002"])
    host.next_v01()
    asked = len(site.log)

    answers = host.v01.submit(["https://youtu.be/ok-00000002"])

    assert answers == ["already_done"]
    assert len(site.log) == asked
