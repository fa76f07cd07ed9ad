"""Media URLs that end in mid-download: what the server lets finish, and what it refuses to go on with."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.profile_files import load_profiles
from include.ytdlp_ops.downloading.profiles import Profiles
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.recovery import sweep
from tests.offline_youtube import OfflineYouTube
from tests.ops_servers import OpsServer, start
from tests.pipeline import Pipeline, files_in
from tests.queueing import make_due

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.slow  # it has to wait for the end of a URL

TTL_SECONDS = 3


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfflineYouTube]:
    """A site whose media URLs live for three seconds."""
    with OfflineYouTube(tmp_path_factory.getbasetemp() / "offline-youtube", ttl=TTL_SECONDS) as site:
        yield site


@pytest.fixture(scope="module")
def server(hurried: OfflineYouTube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpsServer]:
    server = start(hurried, tmp_path_factory.mktemp("server"), ("good1",))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Profiles:
    file = tmp_path_factory.mktemp("profiles") / "profiles.yaml"
    kinds = {"slow": {"formats": "299", "rate_limit": "48k"}, "quick": {"formats": "299"}}
    file.write_text(json.dumps({"profiles": kinds}))  # JSON is YAML
    return load_profiles(file)


@pytest.fixture
def host(
    redis_client: Redis, hurried: OfflineYouTube, server: OpsServer, profiles: Profiles, tmp_path: Path
) -> Iterator[Pipeline]:
    hurried.reset()
    with server.client() as client:
        yield Pipeline(redis_client, hurried, client, tmp_path / "host", profiles)


def test_a_download_that_the_server_lets_finish_is_finished(host: Pipeline) -> None:
    host.extract("ok-00000001", profile="slow")

    ended = host.download()

    record = host.record(host.dl, "youtube:ok-00000001:299")
    assert ended.place is Place.RESULT
    assert time.time() > record["expires_at"]
    assert len([entry for entry in host.site.log if "media" in entry]) == 1


def test_a_download_that_is_refused_goes_back_through_auth_and_keeps_its_bytes(host: Pipeline) -> None:
    host.extract("mcut-000001", profile="slow")  # each answer stops half-way, so it has to ask again
    host.download()
    refused = host.record(host.dl, "youtube:mcut-000001:299")
    (part,) = (path for path in files_in(host.settings.work_dir) if path.suffix == ".part")
    kept = part.stat().st_size
    make_due(host.dl)
    sweep(host.dl)
    host.site.reset()

    unhurried = {**host.profiles.profiles, "slow": host.profiles.profiles["quick"]}
    host.profiles = host.profiles.model_copy(update={"profiles": unhurried})
    host.extract_next()
    ended = host.download()

    asked = [entry["range"] for entry in host.site.log if "media" in entry]
    assert (refused["place"], refused["code"], refused["retryable"]) == (Place.FAIL, Code.URL_EXPIRED, True)
    assert kept > 100_000
    assert asked[0].startswith(f"bytes={kept}-")
    assert ended.place is Place.RESULT
