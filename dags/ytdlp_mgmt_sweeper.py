"""
Returns stalled items, and those whose time has come, to their inboxes.

Triggered by: a lease that is over or a time that has come, within seconds; every minute as a safety net; a
person. An item whose worker died goes back with its attempt counted, after five it stays in fail. Failed items
with a `retry_at` and deferred ones go back when they are due: dl by way of auth, for fresh URLs.

**When it fails:** nothing is lost, but nothing comes back either: Redis does not answer, or a key has the
wrong type (the log names it). Mend that; the next run goes on. Two sweepers at once are harmless.
"""

from airflow.sdk import DAG

from include.ytdlp_ops.dag_shapes import START, sweeping_params, woken_by_due_times, worker_defaults
from include.ytdlp_ops.operators.recovering import SweepQueuesOperator

with DAG(
    "ytdlp_mgmt_sweeper",
    schedule=woken_by_due_times(),
    start_date=START,
    catchup=False,
    max_active_runs=1,
    params=sweeping_params(),
    default_args=worker_defaults(),
    tags=["ytdlp-ops", "management"],
    doc_md=__doc__,
):
    SweepQueuesOperator(task_id="sweep_queues")
