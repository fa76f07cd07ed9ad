"""When a failed item is tried again."""

from __future__ import annotations

import random

import pytest

from include.ytdlp_ops.queues.backoff import BASE_SECONDS, CAP_SECONDS, backoff_seconds


class Highest(random.Random):
    """Always the upper end, to see the bound itself."""

    def uniform(self, a: float, b: float) -> float:
        return b


@pytest.mark.parametrize(
    ("attempt", "most"),
    [(1, 30), (2, 60), (3, 120), (5, 480), (10, 15360), (11, CAP_SECONDS), (10**9, CAP_SECONDS)],
)
def test_the_longest_wait_doubles_up_to_the_cap(attempt: int, most: float) -> None:
    assert backoff_seconds(attempt, source=Highest()) == most


def test_the_wait_is_spread_over_the_whole_range() -> None:
    source = random.Random(1)

    waits = [backoff_seconds(1, source=source) for _ in range(1000)]

    assert 0 <= min(waits) < BASE_SECONDS / 20
    assert BASE_SECONDS * 19 / 20 < max(waits) <= BASE_SECONDS


def test_one_seed_gives_one_wait() -> None:
    assert backoff_seconds(4, source=random.Random(7)) == backoff_seconds(4, source=random.Random(7))


@pytest.mark.parametrize("retry_after", [0, 1.5, 86400])
def test_what_the_site_asks_for_wins(retry_after: float) -> None:
    assert backoff_seconds(9, retry_after=retry_after) == retry_after


def test_a_negative_request_is_none() -> None:
    assert backoff_seconds(1, retry_after=-5, source=Highest()) == BASE_SECONDS
