"""Files of the management DAGs: in object storage that answers over loopback, and on this host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow.sdk.io import attach

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.hooks.exchange_files import files_for
from include.ytdlp_ops.settings import Settings

NAME = "s3://exchange@bucket/exports/all.jsonl"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(work_dir=tmp_path)


@pytest.fixture
def storage() -> Iterator[None]:
    """moto's server, known to Airflow as the storage of the connection ``exchange``."""
    from moto.server import ThreadedMotoServer
    from s3fs import S3FileSystem  # type: ignore[import-untyped]  # it has no types

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    store = S3FileSystem(key="test", secret="test", endpoint_url=endpoint, skip_instance_cache=True)
    store.mkdir("bucket")
    attach("s3", conn_id="exchange", fs=store)
    yield
    server.stop()


@pytest.mark.usefixtures("storage")
def test_what_is_written_to_object_storage_is_read_again_and_never_overwritten(settings: Settings) -> None:
    files = files_for(NAME, settings)
    with files.create(NAME) as stream:
        stream.write(b"line\n")

    with files.open(NAME) as stream:
        read = stream.read()

    assert (read, files.address(NAME)) == (b"line\n", NAME)
    with pytest.raises(BadInput, match="exists"):
        files.create(NAME)


@pytest.mark.parametrize("name", ["file:///etc/passwd", "local:///etc/passwd", "memory://x"])
def test_a_uri_never_reaches_this_host(settings: Settings, name: str) -> None:
    with pytest.raises(BadInput, match="bare name"):
        files_for(name, settings).open(name)


def test_a_bare_name_lies_in_the_exchange_directory(settings: Settings, tmp_path: Path) -> None:
    with files_for("x.csv", settings).create("x.csv") as stream:
        stream.write(b"a")

    assert (tmp_path / "exchange" / "x.csv").read_bytes() == b"a"
