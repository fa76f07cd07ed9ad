"""Media URLs that end in mid-download: what the server lets finish, and what it refuses to go on with."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.profile_files import load_profiles
from include.ytdlp_ops.downloading.profiles import Profiles
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.recovery import sweep
from tests.offline_youtube import OfflineYouTube
from tests.pipeline import Pipeline, files_in
from tests.queueing import make_due

pytestmark = pytest.mark.slow  # it has to wait for the end of a URL

TTL_SECONDS = 3


@pytest.fixture(scope="module")
def youtube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfflineYouTube]:
    """A site whose media URLs live for three seconds."""
    with OfflineYouTube(tmp_path_factory.getbasetemp() / "offline-youtube", ttl=TTL_SECONDS) as site:
        yield site


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Profiles:
    file = tmp_path_factory.mktemp("profiles") / "profiles.yaml"
    kinds = {"slow": {"formats": "299", "rate_limit": "48k"}, "quick": {"formats": "299"}}
    file.write_text(json.dumps({"profiles": kinds}))  # JSON is YAML
    return load_profiles(file)


def test_a_download_that_the_server_lets_finish_is_finished(pipeline: Pipeline) -> None:
    pipeline.extract("ok-00000001", profile="slow")

    ended = pipeline.download()

    record = pipeline.record(pipeline.dl, "youtube:ok-00000001:299")
    assert ended.place is Place.RESULT
    assert time.time() > record["expires_at"]
    assert len([entry for entry in pipeline.site.log if "media" in entry]) == 1


def test_a_download_that_is_refused_goes_back_through_auth_and_keeps_its_bytes(pipeline: Pipeline) -> None:
    pipeline.extract("mcut-000001", profile="slow")  # each answer stops half-way, so it has to ask again
    pipeline.download()
    refused = pipeline.record(pipeline.dl, "youtube:mcut-000001:299")
    (part,) = (path for path in files_in(pipeline.settings.work_dir) if path.suffix == ".part")
    kept = part.stat().st_size
    make_due(pipeline.dl)
    sweep(pipeline.dl)
    pipeline.site.reset()

    unyoutube = {**pipeline.profiles.profiles, "slow": pipeline.profiles.profiles["quick"]}
    pipeline.profiles = pipeline.profiles.model_copy(update={"profiles": unyoutube})
    pipeline.extract_next()
    ended = pipeline.download()

    asked = [entry["range"] for entry in pipeline.site.log if "media" in entry]
    assert (refused["place"], refused["code"], refused["retryable"]) == (Place.FAIL, Code.URL_EXPIRED, True)
    assert kept > 100_000
    assert asked[0].startswith(f"bytes={kept}-")
    assert ended.place is Place.RESULT
