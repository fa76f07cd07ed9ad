"""The DAGs as Airflow reads them, once for all tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
_READ_DAGS = """
import json, sys, time
started = time.perf_counter()
import airflow.sdk
sdk_seconds = time.perf_counter() - started
from airflow.dag_processing.dagbag import DagBag
before = set(sys.modules)
started = time.perf_counter()
bag = DagBag("dags")
parse_seconds = time.perf_counter() - started
dags = {
    dag.dag_id: {
        "owner": dag.owner, "tags": sorted(dag.tags), "doc": dag.doc_md, "file": dag.fileloc,
        "params": {name: dag.params.get_param(name).schema for name in dag.params},
        "tasks": {task.task_id: {"retries": task.retries, "queue": task.queue} for task in dag.tasks},
    }
    for dag in bag.dags.values()
}
loaded = [name for name in ("yt_dlp", "redis", "httpx", "av") if name in sys.modules.keys() - before]
print("\\n" + json.dumps({"errors": bag.import_errors, "dags": dags, "loaded": loaded,
                  "sdk_seconds": sdk_seconds, "parse_seconds": parse_seconds}))
"""


@pytest.fixture(scope="session")
def dag_bag(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a fresh interpreter finds in dags/."""
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow")),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "PYTHONPATH": str(ROOT),
    }
    ran = subprocess.run(
        [sys.executable, "-c", _READ_DAGS],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )
    bag: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return bag
