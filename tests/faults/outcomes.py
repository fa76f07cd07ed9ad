"""What must hold after every fault."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path

from include.ytdlp_ops.queues.doctor import examine
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.reading import pages
from include.ytdlp_ops.queues.recovery import sweep


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    """Ask until it is so; what other processes do has no event to await."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s")
        time.sleep(0.01)


def ends(queue: Queue) -> Counter[str]:
    """How many terminal records each id has."""
    places = (Place.RESULT, Place.FAIL, Place.SKIPPED, Place.DEFERRED)
    return Counter(item_id for place in places for page in pages(queue, place) for item_id, _ in page)


def assert_nothing_lost(queue: Queue, submitted: Collection[str]) -> None:
    """I1 to I5 as the doctor sees them: every submitted item is somewhere, in one place."""
    assert [str(finding) for finding in examine(queue, expected=submitted)] == []


def assert_all_ended(queue: Queue, submitted: Collection[str]) -> None:
    """I1, I2 and I4: every submitted item has one end, nothing else has, and nothing is left behind."""
    assert ends(queue) == Counter(dict.fromkeys(submitted, 1))
    assert queue.depths() | {"inbox": 0, "progress": 0} == queue.depths()
    assert queue.client.zcard(queue.keys.leases) == 0
    assert_nothing_lost(queue, submitted)


def sweep_until_drained(queue: Queue, seconds: float = 120) -> None:
    """Sweep as the sweeper's DAG would, only faster, until nothing waits and nothing runs."""

    def drained() -> bool:
        sweep(queue, max_attempts=1000)
        depths = queue.depths()
        return not (depths["inbox"] or depths["progress"])

    until(drained, seconds)


def journal_of(folder: Path) -> Counter[str]:
    """How often each item was finished, by the workers' own account."""
    return Counter(line for path in folder.glob("*.journal") for line in path.read_text().splitlines())
