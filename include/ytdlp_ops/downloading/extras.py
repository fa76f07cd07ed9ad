"""Thumbnails and subtitles: chosen by yt-dlp's rules, fetched through the egress, bounded in size and time."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from include.ytdlp_ops.downloading.directories import component
from include.ytdlp_ops.downloading.guarding import keep_public
from include.ytdlp_ops.downloading.options import isolated
from include.ytdlp_ops.downloading.watching import Stopped, Watch
from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.local_io import local_failure
from include.ytdlp_ops.urls import refuse_private_target

MAX_PICTURE_BYTES, MAX_TEXT_BYTES = 20 << 20, 10 << 20
MAX_SECONDS = 60.0
"""For each file."""

_MAX_PICTURES_TRIED, _MAX_LANGUAGES, _MAX_ENTRIES = 4, 50, 2000
_PICTURES = ((b"\xff\xd8\xff", "jpg"), (b"\x89PNG", "png"), (b"RIFF", "webp"))
_TEXTS = ("vtt", "srt")
_BLOCK_BYTES = 64 << 10


@dataclass(frozen=True)
class SubtitleFile:
    """Subtitles of one language, ``.vtt`` or ``.srt``."""

    path: Path
    language: str


@dataclass
class Extras:
    """
    What came.

    :param missing: what didn't, and why; a video without it is still a video.
    """

    thumbnail: Path | None = None
    subtitles: list[SubtitleFile] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ExtrasWanted:
    """
    What to fetch, and how.

    :param languages: as yt-dlp takes them: ``en``, ``de.*``, ``all``, ``-live_chat``; none: no subtitles.
    :param automatic: also those made by machine, where nobody wrote any.
    :param proxy: the egress that extracted.
    """

    thumbnail: bool = False
    languages: Sequence[str] = ()
    automatic: bool = False
    proxy: str | None = None
    ca_file: Path | None = None
    allow_private_targets: bool = False


def sources_of_extras(info: dict[str, Any]) -> dict[str, Any]:
    """What of an info fetches its thumbnail and its subtitles, for the info store: URLs may be credentials."""
    pictures = info.get("thumbnails") or [{"url": info.get("thumbnail")}]
    return {
        "thumbnails": [{"url": one["url"]} for one in _dicts(pictures) if _is_http(one.get("url"))],
        "subtitles": _languages(info.get("subtitles")),
        "automatic_captions": _languages(info.get("automatic_captions")),
    }


def fetch_extras(
    info: dict[str, Any], directory: Path, wanted: ExtrasWanted, watch: Watch | None = None
) -> Extras:
    """
    Fetch what is wanted into a directory; what can't be had is told in `missing`.

    :param info: anything that `sources_of_extras` reads.
    :param watch: keeps limits on bandwidth, and hears stops; the reason of one is raised as it is.
    :raises DownloadFailed: `DISK` or `LOCAL_IO`.
    """
    watch = watch or Watch(directory)
    try:
        return _fetch_all(info, directory, wanted, watch)
    except Stopped:
        assert watch.reason is not None
        raise watch.reason from None


def _fetch_all(info: dict[str, Any], directory: Path, wanted: ExtrasWanted, watch: Watch) -> Extras:
    import yt_dlp  # type: ignore[import-untyped]  # ships no types

    sources, made = sources_of_extras(info), Extras()
    options = {
        "proxy": wanted.proxy,
        "quiet": True,
        "no_warnings": True,
        "cachedir": False,
        "socket_timeout": 20,
        "compat_opts": {"no-certifi"} if wanted.ca_file else set(),
        "writesubtitles": bool(wanted.languages),
        "writeautomaticsub": wanted.automatic and bool(wanted.languages),
        "subtitleslangs": list(wanted.languages),
        "subtitlesformat": "/".join(_TEXTS),
    }
    with isolated(wanted.ca_file), yt_dlp.YoutubeDL(options, auto_init=False) as ydl:
        if not wanted.allow_private_targets:
            keep_public(ydl)
        fetch = _Fetch(ydl, wanted.allow_private_targets, watch)
        if wanted.thumbnail:
            _fetch_thumbnail(fetch, sources["thumbnails"], directory, made)
        if wanted.languages:
            chosen = ydl.process_subtitles("", sources["subtitles"], sources["automatic_captions"]) or {}
            for language, entry in list(chosen.items())[:_MAX_LANGUAGES]:
                _fetch_text(fetch, language, entry, directory, made)
    return made


@dataclass(frozen=True)
class _Fetch:
    ydl: Any
    allow_private: bool
    watch: Watch

    def __call__(self, url: str, max_bytes: int) -> bytes:
        """
        :raises ValueError: too large or too slow.
        """
        if not self.allow_private:
            refuse_private_target(url)
        end, content = time.monotonic() + MAX_SECONDS, b""
        with self.ydl.urlopen(url) as response:
            while block := response.read(_BLOCK_BYTES):
                content += block
                paused_at = time.monotonic()
                self.watch.on_bytes(len(block))
                end += time.monotonic() - paused_at  # our own limits are not the site's slowness
                if len(content) > max_bytes:
                    raise ValueError(f"more than {max_bytes} bytes")
                if time.monotonic() > end:
                    raise ValueError(f"not there after {MAX_SECONDS:.0f} s")
        return content


def _fetch_thumbnail(fetch: _Fetch, pictures: list[dict[str, str]], directory: Path, made: Extras) -> None:
    why = "the site has none"
    for picture in reversed(pictures[-_MAX_PICTURES_TRIED:]):  # yt-dlp puts the best last
        content, why = _had(functools.partial(fetch, picture["url"], MAX_PICTURE_BYTES))
        ext = next((ext for start, ext in _PICTURES if content.startswith(start)), None)
        if ext:
            made.thumbnail = _written(directory / f"thumbnail.{ext}", content)
            return
        why = why or "it is neither JPEG, PNG nor WebP"
    made.missing.append(f"thumbnail: {why}")


def _fetch_text(fetch: _Fetch, language: str, entry: dict[str, str], directory: Path, made: Extras) -> None:
    content, why = _had(lambda: entry["data"].encode() if "data" in entry else fetch(entry["url"], MAX_TEXT_BYTES))
    marked = content.removeprefix(b"\xef\xbb\xbf").startswith(b"WEBVTT") or entry["ext"] != "vtt"
    if not why and (not content.strip() or not marked or b"\0" in content):
        why = f"it is no {entry['ext']}"
    if why:
        made.missing.append(f"subtitles {language}: {why}")
        return
    path = directory / f"subtitles-{component(language)}.{entry['ext']}"
    made.subtitles.append(SubtitleFile(_written(path, content), language))


def _had(fetch: Callable[[], bytes]) -> tuple[bytes, str]:
    """Content, or why there is none; never with a URL in it."""
    try:
        return fetch(), ""
    except Stopped:
        raise
    except (BadInput, ValueError) as error:
        return b"", str(error)
    except Exception as error:  # noqa: BLE001 - yt-dlp's networking has many; none is worth the video
        return b"", f"{type(error).__name__} {getattr(error, 'status', '')}".strip()


def _written(path: Path, content: bytes) -> Path:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise local_failure(error, f"{str(path)!r} can't be written") from None
    return path


def _languages(value: Any) -> dict[str, list[dict[str, str]]]:
    if not isinstance(value, dict):
        return {}
    found = {name: list(_texts(entries)) for name, entries in list(value.items())[:_MAX_ENTRIES]}
    return {name: entries for name, entries in found.items() if entries and isinstance(name, str)}


def _texts(entries: Any) -> Iterator[dict[str, str]]:
    for entry in _dicts(entries):
        if entry.get("ext") not in _TEXTS or entry.get("protocol") not in (None, "http", "https"):
            continue  # the others come as playlists, or need yt-dlp's own converters
        if isinstance(entry.get("data"), str) and len(entry["data"]) <= MAX_TEXT_BYTES:
            yield {"ext": entry["ext"], "data": entry["data"]}
        elif _is_http(entry.get("url")):
            yield {"ext": entry["ext"], "url": entry["url"]}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value[:_MAX_ENTRIES] if isinstance(one, dict)] if isinstance(value, list) else []


def _is_http(url: Any) -> bool:
    try:
        return isinstance(url, str) and urlsplit(url).scheme in ("http", "https")
    except ValueError:
        return False
