"""How deep every key is: for the management DAG, the page in Airflow and the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from include.ytdlp_ops.queues.keys import Stage
from include.ytdlp_ops.queues.queue import Queue

if TYPE_CHECKING:
    from redis import Redis

Depths = dict[str, dict[str, int]]


def all_depths(client: Redis, queue_base: str | None = None) -> Depths:
    """Stage by stage: the number of items in the inbox and in each place; O(1) calls alone."""
    return {str(stage): Queue(client, stage, queue_base=queue_base).depths() for stage in Stage}
