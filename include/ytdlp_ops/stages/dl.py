"""The stage dl: one format job becomes one verified file."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.downloading.infos import cut_to_format
from include.ytdlp_ops.downloading.profiles import Profile, Profiles
from include.ytdlp_ops.downloading.selecting import bound_to
from include.ytdlp_ops.errors import BadInput, DownloadFailed, Refusal
from include.ytdlp_ops.models import FormatItem
from include.ytdlp_ops.queues.groups import Group
from include.ytdlp_ops.queues.media_refusals import VIDEOS_IN_A_ROW, MediaRefusals
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
    made = _made(running, item, stored, settings, profile)
    ended = running.done(
        made,
        group=Group(video=item.group, in_place=True) if item.group else None,
        summary={"id": item.item_id, "path": made["path"], "bytes": made["bytes"]},
    )
    store.delete(item.info_json_path)
    return ended


def _made(
    running: RunningItem, item: FormatItem, stored: StoredInfo, settings: Settings, profile: Profile
) -> dict[str, Any]:
    refusals = MediaRefusals(running.queue.client, running.queue.keys)
    try:
        made = fetch(
            running,
            stored.info,
            item.format_id,
            proxy=stored.proxy,
            egress=item.egress,
            expected_bytes=item.bytes,
            settings=settings,
            profile=profile,
        )
    except DownloadFailed as error:
        raise _told_apart(error, item, stored, refusals) from None
    if item.client:
        refusals.served(item.client)
    return made


def _told_apart(
    error: DownloadFailed, item: FormatItem, stored: StoredInfo, refusals: MediaRefusals
) -> DownloadFailed:
    """
    Whose fault media are that were refused: only the video's own are skipped, the others get fresh URLs.

    That the URL had ended is known by now; what is left are its address, its client, and the video.
    """
    if error.code is not Code.MEDIA_403:
        return error
    own = bound_to(cut_to_format(stored.info, item.format_id)["formats"][0]["url"])
    now = refusals.address_of(item.egress) if item.egress else None
    if own and now and own != now:
        what = f"egress {item.egress!r} has another address now than the media URL is bound to: one that keeps it"
        said = f"{what}, such as a sticky session of the proxy, is needed ({error.message})"
        return DownloadFailed(Code.HTTP_403, said, retry_after=AT_ONCE_SECONDS)
    in_a_row = refusals.refused(item.client, item.video_id) if item.client else 0
    if in_a_row >= VIDEOS_IN_A_ROW:
        what = f"client {item.client!r} was refused the media of {in_a_row} videos in a row, and served none"
        return DownloadFailed(Code.CLIENT_BROKEN, f"{what}: it is not the video ({error.message})")
    return error


def _stored_info(item: FormatItem, store: InfoStore) -> StoredInfo:
    """The job's info; one that is gone, or lies elsewhere, means auth again: it is no fault of the video's."""
    try:
        return store.get(item.info_json_path)
    except BadInput as error:
        raise DownloadFailed(Code.LOCAL_INPUT, str(error), outcome=Outcome.RETRY) from None
