"""
The soak: ``python -m tests.faults.soak`` with ``N`` items (50,000) and ``SEED`` from the environment.

Eight worker processes; half-way four are killed with -9 and four told to stop, and Redis is killed and started
again; eight new ones go on. In the end the set of ids that ended is the set that was submitted.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from include.ytdlp_ops.queues.connecting import address_of, connect
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.recovery import sweep
from tests.faults.outcomes import ends, journal_of, until
from tests.faults.workers import start_worker
from tests.queueing import url_of
from tests.servers import Valkey

WORKERS = 8


@dataclass(frozen=True, kw_only=True)
class Soaked:
    """
    What a soak showed.

    :param lost: submitted and without an end.
    :param double: with more ends than one.
    :param again: worked on twice, as at-least-once allows.
    :param seconds: how long it took.
    """

    lost: int
    double: int
    again: int
    seconds: float


def soak(folder: Path, count: int, seed: int) -> Soaked:
    """Submit, work, kill, go on, count."""
    chance = random.Random(seed)
    with Valkey(folder / "redis", appendfsync="always") as server:  # see the fixture `server`
        client = connect(address_of(server.url))
        queue = Queue(client, "auth", patience_seconds=60)
        urls = [url_of(number) for number in chance.sample(range(10 * count), count)]
        begun = time.monotonic()
        queue.submit(urls)
        start = [lambda n=n: start_worker(server.url, folder / f"{n}.journal", "--batch", 20) for n in range(16)]
        first = [start[n]() for n in range(WORKERS)]
        until(lambda: queue.depths()["result"] > count / 2, 3600)

        chance.shuffle(first)
        for worker, how in zip(first, [signal.SIGKILL, signal.SIGTERM] * (WORKERS // 2), strict=True):
            worker.send_signal(how)
        server.stop(signal.SIGKILL)
        server.start()
        for worker in first:
            worker.wait(120)
        second = [start[n]() for n in range(WORKERS, 2 * WORKERS)]
        while any(worker.poll() is None for worker in second):
            sweep(queue, max_attempts=1000)
            time.sleep(0.2)  # the sweeper's schedule

        found, seconds = ends(queue), time.monotonic() - begun
        again = sum(times - 1 for times in journal_of(folder).values())
        client.close()
    return Soaked(
        lost=len(set(urls) - set(found)) + len(set(found) - set(urls)),
        double=sum(times > 1 for times in found.values()),
        again=again,
        seconds=seconds,
    )


def main() -> int:
    """Soak, print, and fail where anything was lost or has two ends."""
    count, seed = int(os.environ.get("N", "50000")), int(os.environ.get("SEED", str(random.randrange(10**6))))
    print(f"soak of {count} items, seed {seed}", flush=True)  # noqa: T201 - for the person who runs it
    with tempfile.TemporaryDirectory() as folder:
        soaked = soak(Path(folder), count, seed)
    print(soaked)  # noqa: T201 - as above
    return int(bool(soaked.lost or soaked.double))


if __name__ == "__main__":
    sys.exit(main())
