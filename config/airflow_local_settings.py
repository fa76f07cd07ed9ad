"""
Read by every Airflow process at its start.

The scheduler (LocalExecutor) and the Celery worker fork a child for each task: what they have imported before, no
task imports again. `import yt_dlp` alone is 0.4 to 1 CPU second a job.
"""

import importlib
import sys

PRELOADED = (
    "airflow.sdk",
    "jinja2.ext",
    "yt_dlp",
    "yt_dlp.extractor.youtube",
    "av",
    "redis",
    "httpx",
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


if runs_tasks(sys.argv):
    for name in PRELOADED:
        importlib.import_module(name)
