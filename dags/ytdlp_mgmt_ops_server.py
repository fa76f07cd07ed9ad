"""
Looks at the egresses and accounts of the ops server, and acts on one.

Triggered by: a person. `list` logs state, budget, success share and reason of each. `ban` sets one aside,
`unban` returns it and ends its cool-down, `reset` forgets all that is known of it. `test` has a URL extracted
through it: an egress whatever its state, an account if it is ready.

**When it fails:** nothing was changed. A test fails with the site's own reason (`bot_check`, `proxy`, ...): that
is its answer. Else the log names the field of the form, or says that the ops server does not answer: check
the connection `ytdlp_ops_server`.
"""

from airflow.sdk import DAG

from include.ytdlp_ops.dag_shapes import START, ops_server_params, worker_defaults
from include.ytdlp_ops.operators.managing_ops_server import ManageOpsServerOperator

with DAG(
    "ytdlp_mgmt_ops_server",
    schedule=None,
    start_date=START,
    params=ops_server_params(),
    default_args=worker_defaults(),
    tags=["ytdlp-ops", "management"],
    doc_md=__doc__,
):
    ManageOpsServerOperator(task_id="manage_ops_server")
