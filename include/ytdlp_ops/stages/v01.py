"""The stage v01: auth and every wanted format in one run."""

from __future__ import annotations

from include.ytdlp_ops.models import UrlItem
from include.ytdlp_ops.ops_server.client import OpsServerClient
from include.ytdlp_ops.settings import Settings
from include.ytdlp_ops.stages.auth import extract
from include.ytdlp_ops.stages.fetching import fetch
from include.ytdlp_ops.stages.running import Ended, RunningItem


def run_v01(running: RunningItem, *, server: OpsServerClient, settings: Settings) -> Ended:
    """Extract, then download, verify and place each wanted format; one record for all of them."""
    item = running.item
    assert isinstance(item, UrlItem)
    extracted = extract(item, server, settings)
    files = [
        fetch(
            running,
            extracted.answer.info,
            wanted.format_id,
            proxy=extracted.answer.proxy,
            expected_bytes=wanted.bytes,
            settings=settings,
        )
        for wanted in extracted.wanted
    ]
    summary = {"id": item.item_id, "paths": [made["path"] for made in files]}
    return running.done({**extracted.facts(), "files": files}, summary=summary)
