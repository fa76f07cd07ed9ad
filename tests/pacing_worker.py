"""A download that keeps the fleet's limits: ``python -m tests.pacing_worker REDIS_URL BASE INFO DIRECTORY``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from include.ytdlp_ops.downloading.options import Transfer
from include.ytdlp_ops.downloading.runner import Progress, download_format
from include.ytdlp_ops.queues.connecting import address_of, open_client
from include.ytdlp_ops.queues.keys import QueueKeys, Stage
from include.ytdlp_ops.queues.limits import FLEET_BANDWIDTH, Limits
from include.ytdlp_ops.stages.bandwidth import FleetPace


def main() -> None:
    """Say that it is ready, wait for a line, download, and tell each step of it."""
    url, base, info, directory = sys.argv[1:]
    client = open_client(address_of(url))
    client.ping()
    pace = FleetPace(Limits(client, QueueKeys.of(Stage.DL, base), patience_seconds=0), [FLEET_BANDWIDTH])

    def tell(progress: Progress) -> None:
        print(progress.downloaded_bytes, flush=True)  # noqa: T201 - its test reads it

    import yt_dlp  # type: ignore[import-untyped]  # noqa: F401 - untyped; loaded before the start

    print("ready", flush=True)  # noqa: T201 - likewise
    sys.stdin.readline()
    transfer = Transfer(connections=1)
    download_format(
        json.loads(info),
        "1",
        directory=Path(directory),
        proxy=None,
        transfer=transfer,
        paces=[pace],
        on_progress=tell,
    )


main()
