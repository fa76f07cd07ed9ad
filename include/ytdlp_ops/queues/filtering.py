"""Which items are meant: the filters of listing, requeueing, cancelling and moving."""

from __future__ import annotations

import re
from dataclasses import dataclass

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.queues.reading import when_ms
from include.ytdlp_ops.queues.records import Record

HOUR_MS = 3600 * 1000
LONGEST_PATTERN = 500
_PLAIN = re.compile(r"[A-Za-z0-9_.: @-]+")  # is the same bytes in every spelling of JSON
_TIMES = ("finished_at", "heartbeat_at", "started_at", "claimed_at", "submitted_at")


@dataclass(frozen=True, kw_only=True)
class Filter:
    """
    What a record must have; what is not given is not asked for.

    :param code: its code.
    :param reason: text within its reason or message.
    :param url: a regular expression that is found in its URL or id.
    :param host: the host that worked on it.
    :param egress: the egress that it used.
    :param tag: one of its tags.
    :param older_than_ms: its last step was longer ago; what tells no time is not older.
    :param newer_than_ms: its last step was not as long ago.
    """

    code: str = ""
    reason: str = ""
    url: re.Pattern[str] | None = None
    host: str = ""
    egress: str = ""
    tag: str = ""
    older_than_ms: int | None = None
    newer_than_ms: int | None = None

    def needles(self) -> list[str]:
        """Text that a matching record holds for certain, so that the server can leave out most of the rest."""
        wanted = (self.code, self.reason, self.host, self.egress, self.tag)
        return [text for text in wanted if _PLAIN.fullmatch(text)]

    def takes(self, item_id: str, record: Record, now_ms: int) -> bool:
        """Whether a record is meant."""
        tags = record.get("tags")
        return (
            (not self.code or record.get("code") == self.code)
            and (not self.host or record.get("host") == self.host)
            and (not self.egress or record.get("egress") == self.egress)
            and (not self.tag or (isinstance(tags, list) and self.tag in tags))
            and (not self.reason or any(self.reason in str(record.get(name)) for name in ("reason", "message")))
            and (not self.url or any(map(self.url.search, (item_id, str(record.get("url", ""))))))
            and self._is_of_age(record, now_ms)
        )

    def _is_of_age(self, record: Record, now_ms: int) -> bool:
        if self.older_than_ms is None and self.newer_than_ms is None:
            return True
        moment = last_step_ms(record)
        if moment is None:
            return False
        age = now_ms - moment
        return (self.older_than_ms is None or age > self.older_than_ms) and (
            self.newer_than_ms is None or age <= self.newer_than_ms
        )


def pattern(text: str) -> re.Pattern[str] | None:
    """
    A URL filter's regular expression; nothing for no text.

    :raises BadInput: if it is none.
    """
    if not text:
        return None
    if len(text) > LONGEST_PATTERN:
        raise BadInput(f"url_pattern has {len(text)} characters; at most {LONGEST_PATTERN} are taken")
    try:
        return re.compile(text)
    except re.error as error:
        raise BadInput(
            f"url_pattern {text!r} is no regular expression: {error}; escape . ? + ( [ with \\"
        ) from None


def last_step_ms(record: Record) -> int | None:
    """When the last thing happened to an item, unix ms; nothing where its record tells none."""
    return next((ms for name in _TIMES if (ms := when_ms(record.get(name))) is not None), None)
