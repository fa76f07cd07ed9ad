"""
Dispatchers that are told to end at random: ``python -m tests.faults.dispatchers REDIS_URL ROUNDS``.

Each round is a forked process that runs the dispatcher's operator, and gets SIGTERM after a random time, as from a
deploy; each run that it starts is kept in the HASH ``runs``: item id -> conf.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from types import SimpleNamespace
from typing import Any

from airflow.sdk.exceptions import AirflowSkipException
from airflow.sdk.execution_time import task_runner

from include.ytdlp_ops.hooks.redis_queue import RedisQueueHook
from include.ytdlp_ops.operators.dispatching import ClaimItemsOperator
from include.ytdlp_ops.queues.connecting import address_of, open_client
from tests.supervisor import Supervisor


def dispatch(url: str, number: int) -> None:
    """One dispatcher run, as a process of its own."""
    client = open_client(address_of(url))

    def keep(message: Any) -> None:
        client.hset("runs", message.conf["id"], json.dumps(message.conf))

    task_runner.SUPERVISOR_COMMS = Supervisor(before_trigger=keep)  # type: ignore[assignment]  # the border's fake
    operator = ClaimItemsOperator(
        task_id="claim_items", stage="auth", worker_dag_id="worker", batch=20, max_in_flight=100_000, queue_base=""
    )
    context: Any = {"ti": SimpleNamespace(run_id=f"run-{number}", dag_id="dispatcher")}
    try:
        operator.execute(context)
    except AirflowSkipException:
        return


def main() -> int:
    """All rounds, one after another; the seed is told."""
    url, rounds = sys.argv[1], int(sys.argv[2])
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}", flush=True)  # noqa: T201 - for whoever has to do it again
    source = random.Random(seed)
    os.environ["AIRFLOW_CONN_YTDLP_OPS_REDIS"] = url
    RedisQueueHook().get_queue("auth").depths()  # what is imported late is imported once, before the forks
    for number in range(rounds):
        pid = os.fork()
        if not pid:
            dispatch(url, number)
            os._exit(0)
        time.sleep(source.uniform(0, 0.2))
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
