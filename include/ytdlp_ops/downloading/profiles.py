"""
Profiles: what the people who run this allow to be asked of yt-dlp, by name.

They are the only way options reach yt-dlp. An option is a field here or it does not exist: nothing that executes,
reads or writes other files, signs in or changes the egress can be spelled.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.options import Transfer
from include.ytdlp_ops.downloading.selecting import WantedFormat
from include.ytdlp_ops.errors import BadInput, DownloadFailed
from include.ytdlp_ops.settings import Bytes

DEFAULT_PROFILE = "best"
DEFAULT_DESTINATION = "default"

_WINDOW = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)(?: (\S+))?")
_SECRET = re.compile(r"secret|password|token|credential|(?:^|_)key(?:$|_)|^account|^user|_id$", re.IGNORECASE)
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,63}")


class Group(StrEnum):
    """When a video is published of which some formats were skipped or died."""

    ALL = "all"  # never
    BEST_EFFORT = "best_effort"  # with what there is, and the record says what is missing


class Live(StrEnum):
    """What is done with a video that is live now."""

    DEFER = "defer"
    RECORD = "record"
    SKIP = "skip"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_max_length=1024)


class Subtitles(_Strict):
    """
    :param languages: as yt-dlp takes them: ``en``, ``de.*``, ``all``, ``-live_chat``.
    :param automatic: also those that the site made by machine.
    """

    languages: list[str] = Field(default_factory=list, max_length=64)
    automatic: bool = False

    @field_validator("languages")
    @classmethod
    def _are_patterns(cls, languages: list[str]) -> list[str]:
        for language in languages:
            try:
                re.compile(language)
            except re.error as error:
                raise ValueError(f"{language!r} is no language ({error}); give one like 'en' or 'de.*'") from None
        return languages


class Embed(_Strict):
    """What goes into the media file."""

    metadata: bool = False
    chapters: bool = False
    thumbnail: bool = False
    subtitles: bool = False


class Write(_Strict):
    """What is written beside the media file."""

    thumbnail: bool = False
    subtitles: bool = False
    description: bool = False
    info_json: bool = False


class FormatOptions(_Strict):
    """yt-dlp's own options for choosing formats, spelled as its API does."""

    format_sort: list[str] = Field(default_factory=list, max_length=32)
    format_sort_force: bool = False
    prefer_free_formats: bool = False
    allow_multiple_audio_streams: bool = False
    allow_multiple_video_streams: bool = False


class DownloadOptions(_Strict):
    """yt-dlp's own options for downloading, spelled as its API does."""

    retries: int = Field(default=10, ge=0, le=100)
    fragment_retries: int = Field(default=10, ge=0, le=100)
    socket_timeout: float = Field(default=20, ge=1, le=600)
    http_chunk_size: Bytes | None = Field(default=None, ge=65536)


class Profile(_Strict):
    """
    One named set of wishes.

    :param formats: a yt-dlp format selector.
    :param container: of the merged file; ``auto``: mp4 for avc/hevc/av1 with aac, webm for vp8/vp9/av1 with opus
        or vorbis, else mkv.
    :param output: a yt-dlp output template; its path stays below the destination.
    :param rate_limit: bytes a second, of one download.
    :param concurrent_fragments: of an HLS or DASH format, at once.
    :param connections: of one file, at once; 1: yt-dlp's own single one; None: more where one is slow.
    :param window: when downloads may begin: ``22:00-06:00 Europe/Berlin``; without a zone it is UTC.
    :param destination: name of the destination, where no tag of the item chooses one.
    :param min_height: picture lines, of the shorter side, below which the quality is low.
    :param low_quality: ``record`` says so in the result; ``fail`` tries again through another egress.
    """

    formats: str = Field(min_length=1, max_length=512)
    container: Literal["auto", "mp4", "webm", "mkv"] = "auto"
    embed: Embed = Embed()
    write: Write = Write()
    subtitles: Subtitles = Subtitles()
    output: str = Field(default="%(title)s [%(id)s].%(ext)s", min_length=1, max_length=512)
    rate_limit: Bytes | None = Field(default=None, ge=1024)
    concurrent_fragments: int = Field(default=4, ge=1, le=32)
    connections: int | None = Field(default=None, ge=1, le=16)
    window: str | None = None
    destination: str | None = None
    min_height: int | None = Field(default=None, ge=1)
    low_quality: Literal["record", "fail"] = "record"
    group: Group = Group.ALL
    live: Live = Live.DEFER
    format_options: FormatOptions = FormatOptions()
    download_options: DownloadOptions = DownloadOptions()

    @field_validator("window")
    @classmethod
    def _known_window(cls, window: str | None) -> str | None:
        if window is not None:
            match = _WINDOW.fullmatch(window)
            if not match:
                raise ValueError("give a time window like '22:00-06:00 Europe/Berlin'")
            _zone(match[5])
        return window

    @field_validator("output")
    @classmethod
    def _bounded_output(cls, output: str) -> str:
        if re.search(r"%(?:\([^)]*\))?[^a-zA-Z%]*\d{4}", output):
            raise ValueError("a width or precision of more than 999 characters can't be a file name")
        if "%(" not in output:
            raise ValueError("an output template names fields, such as '%(title)s [%(id)s].%(ext)s'")
        return output

    @property
    def selection_options(self) -> dict[str, Any]:
        """For `select_formats`."""
        return self.format_options.model_dump()

    @property
    def transfer(self) -> Transfer:
        """For `download_format`."""
        return Transfer(
            rate_limit=self.rate_limit,
            concurrent_fragments=self.concurrent_fragments,
            connections=self.connections,
            **self.download_options.model_dump(),
        )

    def opens_in_seconds(self, now: datetime.datetime) -> float:
        """
        How long until its time window is open; 0 if it is, or if there is none.

        :param now: aware.
        """
        match = _WINDOW.fullmatch(self.window) if self.window else None
        if not match:
            return 0.0
        here = now.astimezone(_zone(match[5]))
        begin, end = (datetime.time(int(match[at]), int(match[at + 1])) for at in (1, 3))
        at = here.time()
        if (begin <= at < end) if begin < end else (at >= begin or at < end):
            return 0.0
        opens = here.replace(hour=begin.hour, minute=begin.minute, second=0, microsecond=0)
        if opens <= here:
            opens += datetime.timedelta(days=1)
        return opens.timestamp() - here.timestamp()  # not their difference: the clocks may change in between


class Destination(_Strict):
    """
    Where files go.

    :param path: an absolute directory that is there, or a URI that fsspec knows: ``s3://bucket/prefix``.
    :param mount: take the directory only while something is mounted there.
    :param conn_id: the Airflow connection that holds its credentials.
    :param options: for fsspec, such as ``endpoint_url``; never credentials.
    :param tags: items with one of these go here.
    """

    path: str
    mount: bool = False
    conn_id: str | None = None
    options: dict[str, str | int | bool] = Field(default_factory=dict)
    tags: list[str] = Field(default_factory=list)

    @field_validator("path")
    @classmethod
    def _is_a_place(cls, path: str) -> str:
        scheme, colon, rest = path.partition("://")
        if (not colon and not path.startswith("/")) or (colon and not (scheme.isalnum() and rest)):
            raise ValueError("give an absolute directory or a URI such as 's3://bucket/prefix'")
        if "@" in rest.split("/", 1)[0] or ".." in PurePosixPath(rest or path).parts:
            raise ValueError("no user names and no '..' in a destination; credentials belong in a connection")
        return path

    @field_validator("options")
    @classmethod
    def _hold_no_secrets(cls, options: dict[str, str | int | bool]) -> dict[str, str | int | bool]:
        if secrets := sorted(name for name in options if _SECRET.search(name)):
            raise ValueError(
                f"{', '.join(secrets)}: credentials belong in an Airflow connection; name it in conn_id"
            )
        return options

    @model_validator(mode="after")
    def _fits_its_path(self) -> Self:
        local = self.path.startswith(("/", "file://", "local://"))
        if local and self.conn_id:
            raise ValueError(f"a directory needs no connection: take conn_id {self.conn_id!r} away")
        if self.mount and not local:
            raise ValueError("'mount: true' is for directories; take it away")
        return self


class Profiles(_Strict):
    """All profiles and destinations, by name."""

    profiles: dict[str, Profile] = Field(default_factory=dict)
    destinations: dict[str, Destination] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _names_fit(self) -> Profiles:
        if odd := [name for name in (*self.profiles, *self.destinations) if not _NAME.fullmatch(name)]:
            raise ValueError(f"{odd[0]!r} is no name; use up to 64 letters, digits, '.', '_' and '-'")
        for name, profile in self.profiles.items():
            if profile.destination is not None and profile.destination not in self.destinations:
                known = ", ".join(self.destinations) or "none"
                raise ValueError(
                    f"profile {name!r} goes to {profile.destination!r}; destinations there are: {known}"
                )
        return self

    def get(self, name: str | None) -> Profile:
        """
        The profile of this name; of no name, `best`.

        :raises BadInput: if there is none; names those that there are.
        """
        try:
            return self.profiles[DEFAULT_PROFILE if name is None else name]
        except KeyError:
            raise BadInput(f"there is no profile {name!r}; there are {', '.join(self.profiles)}") from None

    def destination_for(self, profile: Profile, tags: Iterable[str]) -> tuple[str, Destination] | None:
        """Name and destination: the first that has one of the tags, else the profile's, else `default`'s."""
        wanted = set(tags)
        by_tag = next((name for name, place in self.destinations.items() if wanted.intersection(place.tags)), None)
        name = by_tag or profile.destination or DEFAULT_DESTINATION
        return (name, self.destinations[name]) if name in self.destinations else None


def check_quality(profile: Profile, wanted: Iterable[WantedFormat]) -> str | None:
    """
    What to record if the best picture is below the profile's `min_height`; None if it is not.

    :raises DownloadFailed: `LOW_QUALITY` instead, where the profile says so.
    """
    pictures = [fmt for fmt in wanted if fmt.vcodec != "none" and fmt.height]
    # of a vertical video too, "1080p" means the shorter side
    best = max((min(fmt.height or 0, fmt.width or fmt.height or 0) for fmt in pictures), default=None)
    if profile.min_height is None or best is None or best >= profile.min_height:
        return None
    said = f"the best picture has {best} lines; at least {profile.min_height} are wanted"
    if profile.low_quality == "fail":
        raise DownloadFailed(Code.LOW_QUALITY, said)
    return said


def _zone(name: str | None) -> datetime.tzinfo:
    try:
        return ZoneInfo(name) if name else datetime.UTC
    except (OSError, ValueError):  # ZoneInfoNotFoundError is a KeyError, with a text of its own
        raise ValueError(f"{name!r} is no time zone") from None
    except KeyError:
        raise ValueError(f"there is no time zone {name!r}; give one such as 'Europe/Berlin'") from None
