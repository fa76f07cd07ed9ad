"""
Looks at the queues, and puts ended items back.

Triggered by: a person. `inspect` logs the depth of every key. `requeue` puts the items of one place (fail,
skipped, deferred, result) back into their inbox, dl by way of `queue2_auth_inbox` so that URLs are fresh. It
is a **dry run** unless that is switched off: then it moves items, each in one atomic step; stopped anywhere,
it can be run again.

**When it fails:** nothing is lost; the log says which value of the form, or which key, is at fault.
"""

from airflow.sdk import DAG

from include.ytdlp_ops.dag_shapes import START, queues_params, worker_defaults
from include.ytdlp_ops.operators.recovering import ManageQueuesOperator

with DAG(
    "ytdlp_mgmt_queues",
    schedule=None,
    start_date=START,
    params=queues_params(),
    default_args=worker_defaults(),
    tags=["ytdlp-ops", "management"],
    doc_md=__doc__,
):
    ManageQueuesOperator(task_id="manage_queues")
