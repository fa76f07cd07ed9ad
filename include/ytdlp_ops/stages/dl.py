"""The stage dl: one format job becomes one verified file."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.downloading.profiles import Profiles
from include.ytdlp_ops.errors import BadInput, DownloadFailed, Refusal
from include.ytdlp_ops.models import FormatItem
from include.ytdlp_ops.queues.groups import Group
from include.ytdlp_ops.settings import Settings
from include.ytdlp_ops.stages.fetching import fetch
from include.ytdlp_ops.stages.running import Ended, RunningItem
from include.ytdlp_ops.storage.info_store import InfoStore, StoredInfo

AT_ONCE_SECONDS = 1.0


def run_dl(running: RunningItem, *, store: InfoStore, settings: Settings, profiles: Profiles) -> Ended:
    """
    Download the job's format through the egress that extracted, and place the file in staging.

    The job that completes its video's set claims the publish item with its own end: `Ended.publishes`.

    :raises DownloadFailed: with the reason; the job then goes back by way of auth, for fresh URLs.
    """
    item = running.item
    assert isinstance(item, FormatItem)
    if item.expires_at is not None and item.expires_at <= time.time():
        raise DownloadFailed(
            Code.URL_EXPIRED, f"the media URL ended at {item.expires_at:.0f}", retry_after=AT_ONCE_SECONDS
        )
    profile = profiles.get(item.profile)
    if opens_in := profile.opens_in_seconds(datetime.now(UTC)):
        raise Refusal(Code.LIMITED, f"the profile's window {profile.window} is closed", retry_after=opens_in)
    stored = _stored_info(item, store)
    for bucket in (item.egress and f"egress:{item.egress}", item.account and f"account:{item.account}"):
        if bucket:
            running.await_start(bucket)
    made = fetch(
        running,
        stored.info,
        item.format_id,
        proxy=stored.proxy,
        expected_bytes=item.bytes,
        settings=settings,
        profile=profile,
    )
    ended = running.done(
        made,
        group=Group(video=item.group, in_place=True) if item.group else None,
        summary={"id": item.item_id, "path": made["path"], "bytes": made["bytes"]},
    )
    store.delete(item.info_json_path)
    return ended


def _stored_info(item: FormatItem, store: InfoStore) -> StoredInfo:
    """The job's info; one that is gone, or lies elsewhere, means auth again: it is no fault of the video's."""
    try:
        return store.get(item.info_json_path)
    except BadInput as error:
        raise DownloadFailed(Code.LOCAL_INPUT, str(error), outcome=Outcome.RETRY) from None
