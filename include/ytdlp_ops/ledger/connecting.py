"""The ledger's database: an engine that keeps UTC and shows no values in errors, and its tables up to date."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from include.ytdlp_ops.errors import ConfigurationError

log = logging.getLogger(__name__)
HEAD = "0002"
VERSION_TABLE = "ytdlp_ledger_version"  # the database may be Airflow's own, which has an alembic_version
_LOCK = 7_305_011_402  # any number that nobody else locks by
_OLDEST = {"mysql": (8, 0, 13), "mariadb": (10, 6), "postgresql": (12,), "sqlite": (3, 35)}
"""SKIP LOCKED, defaults that are expressions, window functions."""


def open_engine(url: str | sa.URL) -> sa.Engine:
    """
    An engine for the ledger.

    :raises ConfigurationError: for no URL, a driver that is missing, a database that is away or too old.
    """
    try:
        parsed = sa.make_url(url)
        engine = sa.create_engine(parsed, hide_parameters=True, pool_pre_ping=True)
    except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ImportError) as error:
        raise ConfigurationError(
            f"the ledger's address is no database URL that can be opened ({error}); "
            "write postgresql+psycopg2://USER:PASSWORD@HOST/DB, mysql+pymysql://… or sqlite:////path"
        ) from None
    if engine.dialect.name not in ("postgresql", "mysql", "sqlite"):
        raise ConfigurationError(
            f"the ledger runs on PostgreSQL, MySQL, MariaDB or SQLite, not {engine.dialect.name}"
        )
    if engine.dialect.name == "sqlite":
        _make_sqlite_serial(engine)
    if engine.dialect.name == "mysql":
        sa.event.listen(engine, "connect", _set_session_of_mysql)
    _refuse_old(engine)
    return engine


def migrate(engine: sa.Engine) -> bool:
    """
    Bring the ledger's tables up to date; safe when several do it at once.

    :returns: whether anything was to be done.
    :raises ConfigurationError: if the tables are newer than this code.
    """
    if current_version(engine) == HEAD:
        return False
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with engine.connect() as connection, _alone(connection):
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise ConfigurationError(f"the ledger's tables are newer than ytdlp-ops: {error}; update it") from None
        connection.commit()
    log.info("the ledger's tables are at version %s", HEAD)
    return True


def current_version(engine: sa.Engine) -> str | None:
    """The version of the tables; nothing where there are none."""
    if not sa.inspect(engine).has_table(VERSION_TABLE):
        return None
    with engine.connect() as connection:
        return connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608 - a constant


@contextmanager
def _alone(connection: sa.Connection) -> Iterator[None]:
    """No other migration runs meanwhile; the lock ends with the session, however that ends."""
    kind = connection.dialect.name
    take, give = {
        "postgresql": (f"SELECT pg_advisory_lock({_LOCK})", f"SELECT pg_advisory_unlock({_LOCK})"),
        "mysql": (f"SELECT GET_LOCK('{_LOCK}', 60)", f"SELECT RELEASE_LOCK('{_LOCK}')"),
    }.get(kind, ("SELECT 1", "SELECT 1"))
    connection.execute(sa.text(take))
    connection.commit()
    try:
        yield
    finally:
        connection.rollback()
        connection.execute(sa.text(give))
        connection.commit()


def _refuse_old(engine: sa.Engine) -> None:
    try:
        with engine.connect() as connection:
            version = connection.dialect.server_version_info or ()
            name = "mariadb" if getattr(connection.dialect, "is_mariadb", False) else engine.dialect.name
    except sa.exc.SQLAlchemyError as error:
        raise ConfigurationError(
            f"the ledger's database {engine.url.render_as_string()} does not answer: {error.__cause__ or error}; "
            "check the connection ytdlp_ops_ledger"
        ) from None
    if tuple(version) < _OLDEST[name]:
        text, oldest = ".".join(map(str, version)), ".".join(map(str, _OLDEST[name]))
        raise ConfigurationError(f"the ledger's database is {name} {text}; {oldest} or newer is needed")


def _make_sqlite_serial(engine: sa.Engine) -> None:
    """A transaction locks the file when it begins: SQLite has no rows to lock."""

    @sa.event.listens_for(engine, "connect")
    def _no_begin(connection: Any, _: object) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA busy_timeout = 30000")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _set_session_of_mysql(connection: Any, _: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION time_zone = '+00:00'")
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
