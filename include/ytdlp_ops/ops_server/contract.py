"""The shapes of the ops server's HTTP contract, for our server, our client and OpenAPI."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass

from include.ytdlp_ops.codes import Code, Outcome

PROBLEM_JSON = "application/problem+json"
ShortText = Annotated[str, Field(max_length=128)]


class InfoRequest(BaseModel):
    """
    Body of ``POST /v1/info``.

    :param url: http(s) URL or a bare 11-character YouTube id of one video.
    :param tags: free words of the item, for servers that route by them.
    :param client: the one player client to ask.
    :param account: the account to ask with.
    :param egress: the one egress to use.
    :param exclude_egress: egresses not to use.
    """

    model_config = ConfigDict(extra="forbid")

    url: str = Field(min_length=1, max_length=8192)
    tags: list[ShortText] = Field(default=[], max_length=64)
    client: str | None = Field(default=None, pattern=r"^[a-z][a-z0-9_]{0,39}$")
    account: ShortText | None = None
    egress: ShortText | None = None
    exclude_egress: list[ShortText] = Field(default=[], max_length=1024)


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
    """

    info: dict[str, Any] = field(repr=False)
    egress: str | None = None
    account: str | None = None
    client: str | None = None
    proxy: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    warnings: tuple[str, ...] = ()
    yt_dlp_version: str | None = None


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
