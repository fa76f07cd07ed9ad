"""The sweeper's and the management DAG's tasks on a real Valkey."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from include.ytdlp_ops.dag_shapes import ledger_params, queues_params
from include.ytdlp_ops.ledger.charts import FORMATS
from include.ytdlp_ops.ledger.reporting import REPORTS
from include.ytdlp_ops.operators.managing import ManageQueuesOperator
from include.ytdlp_ops.operators.recovering import SweepQueuesOperator
from include.ytdlp_ops.queues.asking import WHERE, Request
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.managing import ACTIONS
from include.ytdlp_ops.queues.queue import Queue
from tests.servers import Valkey

if TYPE_CHECKING:
    from redis import Redis

CONTEXT: Any = {}
URL = "https://www.youtube.com/watch?v=dQw4w9WgXcQ"


@pytest.fixture
def auth(redis_client: Redis, valkey: Valkey, monkeypatch: pytest.MonkeyPatch) -> Queue:
    monkeypatch.setenv("AIRFLOW_CONN_YTDLP_OPS_REDIS", f"redis://127.0.0.1:{valkey.port}/0")
    return Queue(redis_client, Stage.AUTH)


def manage(**fields: Any) -> dict[str, Any]:
    """Fill the form in and send it off."""
    form = {name: param.value for name, param in queues_params().items()}
    context: Any = {"params": {**form, "stage": "auth", **fields}}
    return ManageQueuesOperator(task_id="manage_queues").execute(context)


def failed(queue: Queue, element: str, **outcome: Any) -> None:
    queue.submit([element])
    (record,) = queue.claim(1).records
    begun = queue.begin(record["id"], record["token"], host="here")
    queue.finish(begun, Place.FAIL, {"code": "network", "retryable": False, **outcome})


def test_inspect_counts_every_key_of_every_stage(auth: Queue) -> None:
    auth.submit([URL])

    counted = manage(action="inspect", stage="all")

    assert set(counted) == {"v01", "auth", "dl", "publish"}
    assert counted["auth"]["places"]["inbox"]["depth"] == 1


def test_the_forms_offer_what_there_is() -> None:
    form, ledger = queues_params(), ledger_params()

    assert set(form) == set(Request.model_fields)
    assert form["action"].schema["enum"] == list(ACTIONS)
    assert form["source"].schema["enum"] == list(WHERE)
    assert ledger["report"].schema["enum"] == ["all", *REPORTS]
    assert ledger["chart"].schema["enum"] == [None, *FORMATS]


def test_a_requeue_is_a_dry_run_unless_told_otherwise(auth: Queue) -> None:
    failed(auth, URL)

    counted = manage(action="requeue")

    assert counted == {"dry_run": True, "requeue": 1, "first": [URL]}
    assert auth.depths()["fail"] == 1


def test_a_requeued_item_waits_again_from_its_first_attempt(auth: Queue) -> None:
    failed(auth, json.dumps({"url": URL, "attempt": 5}))

    counted = manage(action="requeue", dry_run=False)

    assert counted == {"dry_run": False, "requeue": 1, "first": [URL]}
    assert auth.claim(1).records[0]["attempt"] == 1


def test_formats_are_requeued_by_way_of_auth(auth: Queue) -> None:
    job = {
        "url": URL,
        "extractor": "youtube",
        "video_id": "dQw4w9WgXcQ",
        "info_json_path": "file:///x",
        "group": URL,
    }
    dl = Queue(auth.client, Stage.DL)
    for format_id in ("299", "140"):
        failed(dl, json.dumps({**job, "format_id": format_id}))

    manage(action="requeue", stage="dl", dry_run=False)

    assert {place: depth for place, depth in dl.depths().items() if depth} == {}
    (record,) = auth.claim(5).records
    assert sorted(record["formats"].split(",")) == ["140", "299"]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"action": "nonsense"}, "nonsense"),
        ({"action": "requeue", "source": "progress"}, "progress"),
        ({"action": "requeue", "stage": "nowhere"}, "nowhere"),
        ({"action": "requeue", "queue_base": "no such/base"}, "no such/base"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_changes(auth: Queue, fields: dict[str, Any], named: str) -> None:
    failed(auth, URL)

    with pytest.raises(AirflowFailException, match=named):
        manage(**{"dry_run": False, **fields})

    assert auth.depths()["fail"] == 1


def test_the_sweeper_goes_through_every_stage(auth: Queue) -> None:
    auth.submit([URL])
    auth.claim(1, lease_ms=1)
    auth.client.zadd(auth.keys.leases, {URL: 1})

    moved = SweepQueuesOperator(task_id="sweep_queues", max_attempts=5, queue_base="").execute(CONTEXT)

    assert set(moved) == {"v01", "auth", "dl", "publish"}
    assert moved["auth"]["returned"] == 1
    assert auth.depths()["inbox"] == 1
