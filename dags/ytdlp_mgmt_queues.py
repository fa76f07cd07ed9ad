"""
Looks at the queues, and changes them by hand.

Triggered by: a person, in this form or by `airflow dags trigger ytdlp_mgmt_queues --conf '{"action": …}'`.
What changes something is a **dry run** unless that is switched off; it says exactly what it would do.

| action | what it does |
| --- | --- |
| inspect | depth, age, rate and top reasons of every key |
| list | items of one key, by filters; into the log, or a file (JSON lines, CSV) |
| show | one item, in every stage, with what came before |
| requeue | back into the inbox from fail, skipped, deferred or result; dl by way of auth, for fresh URLs |
| cancel | one item, or by filters: skipped; what runs is told to stop |
| move | from fail, skipped or deferred to another end, for good |
| clear | empties one key, after a backup; `confirm` must be the key's name |
| export, import | whole stages as JSON lines, and back into empty keys |
| pause, resume | stops claiming; what runs goes on. Resume closes the circuit too |
| doctor | names what breaks a promise of the queue; mends it unless it is a dry run |

**When it fails:** the log says which value of the form, or which key, is at fault; what was wrong was refused
before the first change. Each item moves whole or not at all: stopped anywhere, run it again.
"""

from airflow.sdk import DAG

from include.ytdlp_ops.dag_shapes import START, queues_params, worker_defaults
from include.ytdlp_ops.operators.managing import ManageQueuesOperator

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
