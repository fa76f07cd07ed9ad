"""Infos in a real Redis: found again, and ended with their media URLs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from include.ytdlp_ops.codes import Outcome
from include.ytdlp_ops.errors import BadInput, DownloadFailed
from include.ytdlp_ops.storage.info_store import KEEP_SECONDS, InfoStore, open_info_store
from tests.servers import Valkey

INFO = {"id": "dQw4w9WgXcQ", "title": "Ünïcode", "formats": []}


@pytest.fixture(params=[False, True], ids=["bytes", "text"])
def client(valkey: Valkey, request: pytest.FixtureRequest) -> Iterator[Any]:
    with valkey.client(decode_responses=request.param) as client:
        client.flushall()
        yield client


@pytest.fixture
def store(client: Any) -> InfoStore:
    return open_info_store("redis:", redis=client)


def test_an_info_comes_back_with_its_proxy(store: InfoStore) -> None:
    uri = store.put("youtube:dQw4w9WgXcQ", INFO, proxy="http://egress1:1", expires_at=None)

    stored = store.get(uri)

    assert uri == "redis:ytdlp_ops:info:youtube:dQw4w9WgXcQ"
    assert (stored.info, stored.proxy) == (INFO, "http://egress1:1")


@pytest.mark.parametrize(
    ("expires_in", "ttl"),
    [(None, KEEP_SECONDS + 600), (3600, 3600 + 600), (-9999, 600), (1e30, KEEP_SECONDS + 600)],
    ids=["unknown", "an hour", "past", "absurd"],
)
def test_an_info_ends_a_little_after_its_media_urls(
    store: InfoStore, client: Any, expires_in: float | None, ttl: int
) -> None:
    expires_at = None if expires_in is None else time.time() + expires_in

    store.put("x", INFO, proxy=None, expires_at=expires_at)

    assert client.ttl("ytdlp_ops:info:x") == pytest.approx(ttl, abs=5)


def test_a_deleted_info_is_gone_and_may_be_deleted_again(store: InfoStore) -> None:
    uri = store.put("x", INFO, proxy=None, expires_at=None)

    store.delete(uri)
    store.delete(uri)

    with pytest.raises(DownloadFailed, match="is gone") as failed:
        store.get(uri)
    assert failed.value.outcome is Outcome.RETRY


@pytest.mark.parametrize(
    "uri", ["redis:queue2_auth_inbox", "redis:", "ytdlp_ops:info:x", "file:///etc/passwd", ""]
)
def test_no_other_key_can_be_reached(store: InfoStore, client: Any, uri: str) -> None:
    client.set("queue2_auth_inbox", "kept")

    for call in (store.get, store.delete):
        with pytest.raises(BadInput, match="not in the info store"):
            call(uri)

    assert client.exists("queue2_auth_inbox") == 1
