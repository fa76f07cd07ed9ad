"""
Archives what ended from Redis into the ledger, hour by hour; and reports, by hand.

Triggered by: the clock, every hour (`archive`); a person, for a `report` or another window. An end goes into SQL
first and out of Redis only when it is older than `keep_hours`: of a result Redis then keeps that it is done. What
failed or is put off stays in Redis. Rows older than `retention_days` are deleted, none if that is empty. A report
is in the log as tables, and under `<work dir>/exchange` as JSON and pictures.

*Skipped* means that there is no connection `ytdlp_ops_ledger`: then there is no ledger.

**When it fails:** nothing is lost or doubled, also if it was killed; the next run goes on. The log names the
database that does not answer, or the value that is wrong. While it does not run, Redis grows.
"""

from airflow.sdk import DAG

from include.ytdlp_ops.dag_shapes import START, ledger_params, worker_defaults
from include.ytdlp_ops.operators.bookkeeping import KeepLedgerOperator

with DAG(
    "ytdlp_mgmt_ledger",
    schedule="17 * * * *",
    start_date=START,
    catchup=False,
    max_active_runs=1,
    params=ledger_params(),
    default_args=worker_defaults(),
    tags=["ytdlp-ops", "management"],
    doc_md=__doc__,
):
    KeepLedgerOperator(task_id="keep_ledger")
