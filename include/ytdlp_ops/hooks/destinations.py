"""From an Airflow connection to a destination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from include.ytdlp_ops.errors import ConfigurationError
from include.ytdlp_ops.storage.publishing.destinations import Place
from include.ytdlp_ops.storage.publishing.object_places import ObjectPlace

S3_PROVIDER = "apache-airflow-providers-amazon[s3fs]"


class DestinationHook(BaseHook):
    """
    Opens destinations with the credentials of a connection, by the file systems of Airflow's providers.

    Not by an ``ObjectStoragePath``: Airflow 3.3 gives it none of the options, and hides why it can't be opened.

    :param conn_id: a connection of the type that the destination's provider knows: ``aws`` for ``s3://``.
    """

    def __init__(self, conn_id: str) -> None:
        super().__init__()
        self.conn_id = conn_id

    def get_conn(self) -> Any:
        """
        The connection.

        :raises ConfigurationError: if there is none of that name; providers would go on without credentials.
        """
        try:
            return self.get_connection(self.conn_id)
        except AirflowNotFoundException:
            what = f"there is no Airflow connection {self.conn_id!r}; make it, or mend the destination's conn_id"
            raise ConfigurationError(what) from None

    def open(self, path: str, options: Mapping[str, Any] | None = None) -> Place:
        """
        The place that a URI names; of the store nothing is asked yet.

        :param options: what the provider's file system takes; of S3 these are botocore's, as ``read_timeout``.
        :raises ConfigurationError: names destination and connection; holds nothing of its fields.
        """
        from airflow.sdk.io import get_fs, has_fs

        protocol = path.rpartition("://")[0]
        failed = f"the destination {path!r} can't be opened by the connection {self.conn_id!r}"
        if not has_fs(protocol):
            wanted = f"its provider is not installed: for s3, pip install {S3_PROVIDER!r}"
            raise ConfigurationError(f"{failed}: {wanted}")
        try:
            self.get_conn()
            fs = get_fs(protocol, self.conn_id, dict(options or {}))
        except ConfigurationError as error:
            raise ConfigurationError(f"{failed}: {error}") from None
        except Exception as error:  # noqa: BLE001 - each provider has its own, and their texts may hold secrets
            what = f"{failed} ({type(error).__name__}); mend its fields, or the destination's options"
            raise ConfigurationError(what) from None
        return ObjectPlace(fs, fs._strip_protocol(path), protocol, self.conn_id)
