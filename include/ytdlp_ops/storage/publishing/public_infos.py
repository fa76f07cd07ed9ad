"""
What of an info may be kept for good, embedded, written beside a file or put into its name.

An info is a credential: its media URLs, headers and cookies let in whoever has them. So only listed fields pass.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

_TEXTS = (
    "id", "display_id", "title", "fulltitle", "alt_title", "description", "uploader", "uploader_id", "channel",
    "channel_id", "creator", "artist", "album", "album_artist", "track", "genre", "composer", "license",
    "location", "language", "series", "season", "season_id", "episode", "episode_id", "playlist", "playlist_id",
    "playlist_title", "playlist_uploader", "extractor", "extractor_key", "upload_date", "release_date",
    "live_status", "availability", "media_type",
)  # fmt: skip
_NUMBERS = (
    "duration", "timestamp", "release_timestamp", "modified_timestamp", "epoch", "view_count", "like_count",
    "dislike_count", "repost_count", "comment_count", "average_rating", "age_limit", "channel_follower_count",
    "playlist_index", "playlist_count", "n_entries", "season_number", "episode_number", "track_number",
    "disc_number", "release_year",
)  # fmt: skip
_LISTS = ("categories", "tags", "artists", "creators", "album_artists", "genres", "composers", "cast")
_PAGES = ("webpage_url", "uploader_url", "channel_url")
_FORMAT_TEXTS = (
    "format_id", "ext", "vcodec", "acodec", "container", "dynamic_range", "language", "format_note", "resolution",
)  # fmt: skip
_FORMAT_NUMBERS = ("width", "height", "fps", "filesize", "tbr", "vbr", "abr", "asr", "audio_channels")
_MAX_ENTRIES = 2000
_LONGEST, _LONGEST_TEXT = {"description": 100_000}, 10_000  # characters
_LARGEST = 2**53  # beyond it dates and lengths overflow; no comparison holds for NaN
_TAGS = {
    "title": ("track", "title"),
    "date": ("release_date", "upload_date"),
    "description": ("description",),
    "synopsis": ("description",),
    "comment": ("webpage_url",),
    "purl": ("webpage_url",),
    "track": ("track_number",),
    "artist": ("artists", "artist", "creators", "creator", "uploader", "channel"),
    "album": ("album", "series"),
    "album_artist": ("album_artists", "album_artist"),
    "genre": ("genres", "genre", "categories"),
    "show": ("series",),
    "season_number": ("season_number",),
    "episode_id": ("episode", "episode_id"),
}


def public_info(info: dict[str, Any], format_ids: Collection[str] = ()) -> dict[str, Any]:
    """
    A copy without anything that signs in or fetches media.

    :param format_ids: of the formats to tell about.
    """
    known = _typed(info, _TEXTS, _NUMBERS)
    for key in _LISTS:
        value = info.get(key)
        if isinstance(value, list) and value:
            known[key] = [entry for entry in value if isinstance(entry, str)][:_MAX_ENTRIES]
    known |= {key: info[key] for key in _PAGES if _is_page(info.get(key))}
    if chapters := _chapters(info.get("chapters")):
        known["chapters"] = chapters
    formats = info.get("formats")
    if isinstance(formats, list) and format_ids:
        chosen = [fmt for fmt in formats if isinstance(fmt, dict) and fmt.get("format_id") in format_ids]
        known["formats"] = [_typed(fmt, _FORMAT_TEXTS, _FORMAT_NUMBERS) for fmt in chosen]
    return known


def tags_of(public: dict[str, Any]) -> dict[str, str]:
    """
    A media file's tags, by the names that yt-dlp gives them (FFmpegMetadataPP).

    :param public: from `public_info`.
    """
    found = {tag: next((public[key] for key in keys if public.get(key)), None) for tag, keys in _TAGS.items()}
    return {
        tag: ", ".join(value) if isinstance(value, list) else str(value)
        for tag, value in found.items()
        if value is not None
    }


def _chapters(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    found = [
        _typed(chapter, ("title",), ("start_time", "end_time"))
        for chapter in value[:_MAX_ENTRIES]
        if isinstance(chapter, dict)
    ]
    return [chapter for chapter in found if "start_time" in chapter and "end_time" in chapter]


def _is_page(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc


def _typed(fields: dict[str, Any], texts: tuple[str, ...], numbers: tuple[str, ...]) -> dict[str, Any]:
    known: dict[str, Any] = {
        # half a surrogate pair can't be written to any file
        key: fields[key][: _LONGEST.get(key, _LONGEST_TEXT)].encode("utf-8", "replace").decode()
        for key in texts
        if isinstance(fields.get(key), str)
    }
    for key in numbers:
        value = fields.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST:
            known[key] = value
    return known
