"""When a failed item is tried again by itself."""

from __future__ import annotations

import random

BASE_SECONDS = 30.0
CAP_SECONDS = 6 * 3600.0
MAX_ATTEMPTS = 5
_RANDOM = random.Random()  # noqa: S311 - spreads load, guards no secret


def backoff_seconds(attempt: int, *, retry_after: float | None = None, source: random.Random = _RANDOM) -> float:
    """
    Seconds until the next attempt: exponential with full jitter, so that what failed together does not come
    back together.

    :param attempt: the one that just failed, from 1.
    :param retry_after: what the site or server asked for; it wins.
    :param source: seeded, it gives the same again.
    """
    if retry_after is not None and retry_after >= 0:
        return retry_after
    doublings = min(max(attempt, 1) - 1, 16)  # 2^16 times 30 s is far past the cap; a larger power would overflow
    return source.uniform(0, min(CAP_SECONDS, BASE_SECONDS * 2**doublings))
