"""
What the site thinks of each egress and account: healthy, cooling until a time, or banned; and who asks next.

One set of rules, two stores: `standing_in_memory` for a single server, `standing_in_redis` for several that share
their pool. Times are unix milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

FIRST_COOL_MS = 60_000
LONGEST_COOL_MS = 6 * 3_600_000
STRIKES = 2
"""So many failures in a row that may be somebody else's fault are taken for the egress's."""
TEN_MINUTES_MS, HOUR_MS = 600_000, 3_600_000
HOUR_BUCKETS, DAY_BUCKETS, TALLY_BUCKETS = 6, 24, 144

State = dict[str, Any]
"""
What a store keeps of one subject: ``used``, ``cooling``, ``banned`` (ms), ``step`` (cool-downs since the last
success), ``strikes``, ``proven`` (the last answer was good), ``reason``, ``leases`` (id → deadline, ms), ``hour``
and ``day`` (bucket → videos asked).
"""
Tally = dict[str, dict[str, int]]
"""Bucket of ten minutes → code (``ok`` for a video that came) → how often."""


class Effect(StrEnum):
    """What an answer means for the egress or account that got it."""

    NONE = "none"
    OK = "ok"  # it works
    STRIKE = "strike"  # a second one in a row is a cool-down
    COOL = "cool"  # 1 min, and twice as long each time until it works again, 6 h at most
    BAN = "ban"  # set aside until a person returns it


class Action(StrEnum):
    """What a person may do to an egress or account."""

    BAN = "ban"
    UNBAN = "unban"  # and end its cool-down
    RESET = "reset"  # forget all that is known of it


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """
    An egress or account that may be chosen.

    :param concurrency: most videos at once; one, until it has worked.
    :param hourly: most videos within an hour; None: any number.
    :param daily: most videos within 24 hours.
    :param allowed: whether this request may use it; one that it may not still keeps its account.
    :param egress: of an account: the egress that it is bound to.
    """

    name: str
    concurrency: int
    hourly: int | None = None
    daily: int | None = None
    allowed: bool = True
    egress: str | None = None


@dataclass(frozen=True, kw_only=True)
class Taken:
    """An egress, perhaps with an account, that is taken until it is settled or its lease ends."""

    lease: str
    egress: str
    account: str | None = None

    @property
    def subjects(self) -> list[str]:
        """Egress and account as the store names them."""
        return [egress_subject(self.egress), *([account_subject(self.account)] if self.account else [])]


@dataclass(frozen=True)
class NoneReady:
    """
    Nothing can be taken.

    :param wait_ms: when the first one may be: 0, as soon as one that is busy comes free; None: never by itself.
    """

    wait_ms: int | None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """
    An answer, as it concerns one subject.

    :param code: what is counted: ``ok``, or why not.
    :param cool_ms: least time to cool, where the site said so.
    """

    subject: str
    code: str
    effect: Effect
    cool_ms: int = 0


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How one egress or account stands, for people and metrics."""

    subject: str
    state: str
    cooling_until: float | None
    banned_at: float | None
    reason: str | None
    in_use: int
    used_at: float | None
    asked_last_hour: int
    asked_last_day: int
    last_hour: Mapping[str, int]
    last_day: Mapping[str, int]

    @property
    def success_share(self) -> float | None:
        """The last hour's; None where nothing was asked."""
        asked = sum(self.last_hour.values())
        return self.last_hour.get("ok", 0) / asked if asked else None


class StandingStore(Protocol):
    """Where standings are kept; each call is one atomic step. Raises `ConnectionError` if it can't be reached."""

    def take(
        self, lease: str, lease_ms: int, egresses: Sequence[Candidate], accounts: Sequence[Candidate] | None
    ) -> Taken | NoneReady:
        """
        Take the least recently used egress that is ready; with accounts, the account and its own egress.

        An account stays with the egress that it was first used through, until that is banned or gone.

        :param egresses: all of the configuration.
        :param accounts: those that may be chosen, all allowed; None: ask without.
        """

    def settle(self, lease: str, verdicts: Sequence[Verdict]) -> None:
        """Give back what was taken under this lease (an empty one: nothing was), and count what was answered."""

    def override(self, subject: str, action: Action, reason: str) -> None:
        """Do what a person asks."""

    def look(self, subjects: Sequence[str]) -> list[Standing]:
        """How these stand now."""

    def close(self) -> None:
        """Close its connections."""


def egress_subject(name: str) -> str:
    """An egress as the store names it."""
    return f"egress/{name}"


def account_subject(name: str) -> str:
    """An account as the store names it."""
    return f"account/{name}"


def describe(subject: str, state: State, tally: Tally, now: int) -> Standing:
    """A store's state and tally, for people."""
    cooling = state.get("cooling", 0)
    name = "banned" if state.get("banned") else "cooling" if cooling > now else "healthy"
    bucket = now // TEN_MINUTES_MS
    return Standing(
        subject=subject,
        state=name,
        cooling_until=cooling / 1000 if name == "cooling" else None,
        banned_at=state["banned"] / 1000 if state.get("banned") else None,
        reason=state.get("reason") or None if name != "healthy" else None,
        in_use=sum(deadline > now for deadline in state.get("leases", {}).values()),
        used_at=state["used"] / 1000 if state.get("used") else None,
        asked_last_hour=sum(_recent(state.get("hour", {}), bucket, HOUR_BUCKETS).values()),
        asked_last_day=sum(_recent(state.get("day", {}), now // HOUR_MS, DAY_BUCKETS).values()),
        last_hour=_counted(tally, bucket, HOUR_BUCKETS),
        last_day=_counted(tally, bucket, TALLY_BUCKETS),
    )


def _recent(buckets: Mapping[str, int], newest: int, many: int) -> dict[str, int]:
    return {bucket: count for bucket, count in buckets.items() if int(bucket) > newest - many}


def _counted(tally: Tally, newest: int, many: int) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for bucket, codes in tally.items():
        if int(bucket) > newest - many:
            counts.update(codes)
    return dict(counts)
