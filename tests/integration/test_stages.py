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
from include.ytdlp_ops.downloading.profile_files import load_profiles
from include.ytdlp_ops.downloading.verifying import sha256
from include.ytdlp_ops.errors import Refusal
from include.ytdlp_ops.ops_server.client import OpsServerClient
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.reading import pages
from include.ytdlp_ops.queues.records import Record
from include.ytdlp_ops.queues.recovery import requeue, sweep
from include.ytdlp_ops.settings import Settings
from include.ytdlp_ops.stages.auth import run_auth
from include.ytdlp_ops.stages.dl import run_dl
from include.ytdlp_ops.stages.publish import open_without_connection, run_publish
from include.ytdlp_ops.stages.running import Ended, RunningItem
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
            staging_dir=home / "staging",
            work_dir=home / "work",
            info_store=f"file://{home}/infos",
            formats="299+140",
            ca_file=site.bundle_file,
            reserve_bytes=0,
        )
        self.home = home
        self.store = open_info_store(self.settings.info_store)
        self.server = server
        self.profiles = load_profiles(None)
        self.auth, self.dl, self.publish, self.v01 = (
            Queue(client, stage) for stage in (Stage.AUTH, Stage.DL, Stage.PUBLISH, Stage.V01)
        )

    def next_auth(self) -> Ended:
        def work(item: RunningItem) -> Ended:
            return run_auth(
                item, server=self.server, store=self.store, settings=self.settings, profiles=self.profiles
            )

        return self._next(self.auth, work)

    def next_dl(self) -> Ended:
        return self._next(
            self.dl,
            lambda item: run_dl(item, store=self.store, settings=self.settings, profiles=self.profiles),
        )

    def next_publish(self) -> Ended:
        return self._next(self.publish, self._published)

    def publish_in_place(self, ended: Ended) -> Ended:
        assert ended.publishes is not None
        record = ended.publishes
        return work_on(self.publish, record["id"], record["token"], self._published, runner=Runner(host="here"))

    def next_v01(self) -> Ended:
        def work(item: RunningItem) -> Ended:
            return run_v01(
                item,
                server=self.server,
                settings=self.settings,
                profiles=self.profiles,
                opener=open_without_connection,
            )

        return self._next(self.v01, work)

    def _published(self, item: RunningItem) -> Ended:
        return run_publish(
            item,
            store=self.store,
            settings=self.settings,
            profiles=self.profiles,
            opener=open_without_connection,
        )

    def files(self) -> list[Path]:
        return sorted(path for path in self.settings.output_dir.rglob("*") if path.is_file())

    def staged(self) -> list[Path]:
        return sorted(path for path in self.settings.staging_dir.rglob("*") if path.is_file())

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
        for egress in ("good1", "good2"):
            server.reset(egress)  # an earlier test's refusals cooled them down
        yield Host(redis_client, site, server, tmp_path)


def record_of(queue: Queue, item_id: str, place: Place) -> Record:
    found = queue.find(item_id)
    assert found is not None
    assert found[0] == place, (found[0], found[1].get("code"), found[1].get("message"), found[1].get("warnings"))
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
    assert [stat.S_IMODE(path.stat().st_mode) for path in host.infos()] == [0o600] * 3


def test_a_job_becomes_a_verified_file_and_its_info_is_deleted(host: Host, site: OfflineYouTube) -> None:
    host.auth.submit(["ok-00000001"])
    host.next_auth()

    host.next_dl()
    host.next_dl()

    for format_id, codec in (("299", "video_codec"), ("140", "audio_codec")):
        record = record_of(host.dl, f"youtube:ok-00000001:{format_id}", Place.RESULT)
        path = Path(record["path"])
        assert path.parent == host.settings.staging_dir
        assert path.stat().st_size == record["bytes"]
        assert sha256(path) == record["sha256"]
        assert record[codec]
        assert record["duration"] == pytest.approx(4, abs=0.1)
    assert len(host.infos()) == 1, "the video's own, for publish"
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
        ("only18-0001", Place.FAIL, Code.LOW_QUALITY),
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
    assert host.files() == host.staged() == []


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
    assert [str(path) for path in host.files()] == [record["path"]]
    assert sha256(host.files()[0]) == record["sha256"]
    assert (record["video_codec"], record["audio_codec"]) == ("h264", "aac")
    assert host.staged() == []
    assert host.auth.client.keys("queue*") == []


def test_a_url_asked_for_again_is_already_done(host: Host, site: OfflineYouTube) -> None:
    host.v01.submit(["ok-00000002"])
    host.next_v01()
    asked = len(site.log)

    answers = host.v01.submit(["https://youtu.be/ok-00000002"])

    assert answers == ["already_done"]
    assert len(site.log) == asked


# -- the join, and publish ---------------------------------------------------------------------------------------


def archived(host: Host, video_id: str = "ok-00000001") -> Ended:
    """A video up to the end of its last format."""
    host.auth.submit([video_id])
    host.next_auth()
    host.next_dl()
    return host.next_dl()


def test_the_last_format_publishes_the_video_in_the_same_run(host: Host) -> None:
    ended = archived(host)

    host.publish_in_place(ended)

    record = record_of(host.publish, watch("ok-00000001"), Place.RESULT)
    assert [str(path) for path in host.files()] == [record["path"]]
    assert Path(record["path"]).suffix == ".mp4"
    assert sha256(Path(record["path"])) == record["sha256"]
    assert (record["video_codec"], record["audio_codec"]) == ("h264", "aac")
    assert record["duration"] == pytest.approx(4, abs=0.2)
    assert host.staged() == host.infos() == []
    assert host.auth.client.hlen(host.auth.keys.groups) == 0


def test_only_the_last_format_completes_the_group(host: Host) -> None:
    host.auth.submit(["ok-00000001"])
    host.next_auth()

    first = host.next_dl()

    assert first.publishes is None
    assert host.auth.client.hlen(host.auth.keys.groups) == 1


def test_a_publisher_that_dies_leaves_its_video_to_the_stage(host: Host) -> None:
    archived(host)
    host.publish.client.zadd(host.publish.keys.leases, {watch("ok-00000001"): 1})

    assert sweep(host.publish).returned == 1
    host.next_publish()

    assert record_of(host.publish, watch("ok-00000001"), Place.RESULT)["attempt"] == 2
    assert len(host.files()) == 1


def test_a_format_that_can_not_be_had_keeps_its_video_from_being_published(host: Host) -> None:
    ended = archived(host, "m410-000001")

    host.publish_in_place(ended) if ended.publishes else host.next_publish()

    record = record_of(host.publish, watch("m410-000001"), Place.FAIL)
    assert (record["code"], record["retryable"]) == (Code.INCOMPLETE, False)
    assert {each["code"] for each in record["missing"]} == {Code.MEDIA_GONE}
    assert host.files() == []


def test_a_dead_format_ends_the_wait_for_it(host: Host) -> None:
    host.auth.submit(["ok-00000001"])
    host.next_auth()
    host.next_dl()
    (record,) = host.dl.claim(1).records
    host.dl.client.zadd(host.dl.keys.leases, {record["id"]: 1})

    assert sweep(host.dl, max_attempts=1).dead == 1

    assert host.publish.depths()["inbox"] == 1
    host.next_publish()
    assert record_of(host.publish, watch("ok-00000001"), Place.FAIL)["code"] == Code.INCOMPLETE


def test_a_cancelled_format_ends_the_wait_for_it(host: Host) -> None:
    host.auth.submit(["ok-00000001"])
    host.next_auth()
    host.next_dl()

    host.dl.cancel("youtube:ok-00000001:140")

    assert host.publish.depths()["inbox"] == 1


def test_a_dead_format_that_is_requeued_completes_its_video_after_all(host: Host) -> None:
    host.auth.submit(["ok-00000001"])
    host.next_auth()
    host.next_dl()
    (claimed,) = host.dl.claim(1).records
    host.dl.client.zadd(host.dl.keys.leases, {claimed["id"]: 1})
    sweep(host.dl, max_attempts=1)
    host.next_publish()

    failed = [pair for page in pages(host.dl, Place.FAIL) for pair in page]
    assert requeue(host.dl, Place.FAIL, failed) == 1
    host.next_auth()
    ended = host.next_dl()
    host.publish_in_place(ended) if ended.publishes else host.next_publish()

    record = record_of(host.publish, watch("ok-00000001"), Place.RESULT)
    assert (record["video_codec"], record["audio_codec"]) == ("h264", "aac")
    assert len(host.files()) == 1


def test_a_refresh_that_auth_refuses_ends_the_wait(host: Host) -> None:
    host.auth.submit(["expired-001"])
    host.next_auth()
    host.next_dl()
    host.next_dl()
    failed = [pair for page in pages(host.dl, Place.FAIL) for pair in page]
    requeue(host.dl, Place.FAIL, failed)
    (record,) = host.auth.claim(1).records

    work_on(
        host.auth,
        record["id"],
        record["token"],
        lambda item: item.refused(Refusal(Code.PRIVATE, "private now")),
        runner=Runner(host="here"),
    )

    assert host.publish.depths()["inbox"] == 1
    host.next_publish()
    assert record_of(host.publish, watch("expired-001"), Place.FAIL)["code"] == Code.INCOMPLETE


def test_files_gone_from_staging_are_fetched_again(host: Host) -> None:
    ended = archived(host)
    for path in host.staged():
        path.unlink()

    host.publish_in_place(ended)
    host.next_auth()
    host.next_dl()
    host.next_dl()
    host.next_publish()

    assert record_of(host.publish, watch("ok-00000001"), Place.RESULT)["sha256"] == sha256(host.files()[0])


def test_another_format_of_a_published_video_is_published_too(host: Host) -> None:
    host.publish_in_place(archived(host))
    host.auth.submit(['{"url": "ok-00000001", "formats": "251"}'])

    host.next_auth()
    ended = host.next_dl()
    host.publish_in_place(ended) if ended.publishes else host.next_publish()

    assert [path.suffix for path in host.files()] == [".mp4", ".webm"]


def test_a_profile_chooses_formats_container_and_sidecars(host: Host) -> None:
    host.settings = host.settings.model_copy(update={"formats": None})
    host.auth.submit(['{"url": "ok-00000001", "profile": "audio-m4a"}'])
    host.next_auth()

    host.publish_in_place(host.next_dl())

    record = record_of(host.publish, watch("ok-00000001"), Place.RESULT)
    assert (record["video_codec"], record["audio_codec"]) == (None, "aac")
    assert Path(record["path"]).suffix == ".m4a"


def test_an_unknown_profile_is_told_with_those_that_there_are(host: Host) -> None:
    host.auth.submit(['{"url": "ok-00000001", "profile": "nonsense"}'])

    host.next_auth()

    record = record_of(host.auth, watch("ok-00000001"), Place.FAIL)
    assert (record["code"], record["retryable"]) == (Code.BAD_INPUT, False)
    assert "nonsense" in record["message"]
    assert "audio-m4a" in record["message"]
