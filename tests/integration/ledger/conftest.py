"""The ledger on each of its databases, one server of each for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import sqlalchemy as sa

from include.ytdlp_ops.ledger.connecting import migrate, open_engine
from include.ytdlp_ops.ledger.schema import metadata
from tests.databases import mariadb, postgres

SERVERS = {"postgres": postgres, "mariadb": mariadb}


@pytest.fixture(scope="session", params=["sqlite", "postgres", pytest.param("mariadb", marks=pytest.mark.slow)])
def ledger_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database with the ledger's tables."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path_factory.mktemp('ledger')}/ledger.db"
        else:
            url = stack.enter_context(SERVERS[request.param]())
        engine = open_engine(url)
        migrate(engine)
        engine.dispose()
        yield url


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[sa.Engine]:
    """The database, emptied."""
    engine = open_engine(ledger_url)
    with engine.begin() as connection:
        for table in metadata.sorted_tables:
            connection.execute(sa.delete(table))
    yield engine
    engine.dispose()
