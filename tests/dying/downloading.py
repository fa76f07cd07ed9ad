"""A download, killed at each step; a next attempt takes over. Prints what came out, one JSON object a kill."""

from __future__ import annotations

import functools
import importlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from include.ytdlp_ops.downloading.directories import directory_for, take_over, target_in
from include.ytdlp_ops.downloading.infos import cut_to_format
from include.ytdlp_ops.downloading.options import Transfer
from include.ytdlp_ops.downloading.runner import download_format
from tests.dying.steps import run_to_the_end, steps_of


def main() -> None:
    """``python -m tests.dying.downloading INFO.json FORMAT WORK CONNECTIONS``; 0: as many as are of use."""
    info: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    format_id, work, transfer = sys.argv[2], Path(sys.argv[3]), Transfer(connections=int(sys.argv[4]) or None)
    fmt = cut_to_format(info, format_id)["formats"][0]

    def attempt(token: str) -> None:
        directory = directory_for(work, "item", token)
        take_over(work, "item", token, fmt)
        download_format(info, format_id, directory=directory, proxy=None, transfer=transfer)

    def content(token: str) -> bytes:
        return target_in(directory_for(work, "item", token), fmt).read_bytes()

    def afresh() -> None:
        shutil.rmtree(work, ignore_errors=True)

    for module in ("yt_dlp", "yt_dlp.extractor", "yt_dlp.postprocessor", "yt_dlp.networking", "yt_dlp.downloader"):
        importlib.import_module(module)  # once, and not in every fork
    afresh()
    run_to_the_end(functools.partial(attempt, "first"))
    wanted = content("first")
    for number, what in steps_of(functools.partial(attempt, "first"), afresh):
        run_to_the_end(functools.partial(attempt, "next"))
        said = {"step": number, "killed at": what, "same": content("next") == wanted, "bytes": len(wanted)}
        sys.stdout.write(f"{json.dumps(said)}\n")


main()
