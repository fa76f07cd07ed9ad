"""What the DAG files share: the schedule and parameters of a dispatcher, the parameters of a worker."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Asset, AssetOrTimeSchedule, AssetWatcher, CronTriggerTimetable, Param

from include.ytdlp_ops.queues.keys import QueueKeys
from include.ytdlp_ops.triggers.inbox import InboxTrigger

OWNER = "ytdlp-ops"
START = datetime(2024, 1, 1, tzinfo=UTC)
MAX_IN_FLIGHT = 16
ALL_OF_THEM = 1024
"""The limit of runs that Airflow keeps; the dispatcher's `max_in_flight` is the one that counts."""

_QUEUE_BASE = Param(
    None,
    type=["null", "string"],
    pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}$",
    title="Queue base",
    description="The installation, if not the default one: what its Redis keys begin with.",
)


def woken_by_inbox(stage: str) -> AssetOrTimeSchedule:
    """Runs when the stage's inbox has work, and every minute as a safety net."""
    inbox = QueueKeys.of(stage).inbox
    watcher = AssetWatcher(name=f"{inbox}_watcher", trigger=InboxTrigger(stage=stage, max_in_flight=MAX_IN_FLIGHT))
    return AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("* * * * *", timezone="UTC"),
        assets=[Asset(name=inbox, uri=f"ytdlp-ops://inbox/{inbox}", watchers=[watcher])],
    )


def dispatcher_params() -> dict[str, Param]:
    """What a person may set when triggering a dispatcher by hand."""
    return {
        "batch": Param(
            64,
            type="integer",
            minimum=1,
            maximum=500,
            title="Batch",
            description="Most items claimed in one run.",
        ),
        "max_in_flight": Param(
            MAX_IN_FLIGHT,
            type="integer",
            minimum=1,
            maximum=ALL_OF_THEM,
            title="Most in flight",
            description="No claim while so many items are in progress.",
        ),
        "queue_base": _QUEUE_BASE,
    }


def worker_params(url: bool = True) -> dict[str, Param]:
    """What a dispatcher gives a worker run, or a person who triggers it by hand."""
    params = {
        "id": Param(None, type=["null", "string"], title="Item id", description="Given by the dispatcher."),
        "token": Param(
            None,
            type=["null", "string"],
            maxLength=64,
            title="Claim token",
            description="Given by the dispatcher.",
        ),
        "queue_base": _QUEUE_BASE,
    }
    if url:
        params["url"] = Param(
            None,
            type=["null", "string"],
            maxLength=2048,
            title="URL",
            description="By hand: a URL or YouTube id to work on now; empty for the next one that waits.",
        )
    return params


def sweeping_params() -> dict[str, Param]:
    """What a person may set when triggering the sweeper by hand."""
    return {
        "max_attempts": Param(
            5,
            type="integer",
            minimum=1,
            maximum=100,
            title="Most attempts",
            description="Then it fails for good.",
        ),
        "queue_base": _QUEUE_BASE,
    }


def queues_params() -> dict[str, Param]:
    """The form of the management DAG."""
    return {
        "action": Param("inspect", enum=["inspect", "requeue"], title="Action"),
        "stage": Param("auth", enum=["v01", "auth", "dl", "publish"], title="Stage", description="For requeue."),
        "source": Param(
            "fail", enum=["fail", "skipped", "deferred", "result"], title="From", description="For requeue."
        ),
        "limit": Param(1000, type="integer", minimum=1, title="Limit", description="Most items to requeue."),
        "dry_run": Param(
            True, type="boolean", title="Dry run", description="Say what would be moved, and move nothing."
        ),
        "queue_base": _QUEUE_BASE,
    }


def worker_defaults() -> dict[str, Any]:
    """Airflow never repeats an item: attempts belong to the queue."""
    return {"retries": 0, "owner": OWNER}
