"""
A worker as a process of its own: ``python -m tests.faults.workers REDIS_URL JOURNAL [options]``.

It claims, begins, works a while, and finishes, until nothing waits and nothing runs. Each finished item is a line
in its journal, written before the finish, as a file moves before its record. On SIGTERM it hands back and ends.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import IO, Any

from include.ytdlp_ops.errors import LeaseLost, QueueError
from include.ytdlp_ops.queues.connecting import address_of, open_client
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue, Record


class Stop(BaseException):
    """SIGTERM came."""


def stop(signum: int, frame: FrameType | None) -> None:
    """Stop once; what comes while handing back changes nothing."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Stop


def main() -> int:
    """Work until all is done."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("journal", type=Path)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--work-ms", type=float, default=0)
    parser.add_argument("--busy", action="store_true", help="work by computing, with heartbeats from a thread")
    parser.add_argument("--lease-ms", type=int, default=2000)
    parser.add_argument("--die", action="store_true", help="kill -9 oneself in the middle of the work")
    parser.add_argument("--tell", action="store_true", help="say on stdout what has begun, and wait for a line")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    client = open_client(address_of(args.url))
    queue = Queue(client, "auth", patience_seconds=90, finish_patience_seconds=90, running_lease_ms=args.lease_ms)
    held: list[Record] = []
    try:
        with args.journal.open("a", buffering=1) as journal:
            while work_once(queue, journal, args, held):
                pass
    except Stop:
        for record in held:
            queue.release(record)
    return 0


def work_once(queue: Queue, journal: IO[str], args: argparse.Namespace, held: list[Record]) -> bool:
    """One claim and its work; False when nothing waits and nothing runs."""
    claim = queue.claim(args.batch, lease_ms=args.lease_ms)
    held.extend(claim.records)
    while held:
        try:
            held[0] = queue.begin(held[0]["id"], held[0]["token"], host=str(os.getpid()))
            work(queue, held[0], args)
            queue.heartbeat(held[0])
            journal.write(f"{held[0]['id']}\n")
            queue.finish(held[0], Place.RESULT, {"by": os.getpid()})
        except LeaseLost:
            if args.tell:
                print("lost", flush=True)  # noqa: T201 - its test reads it
        held.pop(0)
    if claim.records:
        return True
    depths = queue.depths()
    if depths["inbox"] or depths["progress"]:
        time.sleep(0.02)  # others' work; nothing tells when it is back in the inbox
        return True
    return False


def work(queue: Queue, record: Record, args: argparse.Namespace) -> None:
    """What takes the time."""
    if args.tell:
        print("begun", flush=True)  # noqa: T201 - its test reads it
        sys.stdin.readline()
    if args.die:
        os.kill(os.getpid(), signal.SIGKILL)
    if args.busy:
        ended = threading.Event()
        thread = threading.Thread(target=beat, args=(queue, record, args, ended))
        thread.start()
        end = time.monotonic() + args.work_ms / 1000
        while time.monotonic() < end:
            sum(range(1000))
        ended.set()
        thread.join()
    elif args.work_ms:
        time.sleep(args.work_ms / 1000)


def beat(queue: Queue, record: Record, args: argparse.Namespace, ended: threading.Event) -> None:
    """Heartbeats at a sixth of the lease, as in production."""
    while not ended.wait(args.lease_ms / 6000):
        try:
            queue.heartbeat(record)
        except QueueError:
            return


def start_worker(url: str, journal: Path, *options: Any, **popen: Any) -> subprocess.Popen[str]:
    """A worker's process; the caller ends or awaits it."""
    command = [sys.executable, "-m", "tests.faults.workers", url, str(journal), *map(str, options)]
    return subprocess.Popen(command, cwd=Path(__file__).parents[2], text=True, **popen)


if __name__ == "__main__":
    sys.exit(main())
