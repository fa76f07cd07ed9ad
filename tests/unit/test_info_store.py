"""Infos are credentials: kept, found again, and shown to nobody."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import BadInput, ConfigurationError, DownloadFailed
from include.ytdlp_ops.storage.info_store import KEEP_SECONDS, FileInfoStore, InfoStore, open_info_store

INFO = {"id": "dQw4w9WgXcQ", "title": "Ünïcode", "formats": [{"format_id": "18", "url": "https://h/?sig=SECRET"}]}
PROXY = "http://user:PASSWORD@egress1:3128"


@pytest.fixture
def store(tmp_path: Path) -> InfoStore:
    return open_info_store((tmp_path / "the infos").as_uri())


def put(store: InfoStore, info: dict[str, Any] = INFO, name: str = "youtube:dQw4w9WgXcQ") -> str:
    return store.put(name, info, proxy=PROXY, expires_at=None)


def path_of(uri: str) -> Path:
    return Path(uri.removeprefix("file://").replace("%20", " "))


def test_an_info_comes_back_with_its_proxy(store: InfoStore) -> None:
    stored = store.get(put(store))

    assert stored.info == INFO
    assert stored.proxy == PROXY


def test_what_lies_in_the_file_is_a_loadable_info_json(store: InfoStore) -> None:
    content = json.loads(path_of(put(store)).read_text(encoding="utf-8"))

    assert content == {**INFO, "ytdlp_ops": {"proxy": PROXY}}


def test_an_infos_own_proxy_is_not_believed(store: InfoStore) -> None:
    uri = put(store, {**INFO, "ytdlp_ops": {"proxy": "http://theirs:1"}})

    assert store.get(uri).proxy == PROXY


def test_only_the_owner_can_read_an_info(store: InfoStore) -> None:
    path = path_of(put(store))

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_stored_info_shows_nothing_of_itself(store: InfoStore) -> None:
    assert repr(store.get(put(store))) == "StoredInfo()"


def test_the_same_name_is_written_over_and_leaves_nothing_beside(store: InfoStore) -> None:
    first, second = put(store), put(store, {**INFO, "title": "new"})

    assert first == second
    assert store.get(second).info["title"] == "new"
    assert [path.name for path in path_of(first).parent.iterdir()] == [path_of(first).name]


def test_a_deleted_info_is_gone_and_may_be_deleted_again(store: InfoStore) -> None:
    uri = put(store)

    store.delete(uri)
    store.delete(uri)

    with pytest.raises(DownloadFailed, match="is gone") as failed:
        store.get(uri)
    assert (failed.value.code, failed.value.outcome) == (Code.LOCAL_INPUT, Outcome.RETRY)


def test_a_store_that_is_not_there_is_the_hosts_trouble(store: InfoStore) -> None:
    uri = put(store)
    path_of(uri).unlink()
    path_of(uri).parent.rmdir()

    with pytest.raises(DownloadFailed, match=r"info store .* is not there") as failed:
        store.get(uri)

    assert failed.value.outcome is Outcome.OPERATOR


@pytest.mark.parametrize(
    "content", [b"", b'{"id": "SECRET', b"[]", b'{"id": "x"}', b'{"ytdlp_ops": "SECRET"}', b"\xff"]
)
def test_a_damaged_info_is_extracted_again_and_not_shown(store: InfoStore, content: bytes) -> None:
    uri = put(store)
    path_of(uri).write_bytes(content)

    with pytest.raises(DownloadFailed, match="is damaged") as failed:
        store.get(uri)

    assert failed.value.outcome is Outcome.RETRY
    assert "SECRET" not in str(failed.value)


@pytest.mark.parametrize("call", ["get", "delete"])
@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd", "{store}/../{name}", "{store}/%2e%2e/{name}", "{store}/../../../etc/passwd",
        "{store}/", "{store}", "{store}/sub/{name}", "{name}", "http://host/{name}", "redis:ytdlp_ops:info:x", "",
        "{store}/{name}?x",
    ],
)  # fmt: skip
def test_a_uri_that_leads_elsewhere_is_refused(store: InfoStore, call: str, uri: str) -> None:
    base, name = put(store).rsplit("/", 1)

    with pytest.raises(BadInput, match="not in the info store"):
        getattr(store, call)(uri.format(store=base, name=name))


def test_a_link_in_the_store_is_not_followed(store: InfoStore, tmp_path: Path) -> None:
    path = path_of(uri := put(store))
    (tmp_path / "elsewhere").write_text('{"id": "x", "ytdlp_ops": {"proxy": null}}')
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(DownloadFailed) as failed:
        store.get(uri)

    assert failed.value.code is Code.LOCAL_IO


def test_trimmed_is_only_what_is_ours_and_ended_long_ago(store: InfoStore) -> None:
    now = time.time()
    ended, ending, ends = (
        store.put(name, INFO, proxy=PROXY, expires_at=now + seconds)
        for name, seconds in (("ended", -7200), ("ending", -60), ("ends", 3600))
    )
    directory = path_of(ended).parent
    for name in (".new-halfway", "notes.txt"):
        (directory / name).touch()
        os.utime(directory / name, (0, now - 7200))

    trimmed = store.trim(3600)

    assert trimmed == 2
    left = {path.name for path in directory.iterdir()}
    assert left == {path_of(ending).name, path_of(ends).name, "notes.txt"}


def test_an_info_without_an_end_outlasts_a_long_backlog(store: InfoStore) -> None:
    uri = put(store)

    assert store.trim(-KEEP_SECONDS + 60) == 0
    assert store.get(uri).info == INFO
    assert store.trim(-KEEP_SECONDS - 60) == 1


@pytest.mark.parametrize("expires_at", [1e30, -1e30, float("inf"), float("nan")])
def test_an_end_that_is_none_is_no_harm(store: InfoStore, expires_at: float) -> None:
    uri = store.put("odd", INFO, proxy=None, expires_at=expires_at)

    assert store.get(uri).info == INFO


def test_a_store_that_cant_be_looked_into_is_named(tmp_path: Path) -> None:
    (tmp_path / "infos").write_text("in the way")

    with pytest.raises(DownloadFailed, match="infos' can't be cleaned") as failed:
        FileInfoStore(tmp_path / "infos").trim(0)

    assert failed.value.code is Code.LOCAL_IO


def test_a_store_that_never_held_anything_has_nothing_to_trim(tmp_path: Path) -> None:
    assert FileInfoStore(tmp_path / "none").trim(0) == 0


def test_an_info_that_is_no_json_is_refused_without_its_text(store: InfoStore) -> None:
    with pytest.raises(BadInput, match="keep a sanitised one") as refused:
        put(store, {"id": "x", "cookies": {b"SECRET"}})

    assert "SECRET" not in str(refused.value)


def test_an_info_of_more_than_16_mb_is_refused(store: InfoStore) -> None:
    with pytest.raises(BadInput, match="16777216 may be kept"):
        put(store, {"id": "x" * (16 << 20)})


@pytest.mark.parametrize(
    "uri", ["s3://bucket/infos", "/srv/infos", "file://host/dir", "file:relative", "redis:x", ""]
)
def test_an_unknown_store_is_told_with_what_there_is(uri: str) -> None:
    with pytest.raises(ConfigurationError, match=r"'file:///an/absolute/directory' or 'redis:'"):
        open_info_store(uri)


def test_a_redis_store_needs_a_client() -> None:
    with pytest.raises(ConfigurationError, match="no Redis client"):
        open_info_store("redis:")
