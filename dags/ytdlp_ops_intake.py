"""
Takes jobs in from the ledger's table `pending_jobs`, and writes back what became of them.

Triggered by: the clock, every minute, once it is unpaused; or a person. A row with a URL is pushed into the inbox
of `stage` once, also if this run is killed; several intakes never take one row twice. A row whose URL has ended
gets its status (`result`, `skipped`, `fail`), `result`, `output` and `completed_time`.

*Skipped* means that there is no connection `ytdlp_ops_ledger`.

**When it fails:** no row is lost; the next run goes on with those that this one left `locked`. A row that can't be
worked on does not fail the run: its status is `fail`, its `result` says why.
"""

from airflow.sdk import DAG

from include.ytdlp_ops.dag_shapes import START, intake_params, worker_defaults
from include.ytdlp_ops.operators.bookkeeping import TakeInJobsOperator

with DAG(
    "ytdlp_ops_intake",
    schedule="* * * * *",
    start_date=START,
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    params=intake_params(),
    default_args=worker_defaults(),
    tags=["ytdlp-ops", "intake"],
    doc_md=__doc__,
):
    TakeInJobsOperator(task_id="take_in_jobs")
