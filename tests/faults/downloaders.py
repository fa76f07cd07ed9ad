"""
A download worker as a process of its own: ``python -m tests.faults.downloaders REDIS_URL HOME CA_FILE``.

It does what a worker run's task does, without Airflow: claims one format job, works on it, and ends. On SIGTERM it
hands the job back, as the operator's `on_kill` does.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from include.ytdlp_ops.downloading.profile_files import load_profiles
from include.ytdlp_ops.errors import LeaseLost
from include.ytdlp_ops.queues.connecting import address_of, open_client
from include.ytdlp_ops.queues.keys import Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.settings import Settings
from include.ytdlp_ops.stages import dl, fetching, running, working
from include.ytdlp_ops.storage.info_store import open_info_store


def settings_of(home: Path, ca_file: Path) -> Settings:
    """The settings of the one host that these tests have."""
    return Settings(
        output_dir=home / "output",
        staging_dir=home / "staging",
        work_dir=home / "work",
        info_store=f"file://{home}/infos",
        ca_file=ca_file,
        reserve_bytes=0,
        host="here",
    )


def killed_after(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, and then kill -9 of this very process."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        function(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    return wrapped


def told_to_end(signum: int, frame: FrameType | None) -> None:
    """What the operator's `on_kill` does."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise running.Terminated("the task was told to end")


def main() -> int:
    """Claim one job and work on it; says on stdout how it ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("home", type=Path)
    parser.add_argument("ca_file", type=Path)
    parser.add_argument("--die-at", choices=("downloaded", "verified", "placed", "finished"))
    parser.add_argument("--lease-ms", type=int, default=2000)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, told_to_end)
    settings = settings_of(args.home, args.ca_file)
    queue = Queue(open_client(address_of(args.url)), Stage.DL, running_lease_ms=args.lease_ms)
    for name, module, function in (
        ("downloaded", fetching, "download_format"),
        ("verified", fetching, "verify"),
        ("placed", fetching, "place"),
        ("finished", queue, "finish"),
    ):
        if args.die_at == name:
            setattr(module, function, killed_after(getattr(module, function)))
    (record,) = queue.claim(1, host=settings.host).records
    store, profiles = open_info_store(settings.info_store), load_profiles(None)
    try:
        ended = working.work_on(
            queue,
            record["id"],
            record["token"],
            lambda item: dl.run_dl(item, store=store, settings=settings, profiles=profiles),
            runner=working.Runner(host=settings.host),
        )
    except LeaseLost:
        print("lost", flush=True)  # noqa: T201 - its test reads it
        return 0
    print(ended.place or "handed back", flush=True)  # noqa: T201 - likewise
    return 0


def start_downloader(url: str, home: Path, ca_file: Path, *options: str) -> subprocess.Popen[str]:
    """One such process."""
    command = [sys.executable, "-m", "tests.faults.downloaders", url, str(home), str(ca_file), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


if __name__ == "__main__":
    sys.exit(main())
