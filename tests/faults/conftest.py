"""A server of one's own for each test, and seeds: ``SEEDS=20`` runs each seeded test with twenty."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from include.ytdlp_ops.queues.connecting import address_of, connect
from include.ytdlp_ops.queues.queue import Queue
from tests.servers import Valkey


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give every test with a `seed` as many seeds as were asked for."""
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(1, 1 + int(os.environ.get("SEEDS", "1"))))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Faults take real time: leases run out, servers come back. `make test-all` has them, `make test` has not."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Valkey]:
    """
    A server that may be killed, filled up and misconfigured.

    It syncs before it answers: with everysec, what it acknowledged while a sync was slow is gone with a kill -9.
    """
    with Valkey(tmp_path / "redis", appendfsync="always") as server:
        yield server


@pytest.fixture
def patient(server: Valkey) -> Iterator[Queue]:
    """The stage auth on that server, with the patience of a worker."""
    client = connect(address_of(server.url))
    yield Queue(client, "auth", patience_seconds=30, finish_patience_seconds=30)
    client.close()
