"""
Read by every Airflow process at its start.

The scheduler (LocalExecutor) and the Celery worker fork a child for each task: what they have imported before, no
task imports again. `import yt_dlp` alone is 0.4 to 1 CPU second a job, the plugin's page 0.6.
"""

import importlib
import os
import sys
from pathlib import Path

PRELOADED = (
    "airflow.sdk",
    "jinja2.ext",
    "yt_dlp",
    "yt_dlp.extractor.youtube",
    "av",
    "redis",
    "httpx",
    "pydantic.v1",  # with FastAPI: every task reads the plugins, and ours has a page
    "include.ytdlp_ops.api.pages",
    "include.ytdlp_ops.dag_shapes",
    "include.ytdlp_ops.operators.dispatching",
    "include.ytdlp_ops.operators.recovering",
    "include.ytdlp_ops.operators.working",
    "include.ytdlp_ops.stages.auth",
    "include.ytdlp_ops.stages.dl",
    "include.ytdlp_ops.stages.v01",
    "include.ytdlp_ops.stages.working",
)


def runs_tasks(arguments: list[str]) -> bool:
    """Is this process one that forks tasks?"""
    return "scheduler" in arguments or arguments[1:3] == ["celery", "worker"]


def preload() -> None:
    """Do now what every forked task would do."""
    for name in PRELOADED:
        importlib.import_module(name)
    ca_file = os.environ.get("YTDLP_OPS_CA_FILE")
    options = importlib.import_module("include.ytdlp_ops.downloading.options")
    options.warm_up(Path(ca_file) if ca_file else None)


if runs_tasks(sys.argv):
    preload()
