"""
What is queued: one validated class per stage, one way in (`from_inbox`) and one way out (`to_conf`).

An inbox element is a bare URL, a bare 11-character YouTube id, or a JSON object. Keys that are not ours are
kept and carried through.
"""

from __future__ import annotations

import json
import re
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import from_json, to_json

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.urls import canonical_url

MAX_ELEMENT_BYTES = 64 * 1024
MAX_DEPTH = 32
_LARGE_EXPONENT = re.compile(r"[eE]\+?\d{3}")  # may be infinite, which JSON has no word for

RECORD_FIELDS = frozenset(
    {
        "id", "stage", "claimed_at", "finished_at", "state", "token", "dag_id", "run_id", "host",
        "heartbeat_at", "progress", "code",
        "outcome", "reason", "message", "retryable", "retry_at", "log_tail",
        "duplicates", "submitted_again", "raw", "raw_bytes", "result", "cancel_requested", "started_at",
    }
)  # fmt: skip
"""Fields that a stage adds to an item's record; they never travel back into an inbox."""
REFUSED_THROUGH = frozenset({"egress", "account"})
"""Who met a refusal: of a record, not of the item, unless its class has the field."""


class Item(BaseModel):
    """
    What every stage's item has.

    :param tags: free words that rules, routing and reports use.
    :param profile: a named set of yt-dlp options, kept on the server side.
    :param attempt: how often this item has been claimed, this time included.
    :param force: do it again although it is done.
    :param submitted_at: UTC, ISO 8601, from Redis TIME.
    :param submitted_by: who or what handed it in.
    :param source: where it came from: a playlist, a file, a table.
    :param previous: the record of the request before this one, where this one took it away.
    :param not_hosts: hosts that handed it back and shall not claim it before a time: name -> unix ms.
    """

    model_config = ConfigDict(extra="allow", str_max_length=8192)

    tags: list[str] = Field(default_factory=list, max_length=64)
    profile: str | None = None
    attempt: int = Field(default=1, ge=1)
    force: bool = False
    submitted_at: str | None = None
    submitted_by: str | None = None
    source: str | None = None
    previous: dict[str, Any] | None = None
    not_hosts: dict[str, int] | None = Field(default=None, max_length=64)

    @property
    def item_id(self) -> str:
        """The field in every HASH."""
        raise NotImplementedError

    @classmethod
    def from_inbox(cls, raw: bytes) -> Self:
        """
        Read an inbox element.

        :raises BadInput: with what is wrong, and where.
        """
        return cls.from_record(_read_json(raw))

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """
        The item that a record was made of, without what the stage added.

        :raises BadInput: with what is wrong, and where.
        """
        fields = {
            key: value
            for key, value in record.items()
            if key not in RECORD_FIELDS and (key not in REFUSED_THROUGH or key in cls.model_fields)
        }
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "the element"
            raise BadInput(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None

    def to_conf(self) -> dict[str, Any]:
        """The item as plain JSON values, its id included: for an inbox, a record or a run's conf."""
        return {**self.model_dump(mode="json", exclude_none=True), "id": self.item_id}

    def to_inbox(self) -> str:
        """The item as an inbox element."""
        return to_json(self.to_conf()).decode()


class UrlItem(Item):
    """
    One URL, for the stages auth and v01.

    :param url: what was handed in; becomes its canonical spelling, which is the id.
    :param formats: a yt-dlp format selector.
    :param refresh: the format jobs that come back for fresh URLs, where that is why it is asked again.
    :param wanted: the format ids of the whole video, then.
    :param priority: kept and carried through; an urgent item is pushed to the head of its inbox.
    """

    url: str
    formats: str | None = Field(default=None, max_length=512)
    refresh: list[str] = Field(default_factory=list)
    wanted: list[str] = Field(default_factory=list)
    priority: int | None = None

    @field_validator("url")
    @classmethod
    def _canonical(cls, url: str) -> str:
        try:
            return canonical_url(url)
        except BadInput as error:
            raise ValueError(str(error)) from None

    @property
    def item_id(self) -> str:
        """The canonical URL."""
        return self.url


class PublishItem(UrlItem):
    """
    One video whose formats have all ended, for the stage publish.

    :param jobs: item ids of its format jobs.
    :param extractor: yt-dlp's extractor, in lower case.
    :param video_id: the extractor's id of the video.
    :param info_json_path: URI of its info, for metadata and sidecars.
    """

    jobs: list[str] = Field(min_length=1, max_length=256)
    extractor: str = Field(min_length=1, max_length=128)
    video_id: str = Field(min_length=1, max_length=512)
    info_json_path: str | None = None


class FormatItem(Item):
    """
    One format of one video, for the stage dl.

    :param url: the canonical URL that it came from.
    :param extractor: yt-dlp's extractor, in lower case: ``youtube``.
    :param video_id: the extractor's id of the video.
    :param format_id: yt-dlp's id of the format.
    :param info_json_path: URI into the info store.
    :param egress: the egress that extracted; the media URL is bound to it.
    :param account: the account that extracted, if one did.
    :param client: the player client whose answer holds the format.
    :param expires_at: when the media URL ends, unix seconds.
    :param bytes: promised size.
    :param duration: promised length, seconds.
    :param group: the item id of the video that this format belongs to.
    :param wanted: the format ids of all formats of that video.
    """

    url: str
    extractor: str = Field(min_length=1, max_length=128)
    video_id: str = Field(min_length=1, max_length=512)
    format_id: str = Field(min_length=1, max_length=128)
    info_json_path: str
    egress: str | None = None
    account: str | None = None
    client: str | None = None
    expires_at: float | None = None
    bytes: int | None = Field(default=None, ge=0)
    duration: float | None = Field(default=None, ge=0)
    group: str | None = None
    wanted: list[str] = Field(default_factory=list)

    @property
    def item_id(self) -> str:
        """``<extractor>:<video id>:<format id>``."""
        return f"{self.extractor}:{self.video_id}:{self.format_id}"


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(_depth, inner), default=0)


def _read_text(raw: bytes) -> str:
    if len(raw) > MAX_ELEMENT_BYTES:
        raise BadInput(f"the element has {len(raw)} bytes; at most {MAX_ELEMENT_BYTES} are taken")
    try:
        return raw.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise BadInput(f"the element is not UTF-8: {error.reason} at byte {error.start}") from None


def _read_json(raw: bytes) -> dict[str, Any]:
    text = _read_text(raw)
    if not text.startswith(("{", "[", '"')):
        return {"url": text}
    try:
        fields = from_json(text, allow_inf_nan=False)
        if _LARGE_EXPONENT.search(text):
            json.dumps(fields, allow_nan=False)
        deep = text.count("[") + text.count("{") > MAX_DEPTH and _depth(fields) > MAX_DEPTH
    except ValueError as error:
        deep = "recursion limit" in str(error)
        if not deep:
            raise BadInput(f"the element starts like JSON and is none: {error}") from None
    if deep:
        raise BadInput(f"the element nests deeper than {MAX_DEPTH} levels")
    if isinstance(fields, str):
        return {"url": fields}
    if not isinstance(fields, dict):
        raise BadInput(f"the element is a JSON {type(fields).__name__}; an object with 'url' is needed")
    return fields
