"""What dead attempts left on a host, beside a real queue: it goes away by itself, and nothing that lives."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from include.ytdlp_ops.downloading.directories import directory_for
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.settings import Settings
from include.ytdlp_ops.stages.cleaning import OLD_SECONDS, clean_leftovers
from include.ytdlp_ops.storage.info_store import InfoStore, open_info_store


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "work").mkdir()
    return Settings(work_dir=tmp_path / "work", info_store=(tmp_path / "infos").as_uri())


def stored(store: InfoStore, name: str, *, ended_seconds_ago: float | None) -> str:
    at = None if ended_seconds_ago is None else time.time() - ended_seconds_ago
    return store.put(name, {"id": name}, proxy=None, expires_at=at)


def test_infos_that_a_killed_auth_left_go_a_day_after_their_media_urls(queue: Queue, settings: Settings) -> None:
    store = open_info_store(settings.info_store)
    left = stored(store, "left", ended_seconds_ago=OLD_SECONDS + 60)
    waiting = stored(store, "waiting", ended_seconds_ago=OLD_SECONDS - 60)
    video = stored(store, "video", ended_seconds_ago=None)

    clean_leftovers(queue, settings)

    kept = {path.as_uri() for path in Path(settings.info_store.removeprefix("file://")).iterdir()}
    assert kept == {waiting, video}
    assert left not in kept


def test_it_is_done_once_an_hour_whoever_asks(queue: Queue, settings: Settings) -> None:
    store = open_info_store(settings.info_store)
    clean_leftovers(queue, settings)
    uri = stored(store, "left", ended_seconds_ago=2 * OLD_SECONDS)

    clean_leftovers(queue, settings)
    assert store.get(uri).info == {"id": "left"}

    os.utime(settings.work_dir / ".cleaned", (0, 0))
    clean_leftovers(queue, settings)
    assert list((settings.work_dir.parent / "infos").iterdir()) == []


def test_a_store_that_cant_be_cleaned_does_not_keep_the_work_directory_from_it(
    queue: Queue, settings: Settings
) -> None:
    (settings.work_dir.parent / "infos").write_text("in the way")
    old = directory_for(settings.work_dir, "item", "dead")
    os.utime(old, (0, 0))

    removed = clean_leftovers(queue, settings)

    assert removed == 1
    assert not old.exists()
