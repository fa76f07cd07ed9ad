"""
Merges a video's formats, writes its sidecars, and moves all to the destination.

Most videos are published by the download run that completed their formats; this DAG has those where that run
died or could not, and those that are requeued.

Triggered by: `ytdlp_ops_v02_dispatcher_publish`, one run for each claimed item; or a person, for the next job
that waits.

**A run that is *failed* is an item that failed.** Its record in `queue2_publish_fail` has code, message and
egress, and `retry_at` if it will be tried again by itself; after five attempts it stays there until a person
requeues it (`ytdlp_mgmt_queues`, action requeue). *Skipped* means that the video can't be had
(queue2_publish_skipped), that it is put off (queue2_publish_deferred), or that another run has the item. Do
not clear a run to repeat it: its claim is over, and the run will skip itself. Many failures with one code
mean a sick egress, site or server, not sick videos.
"""

from airflow.sdk import DAG

from include.ytdlp_ops.dag_shapes import ALL_OF_THEM, START, worker_defaults, worker_params
from include.ytdlp_ops.operators.working import PublishVideoOperator

with DAG(
    "ytdlp_ops_v02_worker_per_url_publish",
    schedule=None,
    start_date=START,
    max_active_runs=ALL_OF_THEM,
    max_consecutive_failed_dag_runs=0,
    params=worker_params(url=False),
    default_args=worker_defaults(),
    tags=["ytdlp-ops", "worker", "v02"],
    doc_md=__doc__,
):
    PublishVideoOperator(task_id="publish_video", queue="ytdlp-publish")
