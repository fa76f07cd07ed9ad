"""What the server and its extraction processes say to each other: a line of JSON, and for an info its bytes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import ExtractionRefused


@dataclass(frozen=True, kw_only=True)
class Job:
    """
    One extraction through one egress.

    :param url: canonical URL.
    :param egress: the egress's name.
    :param proxy: its proxy URL, a secret; None: the host's own address.
    :param client: the one player client to ask.
    :param extractors: yt-dlp's ``allowed_extractors``.
    :param extractor_args: yt-dlp's ``extractor_args``.
    :param socket_timeout: seconds.
    """

    url: str
    egress: str
    proxy: str | None = field(repr=False)
    client: str | None
    extractors: list[str]
    extractor_args: dict[str, dict[str, list[str]]]
    socket_timeout: float

    def to_line(self) -> bytes:
        """The job as it is sent."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """The job that was sent."""
        return cls(**json.loads(line))


def answer_line(size: int) -> bytes:
    """What is sent before an answer's `size` bytes."""
    return json.dumps({"size": size}).encode() + b"\n"


def refusal_line(refusal: ExtractionRefused) -> bytes:
    """A refusal as it is sent."""
    said = {
        "code": refusal.code,
        "outcome": refusal.outcome,
        "message": refusal.message[:2000],
        "retry_after": refusal.retry_after,
        "egress": refusal.egress,
    }
    return json.dumps(said).encode() + b"\n"


def read_reply(line: bytes) -> int:
    """
    The size of the answer that follows.

    :raises ExtractionRefused: if the reply is a refusal.
    """
    said: dict[str, Any] = json.loads(line)
    if "size" in said:
        return int(said["size"])
    raise ExtractionRefused(
        Code(said["code"]),
        said["message"],
        outcome=Outcome(said["outcome"]),
        retry_after=said["retry_after"],
        egress=said["egress"],
    )
