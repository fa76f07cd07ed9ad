"""The shapes of the ops server's HTTP contract, for our server, our client and OpenAPI."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass

from include.ytdlp_ops.codes import Code, Outcome

PROBLEM_JSON = "application/problem+json"
OK = "ok"
"""Beside the codes: it worked."""
ShortText = Annotated[str, Field(max_length=128)]
UrlText = Annotated[str, Field(min_length=1, max_length=8192)]


class InfoRequest(BaseModel):
    """
    Body of ``POST /v1/info``.

    :param url: http(s) URL or a bare 11-character YouTube id of one video.
    :param tags: free words of the item; the server may route by them.
    :param client: the one player client to ask.
    :param account: the account to ask with; without one, signing in is tried only where the refusal says it helps.
    :param egress: the one egress to use, whatever its state.
    :param exclude_egress: egresses not to use.
    :param formats: a yt-dlp format selector; an info in which it finds nothing is ``no_usable_formats``.
    :param min_height: least height; an info with less is ``low_quality``.
    :param profile: a set of options that the server knows by name.
    """

    model_config = ConfigDict(extra="forbid")

    url: UrlText
    tags: list[ShortText] = Field(default=[], max_length=64)
    client: str | None = Field(default=None, pattern=r"^[a-z][a-z0-9_]{0,39}$")
    account: ShortText | None = None
    egress: ShortText | None = None
    exclude_egress: list[ShortText] = Field(default=[], max_length=1024)
    formats: str | None = Field(default=None, min_length=1, max_length=1024)
    min_height: int | None = Field(default=None, ge=1, le=8640)
    profile: ShortText | None = None


@dataclass(frozen=True, kw_only=True)
class ExtractedInfo:
    """
    Answer of ``POST /v1/info``. Another server may leave out all but `info`, and may add what it likes.

    :param info: yt-dlp's sanitised info dict: a credential, as its URLs play for whoever holds them.
    :param egress: the egress that extracted.
    :param account: the account that extracted, if one did.
    :param client: the player client that was asked for, else the first that had the video.
    :param proxy: URL of the egress's proxy, a secret: the media URLs play through the same way out only.
    :param expires_at: when the first of the media URLs ends, unix seconds.
    :param warnings: what yt-dlp warned of.
    :param yt_dlp_version: the yt-dlp that extracted.
    :param live_status: ``not_live``, ``is_live``, ``was_live``, ``post_live``.
    :param chapters: ``{start_time, end_time, title}`` each, in seconds.
    :param subtitles: languages of the subtitles that people made.
    :param automatic_captions: languages of those that the site made.
    """

    info: dict[str, Any] = field(repr=False)
    egress: str | None = None
    account: str | None = None
    client: str | None = None
    proxy: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    warnings: tuple[str, ...] = ()
    yt_dlp_version: str | None = None
    live_status: str | None = None
    chapters: tuple[dict[str, Any], ...] = ()
    subtitles: tuple[str, ...] = ()
    automatic_captions: tuple[str, ...] = ()


class ExpandRequest(BaseModel):
    """
    Body of ``POST /v1/expand``.

    :param url: of a playlist, a channel, a handle or a gallery.
    :param cursor: where to go on: the last page's; None: at the beginning.
    :param limit: most entries of one page.
    :param egress: the one egress to use, whatever its state.
    :param account: the account to ask with.
    :param profile: a set of options that the server knows by name.
    """

    model_config = ConfigDict(extra="forbid")

    url: UrlText
    cursor: str | None = Field(default=None, min_length=1, max_length=65536)
    limit: int = Field(default=200, ge=1, le=1000)
    egress: ShortText | None = None
    account: ShortText | None = None
    profile: ShortText | None = None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One video of a list."""

    url: str
    id: str | None = None
    title: str | None = None
    duration: float | None = None


@dataclass(frozen=True, kw_only=True)
class ExpandedPage:
    """
    Answer of ``POST /v1/expand``: one page of a list.

    :param entries: videos, in the list's order; a page may have fewer than asked for, also none, before the end.
    :param cursor: gives the next page; None: there is none.
    :param title: the list's.
    """

    entries: tuple[Entry, ...]
    cursor: str | None = None
    title: str | None = None
    egress: str | None = None
    account: str | None = None


class OutcomeRequest(BaseModel):
    """
    Body of ``POST /v1/outcomes``: what happened later with an info that the server gave out.

    :param egress: the egress that it came through.
    :param account: the account that it came with.
    :param code: ``ok``, or why not.
    :param stage: where it happened: ``dl``.
    """

    model_config = ConfigDict(extra="forbid")

    egress: ShortText
    account: ShortText | None = None
    code: Literal["ok"] | Code
    stage: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,32}$")] = "dl"


class OverrideRequest(BaseModel):
    """
    Body of ``POST /v1/egresses/{name}/{action}`` and of that of accounts; may be left out.

    :param reason: of a ban, for people.
    """

    model_config = ConfigDict(extra="forbid")

    reason: ShortText = "by hand"


@dataclass(frozen=True, kw_only=True)
class StandingAnswer:
    """
    How one egress or account stands.

    :param state: ``healthy``, ``cooling`` (until `cooling_until`, unix seconds) or ``banned`` (until unbanned).
    :param reason: the code, or a person's words, why it is not healthy.
    :param tags: the items that it is for.
    :param country: where an egress comes out.
    :param egress: of an account: the egress that it is bound to by configuration.
    :param in_use: videos that are being asked through it now.
    :param used_at: when it was last used, unix seconds.
    :param asked_last_hour: videos asked through it; `hourly` is its budget.
    :param success_share: videos that came, of those asked in the last hour; None: none was asked.
    :param last_hour: answers by code, ``ok`` among them.
    """

    name: str
    state: str
    cooling_until: float | None = None
    reason: str | None = None
    tags: tuple[str, ...] = ()
    country: str | None = None
    egress: str | None = None
    in_use: int = 0
    used_at: float | None = None
    asked_last_hour: int = 0
    asked_last_day: int = 0
    hourly: int | None = None
    daily: int | None = None
    success_share: float | None = None
    last_hour: dict[str, int] = field(default_factory=dict)
    last_day: dict[str, int] = field(default_factory=dict)


class Problem(BaseModel):
    """
    An error, as RFC 9457 has it, with what the queue needs to know.

    :param type: one URN for each code.
    :param title: the code in words.
    :param status: the HTTP status.
    :param detail: for people; never holds secrets.
    :param code: the reason.
    :param outcome: what to do with the item.
    :param retry_after: seconds to wait before the next attempt.
    :param egress: the egress that met the refusal.
    :param account: the account that met the refusal.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str = Field(json_schema_extra={"enum": [code.value for code in Code]})
    outcome: str = Field(json_schema_extra={"enum": [outcome.value for outcome in Outcome]})
    retry_after: float | None = None
    egress: str | None = None
    account: str | None = None
