"""
Fleet-wide limits in Redis: how many starts a minute, and how many bytes a second.

Starts are limited by the buckets ``stage:auth``, ``account:NAME`` and ``egress:NAME``, bytes by
``bandwidth:fleet`` and ``bandwidth:egress:NAME``. A limit is changed while all runs (`set_limit`, `set_bandwidth`,
or HSET by hand) and holds from the next start or byte on; what has none is not limited. The stages' own are asked
inside the claim.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.queues.scripts import Scripts

if TYPE_CHECKING:
    from redis import Redis

    from include.ytdlp_ops.queues.keys import QueueKeys

FLEET_BANDWIDTH = "bandwidth:fleet"

_BUCKET = re.compile(r"(?:stage|account|egress):[^\x00-\x1f]{1,200}")
_BANDWIDTH = re.compile(r"bandwidth:(?:fleet|egress:[^\x00-\x1f]{1,200})")


@dataclass(frozen=True)
class Turn:
    """
    Where a reader of bytes stands in one bucket.

    :param ticket: to be shown when asking again.
    :param wait_seconds: before it goes on, or asks again: a minute at most.
    :param rate: the limit, bytes a second; None: there is none.
    """

    ticket: int
    wait_seconds: float
    rate: float | None


class Limits:
    """
    The limits of one installation.

    :param client: from `connecting.connect`.
    :param keys: of any of its stages.
    """

    def __init__(self, client: Redis, keys: QueueKeys, *, patience_seconds: float = 10) -> None:
        self._keys = keys
        self._scripts = Scripts(client, patience_seconds)

    def set_limit(self, bucket: str, a_minute: int | None, *, burst: int | None = None) -> None:
        """
        Set or, with no number, lift a limit; 0 stops the bucket's starts.

        :param burst: starts at once after a quiet time; a tenth of a minute's if not given, at least 1.
        :raises BadInput: for a bucket or number that can't be.
        """
        if not _BUCKET.fullmatch(bucket):
            raise BadInput(f"bucket {bucket!r} must be stage:, account: or egress: and a name")
        if a_minute is not None and (a_minute < 0 or (burst is not None and burst < 1)):
            raise BadInput(
                f"limit of {bucket!r}: {a_minute} a minute, burst {burst} can't be; give 0 or more, 1 or more"
            )
        if a_minute is None:
            self._scripts.command("hdel", self._keys.limits, bucket)
            return
        if a_minute == 0:
            burst = 0  # not even one
        text = str(a_minute) if burst is None else f"{a_minute}:{burst}"
        self._scripts.command("hset", self._keys.limits, bucket, text)

    def set_bandwidth(self, bucket: str, bytes_a_second: int | None) -> None:
        """
        Set or, with no number, lift a limit on bytes; 0 lets nothing through until it is changed.

        :param bucket: ``bandwidth:fleet`` or ``bandwidth:egress:NAME``.
        :raises BadInput: for a bucket or number that can't be.
        """
        if not _BANDWIDTH.fullmatch(bucket):
            raise BadInput(f"bucket {bucket!r} must be {FLEET_BANDWIDTH!r}, or 'bandwidth:egress:' and a name")
        if bytes_a_second is None:
            self._scripts.command("hdel", self._keys.limits, bucket)
            return
        if bytes_a_second < 0:
            raise BadInput(f"limit of {bucket!r}: {bytes_a_second} bytes a second can't be; give 0 or more")
        self._scripts.command("hset", self._keys.limits, bucket, str(bytes_a_second))

    def limits(self) -> dict[str, str]:
        """Every limit that is set: bucket -> starts a minute, "starts a minute:burst", or bytes a second."""
        found: dict[bytes, bytes] = self._scripts.command("hgetall", self._keys.limits)
        return {bucket.decode(): limit.decode() for bucket, limit in found.items()}

    def wait_ms(self, bucket: str) -> int | None:
        """
        Take one start: 0 if it may begin now, else the milliseconds after which to ask again.

        :returns: nothing where the limit is 0: no start until a person changes it.
        """
        answer = int(self._scripts.run("bucket", [self._keys.limits, self._keys.buckets], [bucket]))
        return None if answer < 0 else answer

    def spend(self, tickets: Mapping[str, int], count: int) -> list[Turn]:
        """
        Account for bytes that came, in every bucket named; asked twice, they count twice.

        :param tickets: bucket -> the ticket that it last gave this reader, or 0.
        :param count: bytes since the last time; 0 where it is only asked how long to wait still.
        :returns: a turn for each bucket, in their order.
        :raises QueueError: if Redis does not answer.
        """
        named = [part for bucket, ticket in tickets.items() for part in (bucket, ticket)]
        said = self._scripts.run("bandwidth", [self._keys.limits, self._keys.buckets], [count, *named])
        return [
            Turn(int(ticket), wait_ms / 1000, None if float(rate) < 0 else float(rate))
            for ticket, wait_ms, rate in zip(said[::3], said[1::3], said[2::3], strict=True)
        ]
