"""How deep every key is: for the management DAG, the page in Airflow and the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from include.ytdlp_ops.queues.keys import Place, QueueKeys, Stage
from include.ytdlp_ops.queues.queue import Queue

if TYPE_CHECKING:
    from redis import Redis

Depths = dict[str, dict[str, int]]


def all_depths(client: Redis, queue_base: str | None = None) -> Depths:
    """Stage by stage: the number of items in the inbox and in each place; O(1) calls alone."""
    return {str(stage): Queue(client, stage, queue_base=queue_base).depths() for stage in Stage}


def as_table(depths: Depths, queue_base: str | None = None) -> Iterator[str]:
    """The depths as lines for a log: one for each key."""
    for stage, counts in depths.items():
        keys = QueueKeys.of(stage, queue_base)
        yield f"stage {stage}"
        for place, count in counts.items():
            key = keys.inbox if place == "inbox" else keys.hash_of(Place(place))
            yield f"  {key:<28} {count:>12,}"
