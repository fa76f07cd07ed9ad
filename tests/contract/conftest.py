"""
The server that keeps the contract: ours at the offline site, or with ``OPS_SERVER_URL`` anybody's.

``OPS_SERVER_TOKEN`` is its bearer token; ``OPS_SERVER_TEST_URL`` a video that it can extract and
``OPS_SERVER_TEST_LIST`` a list of three videos or more, where the defaults do not suit. One egress of it is
banned for a moment, and returned.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx  # noqa: TID253 -- a test's module, no DAG file imports it
import pytest

from tests.offline_youtube.server import OfflineYouTube
from tests.ops_servers import GOOD, TOKEN, start

A_VIDEO = "https://www.youtube.com/watch?v=jNQXAC9IVRw"
A_LIST = "https://www.youtube.com/@jawed/videos"
OFFLINE_LIST = "https://www.youtube.com/playlist?list=PLofflineofflineofflineoffline-7"


@dataclass(frozen=True)
class Target:
    """Where the server is, and what it can be asked for."""

    url: str
    token: str = field(repr=False)
    video: str
    list_url: str

    def ask(self, method: str, path: str, body: Any = None, **how: Any) -> httpx.Response:
        """One request with the token."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.request(method, f"{self.url}{path}", json=body, headers=headers, timeout=120, **how)


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The server that is tested."""
    if url := os.environ.get("OPS_SERVER_URL"):
        video = os.environ.get("OPS_SERVER_TEST_URL", A_VIDEO)
        listed = os.environ.get("OPS_SERVER_TEST_LIST", A_LIST)
        yield Target(url.rstrip("/"), os.environ.get("OPS_SERVER_TOKEN", ""), video, listed)
        return
    with OfflineYouTube(tmp_path_factory.getbasetemp() / "offline-youtube") as site:
        server = start(site, tmp_path_factory.mktemp("contract"), ("good1", "good2"))
        yield Target(server.url, TOKEN, GOOD, OFFLINE_LIST)
        server.stop()
