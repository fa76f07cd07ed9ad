"""One host with all stages, the offline YouTube and an ops server of its own process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from include.ytdlp_ops.downloading.profile_files import load_profiles
from include.ytdlp_ops.downloading.profiles import Profiles
from tests.offline_youtube import OfflineYouTube
from tests.offline_youtube.media import made_once
from tests.offline_youtube.shapes import make_segments
from tests.ops_servers import OpsServer, start
from tests.pipeline import Pipeline

if TYPE_CHECKING:
    from redis import Redis


@pytest.fixture(scope="module")
def youtube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfflineYouTube]:
    """The site, with the files that all modules share."""
    with OfflineYouTube(tmp_path_factory.getbasetemp() / "offline-youtube") as site:
        yield site


@pytest.fixture(scope="module")
def youtube_server(youtube: OfflineYouTube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpsServer]:
    """An ops server with one egress."""
    server = start(youtube, tmp_path_factory.mktemp("server"), ("good1",))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def segments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """HLS with AES-128 and DASH, in files; `MediaSite` serves them."""
    return made_once(tmp_path_factory.getbasetemp() / "segments", make_segments)


@pytest.fixture(scope="module")
def profiles() -> Profiles:
    """The built-in ones; a module may have its own."""
    return load_profiles(None)


@pytest.fixture
def pipeline(
    redis_client: Redis, youtube: OfflineYouTube, youtube_server: OpsServer, profiles: Profiles, tmp_path: Path
) -> Iterator[Pipeline]:
    """A host with nothing on it, and a site that was asked nothing."""
    youtube.reset()
    with youtube_server.client() as server:
        yield Pipeline(redis_client, youtube, server, tmp_path / "host", profiles)
