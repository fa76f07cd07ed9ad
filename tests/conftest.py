"""Fixtures for every test that needs a real server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.servers import Valkey

if TYPE_CHECKING:
    from redis import Redis

    from include.ytdlp_ops.queues.queue import Queue


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    """One Valkey for the whole session; tests that stop or misconfigure one start their own."""
    with Valkey(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture
def redis_client(valkey: Valkey) -> Iterator[Redis]:
    """A client of the session's Valkey, emptied first."""
    from include.ytdlp_ops.queues.connecting import address_of, connect

    client = connect(address_of(valkey.url))
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def queue(redis_client: Redis) -> Queue:
    """The stage auth on the session's Valkey, emptied; a step that can't be done fails at once."""
    from include.ytdlp_ops.queues.queue import Queue

    return Queue(redis_client, "auth", patience_seconds=0, finish_patience_seconds=0)
