"""``python -m tests.offline_youtube --folder DIR``: the site until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import json
import os
import signal
from pathlib import Path

from tests.offline_youtube.server import OfflineYouTube


def main() -> None:
    """Listen, say so, and wait for the end."""
    args = _parser().parse_args()
    ending = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)  # before the first thread, so that none of them takes it
    with OfflineYouTube(args.folder, args.port, args.ttl) as site:
        if args.ready_file:
            _write_ready_file(args.ready_file, site)
        print(f"offline YouTube on {site.proxy('egress1')}, certificates in {site.bundle_file}", flush=True)  # noqa: T201 -- a command line prints
        signal.sigwait(ending)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.offline_youtube", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="media and certificates are made here once")
    parser.add_argument("--port", type=int, default=0, help="of 127.0.0.1; 0 takes a free one")
    parser.add_argument("--ttl", type=int, default=21600, help="seconds that a media URL lives")
    parser.add_argument(
        "--ready-file", type=Path, help="JSON with port, proxy, ca_file and bundle_file, once it listens"
    )
    return parser


def _write_ready_file(path: Path, site: OfflineYouTube) -> None:
    said = {"port": site.port, "proxy": site.proxy("egress1"), "ca_file": str(site.ca_file.resolve())}
    said["bundle_file"] = str(site.bundle_file.resolve())
    growing = path.with_name(f".{path.name}.{os.getpid()}")
    growing.write_text(json.dumps(said) + "\n")
    growing.rename(path)


if __name__ == "__main__":
    main()
