"""
Claims videos whose formats have all ended, and starts one publish run for each.

Triggered by: its inbox `queue2_publish_inbox`, within seconds of a push; every minute as a safety net; a
person, with other limits. One run claims at most `batch` items, and no more than `max_in_flight` are ever in
progress; the rest waits in Redis.

**When it fails:** nothing is lost. The log says why: Redis does not answer (mend it; the next run goes on),
or a run could not be started (the claimed items were handed back to the inbox). When it is *skipped*, the
worker DAG `ytdlp_ops_v02_worker_per_url_publish` is paused or has an import error. Items whose dispatcher
died stay claimed for ten minutes; then `ytdlp_mgmt_sweeper` returns them.
"""

from airflow.sdk import DAG

from include.ytdlp_ops.dag_shapes import START, dispatcher_params, woken_by_inbox, worker_defaults
from include.ytdlp_ops.operators.dispatching import ClaimItemsOperator

with DAG(
    "ytdlp_ops_v02_dispatcher_publish",
    schedule=woken_by_inbox("publish"),
    start_date=START,
    catchup=False,
    max_active_runs=1,
    params=dispatcher_params(),
    default_args=worker_defaults(),
    tags=["ytdlp-ops", "dispatcher", "v02"],
    doc_md=__doc__,
):
    ClaimItemsOperator(
        task_id="claim_items", stage="publish", worker_dag_id="ytdlp_ops_v02_worker_per_url_publish"
    )
