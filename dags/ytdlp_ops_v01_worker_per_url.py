"""
Does one URL in one run: auth and every wanted format.

Triggered by: `ytdlp_ops_v01_dispatcher`, one run for each claimed item; or a person, with a URL or without,
for the next that waits.

**A run that is *failed* is an item that failed.** Its record in `video_queue_fail` has code, message and
egress, and `retry_at` if it will be tried again by itself; after five attempts it stays there until a person
requeues it (`ytdlp_mgmt_queues`, action requeue). *Skipped* means that the video can't be had
(video_queue_skipped), that it is put off (video_queue_deferred), or that another run has the item. Do not
clear a run to repeat it: its claim is over, and the run will skip itself. Many failures with one code mean a
sick egress, site or server, not sick videos.
"""

from airflow.sdk import DAG

from include.ytdlp_ops.dag_shapes import ALL_OF_THEM, START, worker_defaults, worker_params
from include.ytdlp_ops.operators.working import ArchiveUrlOperator

with DAG(
    "ytdlp_ops_v01_worker_per_url",
    schedule=None,
    start_date=START,
    max_active_runs=ALL_OF_THEM,
    max_consecutive_failed_dag_runs=0,
    params=worker_params(),
    default_args=worker_defaults(),
    tags=["ytdlp-ops", "worker", "v01"],
    doc_md=__doc__,
):
    ArchiveUrlOperator(task_id="archive_url", queue="ytdlp-dl")
