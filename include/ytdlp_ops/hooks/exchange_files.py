"""Files that management DAGs write and read: in a directory of the host, or in object storage."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from include.ytdlp_ops.errors import BadInput

if TYPE_CHECKING:
    from include.ytdlp_ops.queues.asking import Files
    from include.ytdlp_ops.settings import Settings

DIRECTORY = "exchange"


class StorageFiles:
    """Files in object storage, each named by its whole URI: ``s3://CONNECTION@BUCKET/KEY``."""

    def create(self, name: str) -> IO[bytes]:
        """See `asking.Files`."""
        path = self._path(name)
        if path.exists():
            raise BadInput(f"file {name!r} exists; give another name")
        stream: IO[bytes] = path.open("wb")
        return stream

    def open(self, name: str) -> IO[bytes]:
        """See `asking.Files`."""
        path = self._path(name)
        if not path.exists():
            raise BadInput(f"file {name!r} does not exist; give the URI that the export told")
        stream: IO[bytes] = path.open("rb")
        return stream

    def address(self, name: str) -> str:
        """See `asking.Files`."""
        return name

    def _path(self, name: str):  # type: ignore[no-untyped-def]  # ObjectStoragePath is untyped
        from airflow.sdk import ObjectStoragePath

        if name.startswith(("file:", "local:", "memory:")):
            raise BadInput(f"file {name!r}: for a file on this host give its bare name")
        return ObjectStoragePath(name)


def files_for(name: str, settings: Settings) -> Files:
    """Where a file of this name lies: object storage if it is a URI, else ``<work_dir>/exchange``."""
    from include.ytdlp_ops.queues.asking import LocalFiles

    return StorageFiles() if "://" in name else LocalFiles(settings.work_dir / DIRECTORY)
