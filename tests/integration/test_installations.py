"""v01 beside v02, and several installations in one Redis: none touches another's keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from include.ytdlp_ops.models import PublishItem
from include.ytdlp_ops.queues.asking import LocalFiles, Request
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.managing import perform
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.recovery import sweep, trim
from tests.queueing import everything, format_job, url_of

if TYPE_CHECKING:
    from redis import Redis

V02 = (Stage.AUTH, Stage.DL, Stage.PUBLISH)


def element(queue: Queue, number: int) -> str:
    """One of many items that the stage takes."""
    if queue.stage is Stage.DL:
        return format_job(str(number)).to_inbox()
    return publish_item(url_of(number)).to_inbox() if queue.stage is Stage.PUBLISH else url_of(number)


def publish_item(url: str) -> PublishItem:
    return PublishItem(url=url, jobs=["youtube:x:18"], extractor="youtube", video_id="x")


def a_day(queue: Queue, client: Redis, directory: Path) -> None:
    """Every step of the queue, and every action of an operator."""
    queue.submit([element(queue, number) for number in range(12)])
    first, second, third, fourth, fifth, sixth = (
        queue.begin(record["id"], record["token"], host="here") for record in queue.claim(6).records
    )
    queue.heartbeat(first)
    queue.finish(first, Place.RESULT, {"path": "/x"})
    queue.finish(second, Place.SKIPPED, {"code": "private"})
    queue.finish(third, Place.FAIL, {"code": "network", "retryable": True}, due_in_ms=0)
    queue.finish(fourth, Place.DEFERRED, {"code": "upcoming", "outcome": "defer"}, due_in_ms=0)
    queue.finish(fifth, Place.FAIL, {"code": "bot_check", "retryable": False})
    queue.release(sixth)
    queue.client.zadd(queue.keys.leases, {record["id"]: 1 for record in queue.claim(2).records})
    sweep(queue)
    trim(queue, Place.RESULT, older_than_ms=-1)
    base = None if queue.keys.queue_base in ("video_queue", "queue2") else queue.keys.queue_base
    fields = {"stage": queue.stage, "queue_base": base, "dry_run": False, "confirm": queue.keys.skipped}
    for action, more in (
        ("inspect", {}), ("list", {}), ("requeue", {}), ("cancel", {"source": "inbox", "limit": 1}),
        ("move", {"source": "skipped", "target": "fail"}), ("clear", {"source": "skipped"}), ("export", {}),
        ("pause", {}), ("resume", {}), ("doctor", {}),
    ):  # fmt: skip
        perform(client, Request.of({"action": action, **fields, **more}), LocalFiles(directory))


def keys_of(client: Redis) -> set[bytes]:
    return set(everything(client))


@pytest.fixture
def touched(redis_client: Redis, tmp_path: Path) -> Callable[..., set[bytes]]:
    """What a day of some stages leaves behind: the names of all keys."""

    def live(*stages: Stage, queue_base: str | None = None) -> set[bytes]:
        before = everything(redis_client)
        for stage in stages:
            a_day(Queue(redis_client, stage, queue_base=queue_base), redis_client, tmp_path)
        after = everything(redis_client)
        assert {key: dump for key, dump in after.items() if key in before} == before
        return after.keys() - before.keys()

    return live


def test_v01_and_v02_beside_each_other_never_touch_the_others_keys(touched: Callable[..., set[bytes]]) -> None:
    of_v02 = touched(*V02)
    of_v01 = touched(Stage.V01)  # fails if it changes one of v02's

    assert of_v01
    assert all(key.startswith(b"video_queue_") for key in of_v01)
    assert all(key.startswith((b"queue2_", b"queue_dl_format_tasks")) for key in of_v02)


def test_a_queue_base_makes_an_installation_of_its_own(touched: Callable[..., set[bytes]]) -> None:
    default = touched(Stage.V01, *V02)
    mine = touched(*V02, queue_base="mine")
    yours = touched(Stage.V01, queue_base="yours")

    assert all(key.startswith(b"mine_") for key in mine)
    assert all(key.startswith(b"yours_") for key in yours)
    assert not default & (mine | yours)


def test_v01_and_v02_share_no_key_under_one_base() -> None:
    from include.ytdlp_ops.queues.exporting import KINDS, key_named
    from include.ytdlp_ops.queues.keys import QueueKeys

    shared = ("groups", "limits")  # of the installation
    names = [
        key_named(QueueKeys.of(stage, "one"), name) for stage in Stage for name in KINDS if name not in shared
    ]

    assert len(names) == len(set(names))
