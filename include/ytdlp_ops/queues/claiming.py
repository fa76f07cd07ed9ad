"""What goes into the steps submit and claim, and what a claim brings back."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.models import MAX_ELEMENT_BYTES, Item
from include.ytdlp_ops.queues.keys import Stage
from include.ytdlp_ops.queues.records import Record, bad_input, bad_input_id, encode, wants


@dataclass(frozen=True, kw_only=True)
class Claim:
    """
    What a claim took.

    :param records: the progress record of each claimed item; `id` and `token` are in it.
    :param taken: elements taken from the inbox; 0 means that it was empty, or that this is a repeated request.
    :param dropped: copies of items that run or are done; counted on their records.
    :param refused: elements that no attempt can work on; now in fail.
    :param later: elements put back to the tail: another request for the same id runs, or not on this host.
    :param closed: why nothing may be claimed now (paused, circuit open, limited), for log lines; else empty.
    """

    records: list[Record] = field(default_factory=list)
    taken: int = 0
    dropped: int = 0
    refused: int = 0
    later: int = 0
    closed: str = ""

    def after(self, earlier: Claim) -> Claim:
        """This one's sum with the rounds before it."""
        return Claim(
            records=earlier.records + self.records,
            taken=earlier.taken + self.taken,
            dropped=earlier.dropped + self.dropped,
            refused=earlier.refused + self.refused,
            later=earlier.later + self.later,
            closed=self.closed,
        )


def submission(stage: Stage, item: Item | str | bytes) -> list[Any]:
    """
    The four arguments that tell the submit step what to push.

    :raises BadInput: names what can't be taken.
    """
    if not isinstance(item, Item):
        item = stage.model.from_inbox(item.encode() if isinstance(item, str) else item)
    element = item.to_inbox().encode()
    if len(element) > MAX_ELEMENT_BYTES:
        raise BadInput(f"{item.item_id!r} has {len(element)} bytes; at most {MAX_ELEMENT_BYTES} are taken")
    return [item.item_id, element, wants(item), int(item.force)]


def candidate(stage: Stage, element: bytes, host: str | None, now_ms: int) -> list[Any]:
    """The five arguments that tell the claim step what an element is, for a claim by `host`."""
    try:
        item = stage.model.from_inbox(element)
    except BadInput as error:
        return [element, bad_input_id(element), encode(bad_input(stage, str(error), element)), "", "b"]
    elsewhere = host is not None and (item.not_hosts or {}).get(host, 0) > now_ms
    kind = "e" if elsewhere else "f" if item.force else "i"
    record = encode({**item.to_conf(), "stage": stage})
    return [element, item.item_id, record, wants(item), f"{kind}{secrets.token_hex(16)}"]
