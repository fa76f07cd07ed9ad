"""Lives through the stages, from a real extraction on: recorded, put off or skipped, as their profile says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading import live as live_module
from include.ytdlp_ops.downloading.profile_files import load_profiles
from include.ytdlp_ops.downloading.profiles import Profiles
from include.ytdlp_ops.downloading.verifying import sha256
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.stages.publish import open_without_connection
from include.ytdlp_ops.stages.running import Ended, RunningItem
from include.ytdlp_ops.stages.v01 import run_v01
from include.ytdlp_ops.stages.working import Runner, work_on
from tests.live_streams import Live, is_on
from tests.media_site import MediaSite
from tests.offline_youtube import OfflineYouTube
from tests.ops_servers import OpsServer
from tests.pipeline import Pipeline, files_in

if TYPE_CHECKING:
    from redis import Redis


@pytest.fixture
def site(segments: Path) -> Iterator[MediaSite]:
    with MediaSite(segments) as site:
        yield site


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Profiles:
    file = tmp_path_factory.mktemp("profiles") / "profiles.yaml"
    kinds = {kind: {"formats": "bv*+ba/b", "live": kind} for kind in ("record", "skip", "defer")}
    file.write_text(json.dumps({"profiles": kinds}))  # JSON is YAML
    return load_profiles(file)


@pytest.fixture(scope="module")
def server(youtube: OfflineYouTube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpsServer]:
    """One that takes any site, and one's own network."""
    folder, taken = tmp_path_factory.mktemp("any-site"), {"extractors": ["generic"], "allow_private_targets": True}
    server = OpsServer(folder, {"direct": None}, youtube.bundle_file, **taken)
    yield server
    server.stop()


@pytest.fixture
def host(
    redis_client: Redis, youtube: OfflineYouTube, server: OpsServer, profiles: Profiles, tmp_path: Path
) -> Iterator[Pipeline]:
    with server.client() as client:
        pipeline = Pipeline(redis_client, youtube, client, tmp_path / "host", profiles)
        pipeline.settings = pipeline.settings.model_copy(update={"allow_private_targets": True})
        yield pipeline


def test_a_live_is_recorded_to_its_end_and_published(host: Pipeline, site: MediaSite) -> None:
    url = is_on(site, Live())

    record = host.archive(url, profile="record")

    path = Path(record["path"])
    assert (record["place"], record.get("partial")) == (Place.RESULT, None)
    assert record["duration"] == pytest.approx(8, abs=0.2)
    assert record["video_codec"] == "h264"
    assert sha256(path) == record["sha256"]
    assert files_in(host.settings.staging_dir) == files_in(host.home / "infos") == []


def test_a_job_that_records_does_not_expire(host: Pipeline, site: MediaSite) -> None:
    url = f"{is_on(site, Live())}?expire=1700000000"

    record = host.extract(url, profile="record")

    (job,) = record["jobs"]
    assert host.record(host.auth, record["id"])["expires_at"] is not None
    (element,) = host.dl.client.lrange(host.dl.keys.inbox, 0, -1)  # type: ignore[misc]  # typed as awaitable too
    assert json.loads(element).get("expires_at") is None
    assert host.download().place is Place.RESULT
    assert host.record(host.dl, job)["duration"] == pytest.approx(8, abs=0.2)


def test_what_is_published_of_a_live_that_went_away_says_that_it_is_partial(
    host: Pipeline, site: MediaSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "PATIENCE_SECONDS", 0.5)
    url = is_on(site, Live(first=1000, window=3, listed=4, ends=False))

    record = host.archive(url, profile="record")

    assert record["place"] == Place.RESULT
    assert record["partial"].startswith("its beginning had gone from the playlist; nothing new came for")


@pytest.mark.parametrize(
    ("profile", "place", "code"), [("skip", Place.SKIPPED, Code.IS_LIVE), ("defer", Place.DEFERRED, Code.UPCOMING)]
)
def test_a_live_that_shall_not_be_recorded_is_not(
    host: Pipeline, site: MediaSite, profile: str, place: Place, code: Code
) -> None:
    url = is_on(site, Live())

    record = host.extract(url, profile=profile)

    assert (record["place"], record["code"]) == (place, code)


@pytest.mark.parametrize(
    ("video_id", "profile", "place"),
    [
        ("upcoming-01", "record", Place.DEFERRED),
        ("upcoming-01", "defer", Place.DEFERRED),
        ("upcoming-01", "skip", Place.SKIPPED),
        ("premiere-01", "skip", Place.DEFERRED),
        ("process-001", "skip", Place.DEFERRED),
        ("ended2-0001", "skip", Place.DEFERRED),
    ],
)
def test_a_live_to_come_is_waited_for_unless_lives_are_skipped(
    pipeline: Pipeline, video_id: str, profile: str, place: Place
) -> None:
    record = pipeline.extract(video_id, profile=profile)

    assert (record["place"], record["code"]) == (place, Code.UPCOMING)


def archived_at_once(host: Pipeline, url: str) -> dict[str, Any]:
    """By the stage v01."""
    queue = Queue(host.dl.client, "v01")
    queue.submit([json.dumps({"url": url, "profile": "record"})])
    (record,) = queue.claim(1).records

    def work(item: RunningItem) -> Ended:
        return run_v01(
            item,
            server=host.server,
            settings=host.settings,
            profiles=host.profiles,
            opener=open_without_connection,
        )

    work_on(queue, record["id"], record["token"], work, runner=Runner(host="here"))
    return host.record(queue, record["id"])


def test_v01_records_too(host: Pipeline, site: MediaSite) -> None:
    record = archived_at_once(host, is_on(site, Live()))

    assert record["place"] == Place.RESULT
    assert record["duration"] == pytest.approx(8, abs=0.2)


def test_v01_does_not_record_picture_and_sound_one_after_the_other(host: Pipeline, site: MediaSite) -> None:
    picture = '#EXT-X-STREAM-INF:BANDWIDTH=1000,CODECS="avc1.4d401f,mp4a.40.2",AUDIO="sound"\nlive.m3u8\n'
    sound = '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="sound",NAME="en",LANGUAGE="en",URI="sound.m3u8"\n'
    is_on(site, Live(), "live.m3u8")
    is_on(site, Live(), "sound.m3u8")
    site.made["master.m3u8"] = lambda: f"#EXTM3U\n{sound}{picture}"

    record = archived_at_once(host, site.url("master.m3u8"))

    assert (record["place"], record["code"]) == (Place.SKIPPED, Code.FORMAT_MISSING)
    assert "give it to the stage auth" in record["message"]
