"""The triggers that wake a dispatcher and the sweeper, on a real Valkey."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.triggers.due import DueTrigger
from include.ytdlp_ops.triggers.inbox import InboxTrigger
from include.ytdlp_ops.triggers.looking import LookingTrigger
from tests.servers import Valkey

if TYPE_CHECKING:
    from redis import Redis


@pytest.fixture
def queue(redis_client: Redis, valkey: Valkey, monkeypatch: pytest.MonkeyPatch) -> Queue:
    monkeypatch.setenv("AIRFLOW_CONN_YTDLP_OPS_REDIS", f"redis://127.0.0.1:{valkey.port}/0")
    return Queue(redis_client, Stage.AUTH)


def events_within(seconds: float, trigger: LookingTrigger) -> list[dict[str, Any]]:
    """What it says in a short time."""
    said: list[dict[str, Any]] = []

    async def listen() -> None:
        async for event in trigger.run():
            said.append(event.payload)  # noqa: PERF401 - what came is kept when time runs out

    async def bounded() -> None:
        try:
            await asyncio.wait_for(listen(), seconds)
        except TimeoutError:
            return

    asyncio.run(bounded())
    return said


def test_an_inbox_with_work_wakes_once_and_loses_nothing(queue: Queue) -> None:
    queue.submit(["dQw4w9WgXcQ", "aaaaaaaaaaa"])

    said = events_within(0.5, InboxTrigger(stage="auth", poll_seconds=0.02))

    assert said == [{"stage": "auth", "waiting": 2}]
    assert queue.depths()["inbox"] == 2


def test_an_empty_inbox_wakes_nobody(queue: Queue) -> None:
    assert events_within(0.3, InboxTrigger(stage="auth", poll_seconds=0.02)) == []


def test_no_room_no_wake_up(queue: Queue) -> None:
    queue.submit(["dQw4w9WgXcQ", "aaaaaaaaaaa"])
    queue.claim(1)

    assert events_within(0.3, InboxTrigger(stage="auth", max_in_flight=1, poll_seconds=0.02)) == []


def test_it_wakes_again_when_the_dispatcher_has_claimed(queue: Queue) -> None:
    queue.submit(["dQw4w9WgXcQ"])
    trigger = InboxTrigger(stage="auth", poll_seconds=0.02)
    events_within(0.3, trigger)

    queue.client.delete(queue.keys.wake)

    assert len(events_within(0.3, trigger)) == 1


def test_an_outage_of_redis_is_waited_out(queue: Queue, valkey: Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_YTDLP_OPS_REDIS", "redis://127.0.0.1:1/0")

    assert events_within(0.5, InboxTrigger(stage="auth")) == []


def test_the_triggerer_can_make_it_again() -> None:
    trigger = InboxTrigger(stage="dl", queue_base="mine", max_in_flight=3)

    path, arguments = trigger.serialize()

    assert path == "include.ytdlp_ops.triggers.inbox.InboxTrigger"
    assert InboxTrigger(**arguments).serialize() == (path, arguments)


def test_a_lease_that_is_over_wakes_the_sweeper_once(queue: Queue) -> None:
    queue.submit(["dQw4w9WgXcQ"])
    queue.claim(1, lease_ms=300)
    trigger = DueTrigger(stages=("auth", "dl"), poll_seconds=0.02)

    assert events_within(1.0, trigger) == [{"stages": ["auth"]}]
    assert queue.depths()["progress"] == 1


def test_an_item_whose_time_has_come_wakes_the_sweeper(queue: Queue) -> None:
    queue.submit(["dQw4w9WgXcQ"])
    (record,) = queue.claim(1).records
    begun = queue.begin(record["id"], record["token"], host="here")
    queue.finish(begun, Place.FAIL, {"code": "network"}, due_in_ms=1)

    assert events_within(0.5, DueTrigger(stages=("auth",), poll_seconds=0.02)) == [{"stages": ["auth"]}]


def test_what_is_not_due_yet_wakes_nobody(queue: Queue) -> None:
    queue.submit(["dQw4w9WgXcQ"])
    queue.claim(1)

    assert events_within(0.3, DueTrigger(stages=("auth", "dl"), poll_seconds=0.02)) == []
