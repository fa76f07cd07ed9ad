"""The stage auth: a URL becomes an info, and one job for each format that is wanted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.downloading.extras import sources_of_extras
from include.ytdlp_ops.downloading.infos import cut_to_format, is_live
from include.ytdlp_ops.downloading.profiles import Live, Profile, Profiles, check_quality
from include.ytdlp_ops.downloading.selecting import WantedFormat, select_formats
from include.ytdlp_ops.errors import DownloadFailed, ExtractionRefused, LeaseLost, Refusal
from include.ytdlp_ops.models import FormatItem, PublishItem, UrlItem
from include.ytdlp_ops.ops_server.client import ExtractedInfo, OpsServerClient, version_mismatch
from include.ytdlp_ops.queues.groups import Group
from include.ytdlp_ops.queues.keys import Stage
from include.ytdlp_ops.queues.media_refusals import MediaRefusals
from include.ytdlp_ops.settings import Settings
from include.ytdlp_ops.stages.running import Ended, RunningItem
from include.ytdlp_ops.storage.info_store import InfoStore
from include.ytdlp_ops.storage.publishing.public_infos import public_info

LIVE_AGAIN_SECONDS = 3600.0
MOST_OF_A_TITLE = 500
"""Characters of it in records."""
_TO_COME = re.compile(r"live event will|live in (?:a few|\d+) |stream (?:will|starts|begins)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """An info with the formats that the item wants of it."""

    answer: ExtractedInfo
    wanted: list[WantedFormat]
    low_quality: str | None = None

    @property
    def extractor(self) -> str:
        """yt-dlp's extractor, in lower case."""
        return str(self.answer.info.get("extractor_key") or self.answer.info.get("extractor") or "generic").lower()

    @property
    def video_id(self) -> str:
        """The extractor's id of the video."""
        return str(self.answer.info["id"])

    def facts(self) -> dict[str, Any]:
        """What records say of it: no URLs, no headers, nothing that signs in."""
        info = self.answer.info
        return {
            "egress": self.answer.egress,
            "account": self.answer.account,
            "client": self.answer.client,
            "expires_at": self.answer.expires_at,
            "warnings": [*self.answer.warnings[:20], *filter(None, [version_mismatch(self.answer)])],
            "extractor": self.extractor,
            "video_id": self.video_id,
            "title": str(info.get("title") or "")[:MOST_OF_A_TITLE] or None,
            "duration": info.get("duration"),
            "live_status": info.get("live_status"),
            "low_quality": self.low_quality,
        }


def extract(item: UrlItem, server: OpsServerClient, settings: Settings, profiles: Profiles) -> Extracted:
    """
    Ask the ops server for an info, and choose the formats.

    :raises ExtractionRefused: with the server's reason.
    :raises OpsServerUnavailable: if there was no answer to go by.
    :raises Refusal: if it is or will be live and the profile doesn't record that, or holds none of the formats.
    """
    profile = profiles.get(item.profile)
    selector = item.formats or (settings.formats if item.profile is None else None) or profile.formats
    try:
        answer = server.info(item.url, tags=item.tags, formats=selector)
    except ExtractionRefused as refusal:
        raise _skipped_if_to_come(refusal, profile) from None
    if is_live(answer.info) and profile.live is not Live.RECORD:
        raise _is_live(profile, answer)
    try:
        wanted = select_formats(answer.info, selector, profile.selection_options)
        low_quality = check_quality(profile, wanted)
    except DownloadFailed as error:
        raise _none_wanted(error, answer) from None
    return Extracted(answer=answer, wanted=wanted, low_quality=low_quality)


def run_auth(
    running: RunningItem, *, server: OpsServerClient, store: InfoStore, settings: Settings, profiles: Profiles
) -> Ended:
    """Extract, put the infos into the store, and push the format jobs, and their group, with the result."""
    item = running.item
    assert isinstance(item, UrlItem)
    extracted = extract(item, server, settings, profiles)
    jobs = [_job(item, extracted, wanted, store, running.token) for wanted in extracted.wanted]
    made = [job.item_id for job in jobs]
    group = _group(item, extracted, made, store, running.token)
    if extracted.answer.egress and (address := extracted.wanted[0].bound_to):
        MediaRefusals(running.queue.client, running.queue.keys).extracted(extracted.answer.egress, address)
    try:
        return running.done(
            {**extracted.facts(), "jobs": made},
            push=[(Stage.DL, job) for job in jobs],
            group=group,
            summary={"id": item.item_id, "jobs": made, "egress": extracted.answer.egress},
        )
    except LeaseLost:
        for uri in (*(job.info_json_path for job in jobs), group.item and group.item.info_json_path):
            if uri:
                store.delete(uri)
        raise


def _group(item: UrlItem, extracted: Extracted, made: list[str], store: InfoStore, token: str) -> Group:
    """The video as it will be published: the formats of this run, and those of earlier ones that it refreshes."""
    answer = extracted.answer
    before = [f"{extracted.extractor}:{extracted.video_id}:{format_id}" for format_id in item.wanted]
    public = public_info(answer.info, [each.format_id for each in extracted.wanted])
    sources = {**public, "extras": sources_of_extras(answer.info)}
    name = f"{extracted.extractor}:{extracted.video_id}:{token}"
    publish = PublishItem(
        **{**_carried(item), "formats": None if item.refresh else item.formats},
        url=item.url,
        jobs=list(dict.fromkeys([*before, *made])),
        extractor=extracted.extractor,
        video_id=extracted.video_id,
        info_json_path=store.put(name, sources, proxy=answer.proxy, expires_at=None),
    )
    gone = [job for job in item.refresh if job not in made]
    return Group(video=item.item_id, item=publish, gone=gone)


def _job(item: UrlItem, extracted: Extracted, wanted: WantedFormat, store: InfoStore, token: str) -> FormatItem:
    answer = extracted.answer
    expires_at = wanted.expires_at or answer.expires_at
    if is_live(answer.info):
        expires_at = None  # a recording that has begun is not over with its URL, and a dead one's bytes are of use
    name = f"{extracted.extractor}:{extracted.video_id}:{wanted.format_id}:{token}"
    uri = store.put(name, cut_to_format(answer.info, wanted.format_id), proxy=answer.proxy, expires_at=expires_at)
    return FormatItem(
        **_carried(item),
        url=item.url,
        extractor=extracted.extractor,
        video_id=extracted.video_id,
        format_id=wanted.format_id,
        info_json_path=uri,
        egress=answer.egress,
        account=answer.account,
        client=answer.client,
        expires_at=expires_at,
        bytes=wanted.bytes,
        duration=wanted.duration,
        group=item.item_id,
        wanted=list(dict.fromkeys([*item.wanted, *(each.format_id for each in extracted.wanted)])),
    )


def _carried(item: UrlItem) -> dict[str, Any]:
    """What goes on from the URL to its formats: everything but the URL's own fields."""
    own = {"url", "formats", "priority", "submitted_at", "refresh", "wanted"}
    return {key: value for key, value in item.model_dump(exclude_none=True).items() if key not in own}


def _skipped_if_to_come(refusal: ExtractionRefused, profile: Profile) -> Refusal:
    """A live to come is skipped where the profile skips lives; a premiere, or a recording to come, is none."""
    if refusal.code is Code.UPCOMING and profile.live is Live.SKIP and _TO_COME.search(refusal.message):
        refusal.outcome = Outcome.SKIP
    return refusal


def _is_live(profile: Profile, answer: ExtractedInfo) -> Refusal:
    """What the profile makes of a video that is live now."""
    egress, account = answer.egress, answer.account
    if profile.live is Live.SKIP:
        return Refusal(Code.IS_LIVE, "it is live now, and the profile skips those", egress=egress, account=account)
    said = "it is live now; it will be archived when it has ended"
    return Refusal(Code.UPCOMING, said, retry_after=LIVE_AGAIN_SECONDS, egress=egress, account=account)


def _none_wanted(error: DownloadFailed, answer: ExtractedInfo) -> Refusal:
    """No wanted format: the video's fault only where no client of the extraction had failed."""
    trouble = error.code is Code.FORMAT_MISSING and answer.warnings
    return Refusal(
        Code.NO_USABLE_FORMATS if trouble else error.code,
        error.message,
        outcome=Outcome.ROTATE if trouble else error.outcome,
        egress=answer.egress,
        account=answer.account,
    )
