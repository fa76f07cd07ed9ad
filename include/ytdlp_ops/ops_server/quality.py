"""Whether an info is worth having: YouTube often answers with less than the video has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.ops_server.jobs import Job, SiteRefused

_EXPIRE = re.compile(r"[?&/]expire[=/](\d{9,11})(?!\d)")
LEFTOVER = "18"
"""The one joined format that YouTube leaves to clients which it holds back all others from."""


def check(info: dict[str, Any] | None, job: Job, warnings: Sequence[str], ydl: Any) -> None:
    """
    Refuse what is no video that could be downloaded as it was asked for.

    :raises SiteRefused: for a list; for storyboards alone; for less than was asked.
    """
    if not info or info.get("_type", "video") != "video":
        message = f"{job.url} is a list, not one video; POST /v1/expand gives its videos"
        raise SiteRefused(Code.BAD_URL, message)
    said = f"yt-dlp warned: {'; '.join(warnings) or 'nothing'}"
    formats = info.get("formats") or [info]
    media = [each for each in formats if not (each.get("vcodec") == "none" and each.get("acodec") == "none")]
    if not media:
        raise SiteRefused(Code.NO_USABLE_FORMATS, f"{job.url}: only images are to be had here. {said}")
    if info.get("live_status") == "is_live":
        return  # its formats are those of the stream; what is done with one that is live now, the worker decides
    _check_height(job, media, said)
    if job.formats and not _finds(ydl, job.formats, formats):
        # the video's own fault only where no client had failed
        code = Code.NO_USABLE_FORMATS if warnings else Code.FORMAT_MISSING
        raise SiteRefused(code, f"{job.url}: none of its formats is {job.formats!r}. {said}")


def describe(info: dict[str, Any]) -> dict[str, Any]:
    """What an answer says beside the info, for callers that do not look into it."""
    urls = [found.get("url") or "" for found in info.get("formats") or [info]]
    ends = [float(match[1]) for url in urls if (match := _EXPIRE.search(url))]
    return {
        "expires_at": min(ends, default=None),
        "live_status": info.get("live_status"),
        "chapters": info.get("chapters") or [],
        "subtitles": sorted(set(info.get("subtitles") or {}) - {"live_chat"}),
        "automatic_captions": sorted(info.get("automatic_captions") or {}),
    }


def _check_height(job: Job, media: list[dict[str, Any]], said: str) -> None:
    heights = [int(each.get("height") or 0) for each in media if each.get("vcodec") != "none"]
    wanted = job.min_height or 0
    best = max(heights, default=0)
    if best and best < wanted:
        raise SiteRefused(
            Code.LOW_QUALITY, f"{job.url}: {best}p is the best here, {wanted}p was asked for. {said}"
        )
    alone = "youtube.com" in job.url and {each.get("format_id") for each in media} == {LEFTOVER}
    if alone and not wanted and LEFTOVER not in re.findall(r"\w+", job.formats or ""):
        message = f"{job.url}: format {LEFTOVER} alone is what clients get that are held back. {said}"
        raise SiteRefused(Code.LOW_QUALITY, message)


def _finds(ydl: Any, selector: str, formats: list[dict[str, Any]]) -> bool:
    """Whether a selector finds something, as yt-dlp itself would see it."""
    kinds = {(each.get("vcodec") != "none", each.get("acodec") != "none") for each in formats}
    context = {
        "formats": formats,
        "has_merged_format": (True, True) in kinds,
        "incomplete_formats": len(kinds - {(False, False)}) == 1 and (True, True) not in kinds,
    }
    try:
        return any(True for _ in ydl.build_format_selector(selector)(context))
    except (SyntaxError, ValueError, re.error) as error:
        message = f"formats: {selector!r} is no format selector: {str(error).splitlines()[0]}"
        raise SiteRefused(Code.BAD_INPUT, message) from None
