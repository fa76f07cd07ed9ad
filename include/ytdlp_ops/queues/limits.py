"""
Fleet-wide limits in Redis: how many starts a minute a stage, an account or an egress may have.

A bucket is named ``stage:auth``, ``account:NAME`` or ``egress:NAME``. A limit is changed while all runs
(`set_limit`, or HSET by hand) and holds from the next start on; what has none is not limited. The stages' own are
asked inside the claim.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.queues.scripts import Scripts

if TYPE_CHECKING:
    from redis import Redis

    from include.ytdlp_ops.queues.keys import QueueKeys

_BUCKET = re.compile(r"(?:stage|account|egress):[^\x00-\x1f]{1,200}")


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

    def limits(self) -> dict[str, str]:
        """Every limit that is set: bucket -> starts a minute, or "starts a minute:burst"."""
        found: dict[bytes, bytes] = self._scripts.command("hgetall", self._keys.limits)
        return {bucket.decode(): limit.decode() for bucket, limit in found.items()}

    def wait_ms(self, bucket: str) -> int | None:
        """
        Take one start: 0 if it may begin now, else the milliseconds after which to ask again.

        :returns: nothing where the limit is 0: no start until a person changes it.
        """
        answer = int(self._scripts.run("bucket", [self._keys.limits, self._keys.buckets], [bucket]))
        return None if answer < 0 else answer
