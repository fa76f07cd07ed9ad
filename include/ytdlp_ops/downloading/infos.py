"""
Infos, cut down to what a download needs.

An info comes from an ops server that may be anybody's, so only listed fields of the expected type pass, and only
http(s) is fetched. What is left out on purpose:

* ``webpage_url``, ``original_url``, ``url`` results, ``additional_urls``: yt-dlp would extract again, from the
  worker, without the account and through the wrong egress (YoutubeDL.download_with_info_file);
* ``filepath``, ``_filename``, ``requested_*``, ``__*``, ``section_*``: they choose files, or start ffmpeg;
* ``cookies``, ``request_data`` and all headers but a few: ``Ytdl-Request-Proxy`` would change the egress;
* ``downloader_options`` but for ``http_chunk_size``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import DownloadFailed

PLAIN_PROTOCOLS = frozenset({"http", "https"})
"""One file behind one URL: a `.part` of it is a prefix of the whole."""

PROTOCOLS = PLAIN_PROTOCOLS | {"m3u8_native", "http_dash_segments"}
"""What is downloaded; the rest of yt-dlp's starts other programs or speaks other protocols."""

LIVE_PROTOCOLS = frozenset({"m3u8", "m3u8_native"})
"""What is recorded of a video that is live: HLS, by both of yt-dlp's names."""

_INFO_TEXT = ("id", "title", "extractor", "extractor_key", "live_status", "availability", "upload_date")
_INFO_NUMBERS = ("duration", "timestamp", "epoch")
_FORMAT_TEXT = (
    "format_id", "url", "manifest_url", "ext", "protocol", "container", "vcodec", "acodec", "dynamic_range",
    "language", "format_note", "resolution", "fragment_base_url",
)  # fmt: skip
_FORMAT_NUMBERS = (
    "width", "height", "fps", "filesize", "filesize_approx", "tbr", "vbr", "abr", "asr", "audio_channels",
    "available_at", "quality", "preference", "source_preference", "language_preference",
)  # fmt: skip
_NEVER_NEGATIVE = ("duration", "filesize", "filesize_approx")
_LARGEST = 2**53  # above it JSON's readers disagree, and yt-dlp's dates and lengths overflow
_NOT_IN_SELECTORS = re.compile(r"[\s,/+\[\]()]")
_MOST_CHARACTERS = {"id": 512, "extractor": 128, "extractor_key": 128}  # as items take them
_LONGEST_TITLE, _LONGEST_FORMAT_ID = 10_000, 100
# of media; yt-dlp refuses to write most others
_EXTENSIONS = frozenset({
    "3g2", "3gp", "aac", "ac3", "aiff", "alac", "ape", "asf", "avi", "divx", "dts", "f4v", "flac", "flv", "m2ts",
    "m2v", "m4a", "m4b", "m4v", "mk3d", "mka", "mkv", "mov", "mp2", "mp3", "mp4", "mpeg", "mpg", "mxf", "oga",
    "ogg", "ogv", "opus", "ra", "rm", "ts", "vob", "wav", "weba", "webm", "wma", "wmv",
})  # fmt: skip
_HEADERS = frozenset(
    {"user-agent", "accept", "accept-language", "referer", "origin", "sec-fetch-mode", "sec-fetch-site"}
)


def cut_to_format(info: dict[str, Any], format_id: str) -> dict[str, Any]:
    """
    The least info that downloads one format, and can't make yt-dlp do anything else.

    :raises DownloadFailed: `FORMAT_MISSING` if the format isn't there; `LOCAL_INPUT` (to be extracted again) if
        the info is none, or the format isn't fetched over http(s).
    """
    known = clean_info(info)
    chosen = [fmt for fmt in known["formats"] if fmt.get("format_id") == format_id]
    if not chosen:
        there = ", ".join(str(fmt.get("format_id")) for fmt in known["formats"]) or "none"
        raise DownloadFailed(Code.FORMAT_MISSING, f"format {format_id!r} is not in the info; it has: {there}")
    _refuse_other_protocols(chosen[0], is_live(known))
    live = {"is_live": True} if is_live(known) else {}
    return {**known, "formats": [{**chosen[0], **live}]}


def clean_info(info: dict[str, Any]) -> dict[str, Any]:
    """
    A copy with all formats, and only the fields that are known and of their type.

    :raises DownloadFailed: `LOCAL_INPUT` if it isn't a dict with an id and a list of formats.
    """
    if not isinstance(info, dict) or not isinstance(info.get("id"), str) or not info["id"]:
        raise _bad_info("the info is not an object with an id")
    formats = info.get("formats", [info] if "url" in info else None)  # a direct link has its one format at the top
    if not isinstance(formats, list) or not all(isinstance(fmt, dict) for fmt in formats):
        raise _bad_info(f"the info of {info['id'][:128]!r} has no list of formats")
    _refuse_names_too_long(info)
    known = _typed(info, _INFO_TEXT, _INFO_NUMBERS)
    order = info.get("_format_sort_fields")
    if isinstance(order, list) and all(isinstance(field, str) for field in order):
        known["_format_sort_fields"] = order
    return {
        "extractor": "generic",
        "extractor_key": "Generic",
        **known,
        "title": known.get("title", known["id"])[:_LONGEST_TITLE],
        "formats": _named([_clean_format(fmt) for fmt in formats]),
    }


def is_live(info: dict[str, Any]) -> bool:
    """Whether the video was live when it was extracted."""
    return info.get("live_status") == "is_live"


def is_fetchable(fmt: dict[str, Any], *, live: bool = False) -> bool:
    """Whether a cleaned format, with its fragments, is fetched over http(s), and not by other programs."""
    return protocol_of(fmt) in (LIVE_PROTOCOLS if live else PROTOCOLS) and all(_is_http(url) for url in _urls(fmt))


def protocol_of(fmt: dict[str, Any]) -> str:
    """yt-dlp's name of the way to fetch a format; its URL's scheme if the format names none."""
    return str(fmt.get("protocol") or urlsplit(str(fmt.get("url") or "")).scheme)


def _refuse_other_protocols(fmt: dict[str, Any], live: bool) -> None:
    if is_fetchable(fmt, live=live):
        return
    schemes = sorted({str(url).split(":", 1)[0][:16] for url in _urls(fmt)})
    raise _bad_info(
        f"format {fmt['format_id']!r} comes by protocol {protocol_of(fmt)!r} from {', '.join(schemes)}; "
        f"only http(s) is fetched, by {', '.join(sorted(LIVE_PROTOCOLS if live else PROTOCOLS))}"
    )


def _urls(fmt: dict[str, Any]) -> Iterator[str]:
    yield fmt.get("url", "")
    yield from (fmt[key] for key in ("manifest_url", "fragment_base_url") if key in fmt)
    base = fmt.get("fragment_base_url", "")
    yield from (part.get("url") or _joined(base, part.get("path", "")) for part in fmt.get("fragments", ()))


def _joined(base: str, path: str) -> str:
    try:
        return urljoin(base, path)
    except ValueError:
        return ""


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in PLAIN_PROTOCOLS and bool(parts.hostname)


def _clean_format(fmt: dict[str, Any]) -> dict[str, Any]:
    known = _typed(fmt, _FORMAT_TEXT, _FORMAT_NUMBERS)
    ext = known.get("ext", "")
    if ext not in _EXTENSIONS:
        known["ext"] = "unknown_video"
    if fmt.get("has_drm"):
        known["has_drm"] = True
    headers = fmt.get("http_headers")
    if isinstance(headers, dict):
        known["http_headers"] = {
            name: value
            for name, value in headers.items()
            if isinstance(value, str) and name.lower() in _HEADERS and value.isprintable()
        }
    options = fmt.get("downloader_options")
    if isinstance(options, dict) and isinstance(chunk := options.get("http_chunk_size"), int) and chunk > 0:
        known["downloader_options"] = {"http_chunk_size": chunk}
    fragments = fmt.get("fragments")
    if isinstance(fragments, list):
        known["fragments"] = [
            _typed(part, ("url", "path"), ("duration",)) for part in fragments if isinstance(part, dict)
        ]
    return known


def _refuse_names_too_long(info: dict[str, Any]) -> None:
    for key, most in _MOST_CHARACTERS.items():
        name = info.get(key)
        if isinstance(name, str) and (len(name) > most or name != _writable(name)):
            raise _bad_info(f"the info's {key} {name[:128]!a} has over {most} characters, or is no UTF-8")


def _writable(text: str) -> str:
    """Half a surrogate pair can't be written to any file."""
    return text.encode("utf-8", "replace").decode()


def _typed(fields: dict[str, Any], texts: tuple[str, ...], numbers: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {key: _writable(fields[key]) for key in texts if isinstance(fields.get(key), str)}
    for key in numbers:
        value = fields.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            least = 0 if key in _NEVER_NEGATIVE else -_LARGEST
            if least <= value <= _LARGEST:  # false for what is no number
                found[key] = value
    return found


def _named(formats: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give each format an id of its own that a selector can name; yt-dlp would, and then nobody found it again."""
    told = [(fmt.get("format_id") or str(number))[:_LONGEST_FORMAT_ID] for number, fmt in enumerate(formats)]
    ids = [_NOT_IN_SELECTORS.sub("_", format_id) for format_id in told]
    count, seen = Counter(ids), Counter[str]()
    for fmt, format_id in zip(formats, ids, strict=True):
        fmt["format_id"] = f"{format_id}-{seen[format_id]}" if count[format_id] > 1 else format_id
        seen[format_id] += 1
    return formats


def _bad_info(message: str) -> DownloadFailed:
    # the item's own trouble, not this host's: the next attempt extracts again
    return DownloadFailed(Code.LOCAL_INPUT, message, outcome=Outcome.RETRY)
