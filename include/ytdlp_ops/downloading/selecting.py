"""Which formats a selector picks from an info: yt-dlp's own selection, with no request and no file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.downloading.infos import clean_info, is_fetchable, is_live, protocol_of
from include.ytdlp_ops.downloading.options import isolated
from include.ytdlp_ops.errors import BadInput, DownloadFailed

_EXPIRE = re.compile(r"[?&/]expire[=/](\d{9,12})(?!\d)")
_ADDRESS = re.compile(r"[?&/]ip[=/]([^/&#]{1,64})")


@dataclass(frozen=True)
class WantedFormat:
    """
    One format to download.

    :param bytes: promised size, if the site gave an exact one.
    :param duration: promised length, seconds.
    :param protocol: yt-dlp's name of the way to fetch it.
    :param vcodec: as promised; ``none`` if there is no video in it, None if that isn't known.
    :param acodec: likewise for audio.
    :param url_host: host of the media URL.
    :param expires_at: when the media URL ends, unix seconds.
    :param bound_to: the address that alone may ask for it.
    """

    format_id: str
    bytes: int | None
    duration: float | None
    ext: str
    protocol: str
    vcodec: str | None
    acodec: str | None
    width: int | None
    height: int | None
    fps: float | None
    url_host: str
    expires_at: float | None
    bound_to: str | None = None


def select_formats(
    info: dict[str, Any], selector: str, options: Mapping[str, Any] | None = None
) -> list[WantedFormat]:
    """
    What a yt-dlp selector picks, one entry for each distinct format: two for ``299+140``, one for ``18``.

    :param options: yt-dlp's own for choosing, from a profile's `selection_options`.

    Storyboards are never picked, nor what isn't fetched over http(s). Of a video that is live, formats with both
    picture and sound go first: two recordings begin at two times, and do not fit together.

    :raises BadInput: if the selector is none; names it.
    :raises DownloadFailed: `FORMAT_MISSING` with what there is; `LOCAL_INPUT` if the info is none.
    """
    known = clean_info(info)
    live = is_live(known)
    known.pop("live_status", None)  # a live's formats would be dropped, and the hour written into its title
    usable = [fmt for fmt in known["formats"] if is_fetchable(fmt, live=live) and not _is_images(fmt)]
    joined = [fmt for fmt in usable if live and "none" not in (fmt.get("vcodec"), fmt.get("acodec"))]
    picked = next(filter(None, (_pick(known, some, selector, options or {}) for some in (joined, usable))), [])
    if not picked:
        there = ", ".join(dict.fromkeys(str(fmt.get("format_id")) for fmt in usable)) or "none"
        what = f"{selector!r} matches no format of {known['id']!r}; it has: {there}"
        raise DownloadFailed(Code.FORMAT_MISSING, what)
    duration = None if live else known.get("duration")
    return [_wanted(fmt, duration) for fmt in {fmt["format_id"]: fmt for fmt in picked}.values()]


def expires_at(url: str) -> float | None:
    """When a media URL ends, by its ``expire=`` or ``/expire/``: unix seconds, or None if it doesn't say."""
    found = _EXPIRE.search(url)
    return float(found[1]) if found else None


def bound_to(url: str) -> str | None:
    """The address that a media URL is bound to, by its ``ip=`` or ``/ip/``; None if it doesn't say."""
    found = _ADDRESS.search(url)
    return unquote(found[1]) if found else None


def _pick(
    info: dict[str, Any], formats: list[dict[str, Any]], selector: str, wishes: Mapping[str, Any]
) -> list[dict[str, Any]]:
    import yt_dlp  # type: ignore[import-untyped]  # ships no types

    if not formats:
        return []
    info = {**info, "formats": [dict(fmt) for fmt in formats]}  # yt-dlp writes into them
    if selector.strip() in {"", "-"}:  # yt-dlp would take its default, or ask on the terminal
        raise BadInput(f"the format selector is {selector!r}; give one such as 'bv*+ba/b'")
    options = {
        **wishes,
        "format": selector,
        "simulate": True,
        "check_formats": False,  # else a format marked as doubtful is asked for
        "ignore_no_formats_error": True,
        "allowed_extractors": [],
        "cachedir": False,
        "quiet": True,
        "logger": _Silence(),
    }
    try:
        with isolated(None), yt_dlp.YoutubeDL(options, auto_init=False) as ydl:
            chosen = ydl.process_ie_result(info, download=True)["requested_downloads"]
    except (SyntaxError, re.error) as error:
        raise BadInput(f"{selector!r} is not a yt-dlp format selector: {_first_line(error)}") from None
    except Exception as error:  # noqa: BLE001 - a field of the info that yt-dlp trips over
        what = f"yt-dlp fails on the info of {info['id']!r}, asked for {selector!r}: {type(error).__name__}"
        raise DownloadFailed(Code.LOCAL_INPUT, what, outcome=Outcome.RETRY) from None
    # with ignore_no_formats_error an empty choice is one download without an id
    formats = [fmt for one in chosen for fmt in one.get("requested_formats") or [one]]
    return [fmt for fmt in formats if fmt.get("format_id")]


def _wanted(fmt: dict[str, Any], duration: float | None) -> WantedFormat:
    return WantedFormat(
        format_id=fmt["format_id"],
        bytes=_whole(fmt.get("filesize")),
        duration=duration,
        ext=fmt["ext"],
        protocol=protocol_of(fmt),
        vcodec=fmt.get("vcodec"),
        acodec=fmt.get("acodec"),
        width=_whole(fmt.get("width")),
        height=_whole(fmt.get("height")),
        fps=fmt.get("fps"),
        url_host=urlsplit(fmt["url"]).hostname or "",
        expires_at=expires_at(fmt["url"]),
        bound_to=bound_to(fmt["url"]),
    )


def _is_images(fmt: dict[str, Any]) -> bool:
    return protocol_of(fmt) == "mhtml" or fmt.get("vcodec") == fmt.get("acodec") == "none"


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _first_line(error: SyntaxError | re.error) -> str:
    return str(error.msg).removeprefix("Invalid format specification: ").splitlines()[0]


class _Silence:
    """yt-dlp's logger, for what only selects."""

    def debug(self, message: str) -> None: ...

    def warning(self, message: str) -> None: ...

    def error(self, message: str) -> None: ...
