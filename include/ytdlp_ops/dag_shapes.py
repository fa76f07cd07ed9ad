"""What the DAG files share: the schedule and parameters of a dispatcher, the parameters of a worker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Asset, AssetOrTimeSchedule, AssetWatcher, CronTriggerTimetable, Param

from include.ytdlp_ops.queues.keys import QueueKeys, Stage
from include.ytdlp_ops.triggers.due import DueTrigger
from include.ytdlp_ops.triggers.inbox import InboxTrigger

OWNER = "ytdlp-ops"
START = datetime(2024, 1, 1, tzinfo=UTC)
MAX_IN_FLIGHT = 16
ALL_OF_THEM = 1024
"""
The limit of runs that Airflow keeps; the dispatcher's `max_in_flight` is the one that counts.

Not of tasks: there Airflow's `[core] max_active_tasks_per_dag` (16) keeps slots free for other DAGs.
"""

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
    return _woken_by(Asset(name=inbox, uri=f"ytdlp-ops://inbox/{inbox}", watchers=[watcher]))


def woken_by_due_times() -> AssetOrTimeSchedule:
    """Runs when a lease is over or an item's time has come, and every minute as a safety net."""
    watcher = AssetWatcher(name="due_watcher", trigger=DueTrigger(stages=[stage.value for stage in Stage]))
    return _woken_by(Asset(name="ytdlp_ops_due", uri="ytdlp-ops://due", watchers=[watcher]))


def _woken_by(asset: Asset) -> AssetOrTimeSchedule:
    return AssetOrTimeSchedule(timetable=CronTriggerTimetable("* * * * *", timezone="UTC"), assets=[asset])


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
    """The form of the management DAG: the fields of `queues.asking.Request`."""
    looking = ["inspect", "list", "show"]
    changing = ["requeue", "cancel", "move", "clear", "export", "import", "pause", "resume", "doctor"]
    places = ["inbox", "progress", "result", "fail", "skipped", "deferred"]
    return {
        "action": Param("inspect", enum=[*looking, *changing], title="Action"),
        "stage": Param("all", enum=["all", "v01", "auth", "dl", "publish"], title="Stage"),
        "source": Param("fail", enum=places, title="Where the items are"),
        "target": Param("skipped", enum=["result", "fail", "skipped"], title="To", description="For move."),
        "item": _text("Item", "For show and cancel: a URL, a YouTube id or an item id.", 2048),
        **_filter_params(),
        "limit": Param(
            1000, type="integer", minimum=1, title="Limit", description="Most items to list or to change."
        ),
        "cursor": Param(
            "0", type="string", pattern="^[0-9]+$", title="Cursor", description="For list: where the last ended."
        ),
        "file": _text("File", "Of list, clear, export, import: a bare name, or a URI of object storage.", 1024),
        "file_format": Param("jsonl", enum=["jsonl", "csv"], title="File format", description="Of list."),
        "confirm": _text("Confirm", "For clear: the name of the key that is to be emptied."),
        "because": _text("Because", "Kept with what is cancelled, moved or paused."),
        "dry_run": Param(
            True, type="boolean", title="Dry run", description="Say what would be done, and change nothing."
        ),
        "queue_base": _QUEUE_BASE,
    }


def _filter_params() -> dict[str, Param]:
    return {
        "code": _text("Code", "Filter: the record's code, like bot_check."),
        "reason": _text("Reason", "Filter: text in the record's reason or message."),
        "url_pattern": _text("URL pattern", "Filter: a regular expression that is found in the URL or id.", 500),
        "host": _text("Host", "Filter: who worked on it."),
        "egress": _text("Egress", "Filter: the egress that it used."),
        "tag": _text("Tag", "Filter: one of its tags."),
        "older_than_hours": _hours("Older than (hours)", "Filter: its last step was longer ago."),
        "newer_than_hours": _hours("Newer than (hours)", "Filter: its last step was not as long ago."),
    }


def _text(title: str, description: str, longest: int = 200) -> Param:
    return Param(None, type=["null", "string"], maxLength=longest, title=title, description=description)


def _hours(title: str, description: str) -> Param:
    return Param(None, type=["null", "number"], minimum=0, title=title, description=description)


def ops_server_params() -> dict[str, Param]:
    """The form of the ops server's management DAG."""
    return {
        "action": Param("list", enum=["list", "ban", "unban", "reset", "test"], title="Action"),
        "kind": Param("egress", enum=["egress", "account"], title="Of what"),
        "name": Param(
            None, type=["null", "string"], maxLength=64, title="Name", description="Which one; not for list."
        ),
        "reason": Param(
            None, type=["null", "string"], maxLength=128, title="Reason", description="Of a ban, for people."
        ),
        "url": Param(
            None, type=["null", "string"], maxLength=2048, title="URL", description="For test: what to extract."
        ),
    }


def ledger_params() -> dict[str, Param]:
    """The form of the ledger's DAG."""
    reports = ["throughput", "times", "failures", "retries", "destinations", "jobs"]
    return {
        "action": Param("archive", enum=["archive", "report"], title="Action"),
        "keep_hours": Param(
            168,
            type="number",
            minimum=1,
            title="Keep in Redis (hours)",
            description="Of an older result Redis keeps only that it is done; an older skip it forgets.",
        ),
        "retention_days": Param(
            None,
            type=["null", "number"],
            minimum=1,
            title="Keep in SQL (days)",
            description="Older rows are deleted; empty: none.",
        ),
        "everything": Param(
            False,
            type="boolean",
            title="Look at everything",
            description="Also at what was archived before: after a loss in SQL.",
        ),
        "report": Param("all", enum=["all", *reports], title="Report"),
        "since_hours": Param(168, type="number", minimum=1, title="Report on the last (hours)"),
        "chart": Param(None, enum=[None, "png", "svg"], title="Picture", description="Of each report."),
        "queue_base": _QUEUE_BASE,
    }


def intake_params() -> dict[str, Param]:
    """The form of the intake."""
    return {
        "stage": Param("auth", enum=["auth", "v01"], title="Stage", description="Whose inbox rows go into."),
        "until": Param(
            "publish",
            enum=["dl", "publish"],
            title="Done after",
            description="The stage whose end is a row's end.",
        ),
        "most": Param(5000, type="integer", minimum=1, title="Most", description="Rows taken in one run."),
        "most_waiting": Param(
            100_000,
            type="integer",
            minimum=1,
            title="Most waiting",
            description="No row is taken while so many items wait in the inbox.",
        ),
        "queue_base": _QUEUE_BASE,
    }


def worker_defaults() -> dict[str, Any]:
    """Attempts belong to the queue, Airflow repeats none; what is cleared while it runs starts again soon."""
    return {"retries": 0, "retry_delay": timedelta(seconds=10), "owner": OWNER}
