"""Every DAG imports alone, is named, owned, tagged and explained, and costs little to parse."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DAG_IDS = {
    "ytdlp_ops_v01_dispatcher",
    "ytdlp_ops_v01_worker_per_url",
    "ytdlp_ops_v02_dispatcher_auth",
    "ytdlp_ops_v02_worker_per_url_auth",
    "ytdlp_ops_v02_dispatcher_dl",
    "ytdlp_ops_v02_worker_per_url_dl",
    "ytdlp_ops_v02_dispatcher_publish",
    "ytdlp_ops_v02_worker_per_url_publish",
    "ytdlp_mgmt_ops_server",
    "ytdlp_mgmt_queues",
    "ytdlp_mgmt_sweeper",
    "ytdlp_mgmt_ledger",
    "ytdlp_ops_intake",
}
DAG_FILES = sorted(ROOT.glob("dags/*.py"))
_WHAT_FILES_IMPORT = """
import importlib, json, runpy, sys
importlib.import_module("airflow_local_settings").preload()
before = set(sys.modules)
for path in sys.argv[1:]:
    runpy.run_path(path)
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_every_dag_imports_in_a_fresh_interpreter(dag_bag: dict[str, Any]) -> None:
    assert dag_bag["errors"] == {}
    assert set(dag_bag["dags"]) == DAG_IDS


def test_a_dag_file_is_named_after_its_dag(dag_bag: dict[str, Any]) -> None:
    assert {dag_id: Path(dag["file"]).stem for dag_id, dag in dag_bag["dags"].items()} == {
        dag_id: dag_id for dag_id in DAG_IDS
    }


@pytest.mark.parametrize("dag_id", sorted(DAG_IDS))
def test_a_dag_says_who_owns_it_what_it_is_and_what_to_do_when_it_fails(
    dag_bag: dict[str, Any], dag_id: str
) -> None:
    dag = dag_bag["dags"][dag_id]

    assert dag["owner"] == "ytdlp-ops"
    assert "ytdlp-ops" in dag["tags"]
    assert "Triggered by:" in dag["doc"]
    assert "fail" in dag["doc"]


@pytest.mark.parametrize("dag_id", sorted(DAG_IDS))
def test_a_run_is_one_task_that_airflow_never_repeats(dag_bag: dict[str, Any], dag_id: str) -> None:
    tasks = dag_bag["dags"][dag_id]["tasks"]

    assert len(tasks) == 1
    assert [task["retries"] for task in tasks.values()] == [0]


@pytest.mark.parametrize("dag_id", sorted(DAG_IDS))
def test_every_parameter_has_a_schema_and_a_title(dag_bag: dict[str, Any], dag_id: str) -> None:
    params = dag_bag["dags"][dag_id]["params"]

    assert params
    for name, schema in params.items():
        assert "type" in schema or "enum" in schema, name
        assert schema["title"], name


def test_workers_are_routed_to_the_queues_of_their_stage(dag_bag: dict[str, Any]) -> None:
    queues = {
        dag_id: next(iter(dag["tasks"].values()))["queue"]
        for dag_id, dag in dag_bag["dags"].items()
        if "worker" in dag_id
    }

    assert queues == {
        "ytdlp_ops_v01_worker_per_url": "ytdlp-dl",
        "ytdlp_ops_v02_worker_per_url_auth": "ytdlp-auth",
        "ytdlp_ops_v02_worker_per_url_dl": "ytdlp-dl",
        "ytdlp_ops_v02_worker_per_url_publish": "ytdlp-publish",
    }


def test_parsing_loads_none_of_the_heavy_libraries(
    dag_bag: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    sdk, parse = dag_bag["sdk_seconds"], dag_bag["parse_seconds"]
    with capsys.disabled():
        sys.stdout.write(f"\nall DAG files parse in {parse:.2f} s after {sdk:.2f} s of `import airflow.sdk`\n")

    assert dag_bag["loaded"] == []


def test_a_task_of_the_main_job_imports_nothing_that_its_parent_has_not(tmp_path: Path) -> None:
    files = [*ROOT.glob("plugins/*.py"), *ROOT.glob("dags/ytdlp_ops_v0*.py"), ROOT / "dags/ytdlp_mgmt_sweeper.py"]
    path = os.pathsep.join([str(ROOT), str(ROOT / "config")])
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path), "PYTHONPATH": path}

    command = [sys.executable, "-c", _WHAT_FILES_IMPORT, *map(str, files)]
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)

    assert json.loads(ran.stdout.splitlines()[-1]) == []


@pytest.mark.parametrize("path", [*DAG_FILES, *ROOT.glob("plugins/*.py")], ids=lambda path: path.stem)
def test_a_dag_file_only_composes(path: Path) -> None:
    tree = ast.parse(path.read_text())
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    plain = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    allowed = ("airflow.sdk", "airflow.plugins_manager", "include.ytdlp_ops.")

    assert not plain
    assert all(module.startswith(allowed) for module in imported), imported
    assert len(path.read_text().splitlines()) < 120
