"""What the server and its extraction processes say to each other: a line of JSON, and for an answer its bytes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Self

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import ExtractionRefused


@dataclass(frozen=True, kw_only=True)
class Job:
    """
    One question through one egress.

    :param url: canonical URL.
    :param egress: the egress's name.
    :param proxy: its proxy URL, a secret; None: the host's own address.
    :param account: the account's name.
    :param cookies: a copy of its cookies, for this job alone.
    :param client: the one player client to ask.
    :param extractors: yt-dlp's ``allowed_extractors``.
    :param extractor_args: yt-dlp's ``extractor_args``.
    :param socket_timeout: seconds.
    :param allow_private: let connections to private addresses pass.
    :param services: ``host:port`` of plugins' own servers, which may be connected to.
    :param max_bytes: a longer answer is refused.
    :param formats: a format selector that must find something.
    :param min_height: a video with less is ``low_quality``.
    :param page: of a list: `expanding.expand` reads it; None: the URL is a video's.
    """

    url: str
    egress: str
    proxy: str | None = field(repr=False)
    extractors: list[str]
    extractor_args: dict[str, dict[str, list[str]]]
    socket_timeout: float
    allow_private: bool
    max_bytes: int
    services: list[str] = field(default_factory=list)
    account: str | None = None
    cookies: str | None = None
    client: str | None = None
    formats: str | None = None
    min_height: int | None = None
    page: dict[str, Any] | None = None

    def to_line(self) -> bytes:
        """The job as it is sent."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """The job that was sent."""
        return cls(**json.loads(line))


@dataclass(kw_only=True)
class Answer:
    """
    What a job gave; it came to its end.

    :param body: the JSON body of the answer to the server's caller.
    :param stale_cookies: whether the cookies were found to be no longer valid.
    """

    body: bytes
    stale_cookies: bool = False
    ended: ClassVar[bool] = True


class SiteRefused(ExtractionRefused):
    """
    What the site said to one job.

    ``countries`` is where the video plays, ``stale_cookies`` whether the cookies were found to be no
    longer valid, and
    ``ended`` whether the job came to its end: its process was not killed.
    """

    countries: tuple[str, ...] = ()
    stale_cookies: bool = False
    ended: bool = True


def answer_line(size: int, *, stale_cookies: bool) -> bytes:
    """What is sent before an answer's `size` bytes."""
    return json.dumps({"size": size, "stale_cookies": stale_cookies}).encode() + b"\n"


def refusal_line(refusal: SiteRefused) -> bytes:
    """A refusal as it is sent."""
    said = {
        "code": refusal.code,
        "outcome": refusal.outcome,
        "message": refusal.message[:2000],
        "retry_after": refusal.retry_after,
        "egress": refusal.egress,
        "account": refusal.account,
        "countries": refusal.countries[:300],
        "stale_cookies": refusal.stale_cookies,
    }
    return json.dumps(said).encode() + b"\n"


def read_reply(line: bytes) -> tuple[int, bool]:
    """
    The size of the answer that follows, and whether cookies were stale.

    :raises SiteRefused: if the reply is a refusal.
    """
    said: dict[str, Any] = json.loads(line)
    if "size" in said:
        return int(said["size"]), bool(said["stale_cookies"])
    refusal = SiteRefused(
        Code(said["code"]),
        said["message"],
        outcome=Outcome(said["outcome"]),
        retry_after=said["retry_after"],
        egress=said["egress"],
        account=said["account"],
    )
    refusal.countries, refusal.stale_cookies = tuple(said["countries"]), said["stale_cookies"]
    raise refusal
