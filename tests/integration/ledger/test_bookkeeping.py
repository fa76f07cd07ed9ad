"""The ledger's tasks in Airflow, and the command line, on real servers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from include.ytdlp_ops.dag_shapes import intake_params, ledger_params
from include.ytdlp_ops.hooks.ledger import url_of_connection
from include.ytdlp_ops.ledger.schema import outcomes, pending_jobs
from include.ytdlp_ops.operators.bookkeeping import KeepLedgerOperator, TakeInJobsOperator
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue
from tests.queueing import URL, begun, inbox_of
from tests.servers import Valkey

ROOT = Path(__file__).parents[3]


@pytest.fixture
def connections(ledger_url: str, valkey: Valkey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = sa.make_url(ledger_url)
    kind = {"postgresql": "postgres"}.get(url.get_backend_name(), url.get_backend_name())
    connection = {
        "conn_type": kind,
        "host": url.query.get("host") or url.host,
        "port": url.port,
        "login": url.username,
        "schema": url.database,
    }
    monkeypatch.setenv("AIRFLOW_CONN_YTDLP_OPS_LEDGER", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW_CONN_YTDLP_OPS_REDIS", f"redis://127.0.0.1:{valkey.port}/0")
    monkeypatch.setenv("YTDLP_OPS_WORK_DIR", str(tmp_path))


def keep(**fields: Any) -> dict[str, Any]:
    context: Any = {"params": {**{name: param.value for name, param in ledger_params().items()}, **fields}}
    return KeepLedgerOperator(task_id="keep_ledger").execute(context)


def take_in(**fields: Any) -> dict[str, Any]:
    context: Any = {"params": {**{name: param.value for name, param in intake_params().items()}, **fields}}
    return TakeInJobsOperator(task_id="take_in_jobs").execute(context)


def count(ledger: sa.Engine, table: sa.Table) -> int:
    with ledger.connect() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0


@pytest.mark.usefixtures("connections")
def test_the_hourly_run_archives_every_stage(queue: Queue, ledger: sa.Engine) -> None:
    queue.finish(begun(queue), Place.RESULT, {"path": "/x"})

    counted = keep(retention_days=1)

    assert counted["auth"]["written"] == 1
    assert counted["rows_forgotten"] == 0
    assert count(ledger, outcomes) == 1


@pytest.mark.usefixtures("connections")
def test_a_report_is_written_as_json_and_picture(queue: Queue, ledger: sa.Engine, tmp_path: Path) -> None:
    queue.finish(begun(queue), Place.RESULT, {"path": "/x"})
    keep()

    said = keep(action="report", report="throughput", chart="svg")

    picture, table = sorted(map(Path, said["files"]), key=lambda path: path.suffix, reverse=True)
    assert picture.parent == tmp_path / "exchange"
    assert "<svg" in picture.read_text()
    assert json.loads(table.read_text())["rows"][0]["done"] == 1


@pytest.mark.usefixtures("connections")
def test_the_intake_pushes_rows_and_stops_where_enough_wait(queue: Queue, ledger: sa.Engine) -> None:
    with ledger.begin() as connection:
        connection.execute(sa.insert(pending_jobs), [{"url": URL}, {"url": "https://example.org/2"}])

    first = take_in(most_waiting=1)
    second = take_in(most_waiting=1)

    assert (first["submitted"], second["submitted"]) == (1, 0)
    assert [item["id"] for item in inbox_of(queue)] == [URL]


def test_without_a_ledger_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_YTDLP_OPS_LEDGER", raising=False)

    with pytest.raises(AirflowSkipException, match="'ytdlp_ops_ledger'"):
        KeepLedgerOperator(task_id="keep_ledger").execute({"params": {}})


def test_a_ledger_that_does_not_answer_fails_the_run_and_tells_no_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_YTDLP_OPS_LEDGER", "postgres://me:secret@127.0.0.1:1/x")

    with pytest.raises(AirflowFailException, match="does not answer") as caught:
        keep()

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({"conn_type": "postgres", "host": "h", "login": "l", "schema": "s", "port": 5},
         "postgresql+psycopg2://l@h:5/s"),
        ({"conn_type": "postgres", "host": "/run/pg"}, "postgresql+psycopg2:///ytdlp_ops?host=%2Frun%2Fpg"),
        ({"conn_type": "mysql", "host": "h", "schema": "s", "extra": {"charset": "utf8mb4"}},
         "mysql+pymysql://h/s?charset=utf8mb4"),
        ({"conn_type": "sqlite", "host": "/tmp/x.db"}, "sqlite:////tmp/x.db"),
    ],
)  # fmt: skip
def test_a_connection_becomes_a_url(given: dict[str, Any], url: str) -> None:
    from airflow.sdk import Connection

    connection = Connection(conn_id="c", **{**given, "extra": json.dumps(given.get("extra", {}))})

    assert url_of_connection(connection).render_as_string() == url


@pytest.mark.slow
def test_the_command_line_archives_reports_and_changes_only_when_told(
    queue: Queue, ledger: sa.Engine, ledger_url: str, valkey: Valkey, tmp_path: Path
) -> None:
    queue.finish(begun(queue), Place.FAIL, {"code": "network", "retryable": False})
    environment = {**os.environ, "YTDLP_OPS_REDIS_URL": valkey.url, "YTDLP_OPS_LEDGER_URL": ledger_url}

    def cli(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "include.ytdlp_ops.cli", *arguments]
        return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)

    dry = cli("requeue", "--stage", "auth")
    archived = json.loads(cli("--json", "archive").stdout)
    failures = json.loads(cli("--json", "report", "failures").stdout)
    picture = cli("--directory", str(tmp_path), "report", "failures", "--chart", "png")
    really = json.loads(cli("--json", "requeue", "--stage", "auth", "--really").stdout)
    wrong = cli("list", "--stage", "auth", "--url-pattern", "(")

    assert dry.stdout.startswith("dry run: would requeue 1: queue2_auth_fail")
    assert archived["auth"]["written"] == 1
    assert [row["code"] for row in failures[0]["rows"]] == ["network"]
    assert "network" in picture.stdout
    assert list(tmp_path.glob("*.png"))
    assert (really["requeue"], queue.depths()["inbox"]) == (1, 1)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (1, 1)
    assert "url_pattern '('" in wrong.stderr
