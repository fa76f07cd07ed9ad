"""From an Airflow connection to the ledger's database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

if TYPE_CHECKING:
    import sqlalchemy as sa

DEFAULT_LEDGER_CONN_ID = "ytdlp_ops_ledger"
_DRIVERS = {"postgres": "postgresql+psycopg2", "mysql": "mysql+pymysql", "sqlite": "sqlite"}


class LedgerHook(BaseHook):
    """
    Opens the ledger of a connection.

    The connection's extra may hold options of the driver, like ``sslmode``.

    :param ledger_conn_id: a connection of type postgres, mysql or sqlite.
    """

    conn_type = "postgres"

    def __init__(self, ledger_conn_id: str = DEFAULT_LEDGER_CONN_ID) -> None:
        super().__init__()
        self.ledger_conn_id = ledger_conn_id

    def get_engine(self) -> sa.Engine:
        """
        The ledger, its tables made or brought up to date.

        :raises AirflowNotFoundException: if there is no such connection.
        :raises ConfigurationError: if it can't be used; the message says why.
        """
        from include.ytdlp_ops.ledger.connecting import migrate, open_engine

        engine = open_engine(url_of_connection(self.get_connection(self.ledger_conn_id)))
        migrate(engine)
        return engine


def url_of_connection(connection: Any) -> sa.URL:
    """The database that an Airflow connection names."""
    import sqlalchemy as sa

    from include.ytdlp_ops.errors import ConfigurationError

    driver = _DRIVERS.get(connection.conn_type)
    if driver is None:
        raise ConfigurationError(
            f"connection {connection.conn_id!r} is of type {connection.conn_type!r}; "
            f"the ledger takes {', '.join(_DRIVERS)}"
        )
    options = {name: str(value) for name, value in connection.extra_dejson.items()}
    if driver == "sqlite":
        return sa.URL.create(driver, database=connection.schema or connection.host, query=options)
    host: str | None = connection.host or "127.0.0.1"
    if host and host.startswith("/"):  # the directory of a Unix socket
        options["host"], host = host, None
    return sa.URL.create(
        driver,
        username=connection.login or None,
        password=connection.password or None,
        host=host,
        port=connection.port or None,
        database=connection.schema or "ytdlp_ops",
        query=options,
    )
