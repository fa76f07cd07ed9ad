"""The stage v01: auth, every wanted format and publish in one run."""

from __future__ import annotations

from pathlib import Path

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.extras import sources_of_extras
from include.ytdlp_ops.downloading.infos import is_live
from include.ytdlp_ops.downloading.profiles import Profiles
from include.ytdlp_ops.errors import Refusal
from include.ytdlp_ops.models import UrlItem
from include.ytdlp_ops.ops_server.client import OpsServerClient
from include.ytdlp_ops.settings import Settings
from include.ytdlp_ops.stages.auth import Extracted, extract
from include.ytdlp_ops.stages.fetching import fetch
from include.ytdlp_ops.stages.publish import Opener, destination_of, publish_files, told_of
from include.ytdlp_ops.stages.running import Ended, RunningItem
from include.ytdlp_ops.storage.info_store import StoredInfo
from include.ytdlp_ops.storage.publishing.public_infos import public_info


def run_v01(
    running: RunningItem, *, server: OpsServerClient, settings: Settings, profiles: Profiles, opener: Opener
) -> Ended:
    """
    Extract, download and verify each wanted format, merge and publish; one record for all of it.

    :raises Refusal: with the reason.
    """
    item = running.item
    assert isinstance(item, UrlItem)
    extracted = extract(item, server, settings, profiles)
    answer, profile = extracted.answer, profiles.get(item.profile)
    _refuse_if_apart(extracted)
    _, place = destination_of(item.tags, profile, settings, profiles, opener)
    place.check()  # before the downloads, not after them
    formats = [
        fetch(
            running,
            answer.info,
            wanted.format_id,
            proxy=answer.proxy,
            egress=answer.egress,
            expected_bytes=wanted.bytes,
            settings=settings,
            profile=profile,
        )
        for wanted in extracted.wanted
    ]
    info = public_info(answer.info, [wanted.format_id for wanted in extracted.wanted])
    stored = StoredInfo({**info, "extras": sources_of_extras(answer.info)}, answer.proxy)
    published = publish_files(running, formats, stored=stored, settings=settings, profiles=profiles, opener=opener)
    ended = running.done(
        {**extracted.facts(), **published, "formats_made": [made["format_id"] for made in formats]},
        summary=told_of(item.item_id, published),
    )
    for made in formats:
        Path(made["path"]).unlink(missing_ok=True)
    return ended


def _refuse_if_apart(extracted: Extracted) -> None:
    """A live's formats have to be recorded at the same time."""
    if is_live(extracted.answer.info) and len(extracted.wanted) > 1:
        what = "it is live in picture and sound apart, which one run would record one after the other"
        raise Refusal(Code.FORMAT_MISSING, f"{what}; give it to the stage auth, or ask for one format")
