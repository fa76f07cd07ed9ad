"""From an Airflow connection to the ops server."""

from __future__ import annotations

from airflow.sdk import BaseHook

from include.ytdlp_ops.ops_server.client import OpsServerClient

DEFAULT_OPS_SERVER_CONN_ID = "ytdlp_ops_server"


class OpsServerHook(BaseHook):
    """
    A client of the ops server; the connection's password is the bearer token.

    The extra may hold ``timeout_seconds`` and ``connect_timeout_seconds``.

    :param ops_server_conn_id: a connection of type http.
    """

    conn_type = "http"

    def __init__(self, ops_server_conn_id: str = DEFAULT_OPS_SERVER_CONN_ID) -> None:
        super().__init__()
        self.ops_server_conn_id = ops_server_conn_id

    def get_conn(self) -> OpsServerClient:
        """A client; it asks once and never repeats a request by itself."""
        connection = self.get_connection(self.ops_server_conn_id)
        extra = connection.extra_dejson
        scheme = connection.schema or "http"
        port = f":{connection.port}" if connection.port else ""
        return OpsServerClient(
            f"{scheme}://{connection.host}{port}",
            connection.password,
            timeout_seconds=float(extra.get("timeout_seconds", 90)),
            connect_timeout_seconds=float(extra.get("connect_timeout_seconds", 5)),
        )
