"""The stage auth: a URL becomes an info, and one job for each format that is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.downloading.infos import cut_to_format
from include.ytdlp_ops.downloading.selecting import WantedFormat, select_formats
from include.ytdlp_ops.errors import DownloadFailed, LeaseLost, Refusal
from include.ytdlp_ops.models import FormatItem, UrlItem
from include.ytdlp_ops.ops_server.client import ExtractedInfo, OpsServerClient
from include.ytdlp_ops.queues.keys import Stage
from include.ytdlp_ops.settings import Settings
from include.ytdlp_ops.stages.running import Ended, RunningItem
from include.ytdlp_ops.storage.info_store import InfoStore

LIVE_AGAIN_SECONDS = 3600.0


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """An info with the formats that the item wants of it."""

    answer: ExtractedInfo
    wanted: list[WantedFormat]

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
            "warnings": list(self.answer.warnings)[:20],
            "extractor": self.extractor,
            "video_id": self.video_id,
            "title": info.get("title"),
            "duration": info.get("duration"),
            "live_status": info.get("live_status"),
        }


def extract(item: UrlItem, server: OpsServerClient, settings: Settings) -> Extracted:
    """
    Ask the ops server for an info, and choose the formats.

    :raises ExtractionRefused: with the server's reason.
    :raises OpsServerUnavailable: if there was no answer to go by.
    :raises Refusal: if it is live now, or holds none of the formats.
    """
    answer = server.info(item.url, tags=item.tags)
    if answer.info.get("live_status") == "is_live":
        raise Refusal(
            Code.UPCOMING,
            "it is live now; it will be archived when it has ended",
            retry_after=LIVE_AGAIN_SECONDS,
            egress=answer.egress,
            account=answer.account,
        )
    try:
        wanted = select_formats(answer.info, item.formats or settings.formats)
    except DownloadFailed as error:
        raise _none_wanted(error, answer) from None
    return Extracted(answer=answer, wanted=wanted)


def run_auth(running: RunningItem, *, server: OpsServerClient, store: InfoStore, settings: Settings) -> Ended:
    """Extract, put each format's info into the store, and push the format jobs with the result."""
    item = running.item
    assert isinstance(item, UrlItem)
    extracted = extract(item, server, settings)
    jobs = [_job(item, extracted, wanted, store, running.token) for wanted in extracted.wanted]
    result = {**extracted.facts(), "jobs": [job.item_id for job in jobs]}
    try:
        return running.done(
            result,
            push=[(Stage.DL, job) for job in jobs],
            summary={"id": item.item_id, "jobs": result["jobs"], "egress": extracted.answer.egress},
        )
    except LeaseLost:
        for job in jobs:
            store.delete(job.info_json_path)
        raise


def _job(item: UrlItem, extracted: Extracted, wanted: WantedFormat, store: InfoStore, token: str) -> FormatItem:
    answer = extracted.answer
    expires_at = wanted.expires_at or answer.expires_at
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
        wanted=[each.format_id for each in extracted.wanted],
    )


def _carried(item: UrlItem) -> dict[str, Any]:
    """What goes on from the URL to its formats: everything but the URL's own fields."""
    own = {"url", "formats", "priority", "submitted_at"}
    return {key: value for key, value in item.model_dump(exclude_none=True).items() if key not in own}


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
