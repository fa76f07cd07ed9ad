"""Standings of a single server, forgotten with it; the rules are those of ``scripts/*.lua``."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from include.ytdlp_ops.ops_server.standing import (
    DAY_BUCKETS,
    FIRST_COOL_MS,
    HOUR_BUCKETS,
    HOUR_MS,
    LONGEST_COOL_MS,
    STRIKES,
    TALLY_BUCKETS,
    TEN_MINUTES_MS,
    Action,
    Candidate,
    Effect,
    NoneReady,
    Standing,
    State,
    Taken,
    Tally,
    Verdict,
    account_subject,
    describe,
    egress_subject,
)

NEVER = -1


class StandingInMemory:
    """
    A `StandingStore` for threads of one process.

    :param now_ms: the clock.
    """

    def __init__(self, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._now_ms = now_ms
        self._states: dict[str, State] = {}
        self._tallies: dict[str, Tally] = {}
        self._pairs: dict[str, str] = {}
        self._lock = threading.Lock()

    def take(
        self, lease: str, lease_ms: int, egresses: Sequence[Candidate], accounts: Sequence[Candidate] | None
    ) -> Taken | NoneReady:
        """See `StandingStore`."""
        with self._lock:
            now, waits = self._now_ms(), list[int]()
            found = (
                self._ready_account(accounts, egresses, now, waits)
                if accounts is not None
                else (None, self._ready(egress_subject, [one for one in egresses if one.allowed], now, waits))
            )
            account, egress = found
            if not egress:
                return _none_ready(waits)
            taken = Taken(lease=lease, egress=egress, account=account)
            for subject in taken.subjects:
                _use(self._states.setdefault(subject, {}), lease, now, now + lease_ms)
            if account:
                self._pairs[account] = egress
            return taken

    def settle(self, lease: str, verdicts: Sequence[Verdict]) -> None:
        """See `StandingStore`."""
        with self._lock:
            now = self._now_ms()
            for verdict in verdicts:
                state = self._states.setdefault(verdict.subject, {})
                state.get("leases", {}).pop(lease, None)
                _judge(state, verdict, now)
                self._count(verdict, now // TEN_MINUTES_MS)

    def override(self, subject: str, action: Action, reason: str) -> None:
        """See `StandingStore`."""
        with self._lock:
            state = self._states.setdefault(subject, {})
            if action is Action.RESET:
                del self._states[subject]
                self._tallies.pop(subject, None)
                self._pairs.pop(subject.removeprefix("account/"), None)
            elif action is Action.UNBAN:
                state |= {"banned": 0, "cooling": 0, "step": 0, "strikes": 0, "reason": ""}
            else:
                state |= {"banned": self._now_ms(), "reason": reason}

    def look(self, subjects: Sequence[str]) -> list[Standing]:
        """See `StandingStore`."""
        with self._lock:
            now = self._now_ms()
            return [describe(one, self._states.get(one, {}), self._tallies.get(one, {}), now) for one in subjects]

    def close(self) -> None:
        """See `StandingStore`."""

    def _ready_account(
        self, accounts: Sequence[Candidate], egresses: Sequence[Candidate], now: int, waits: list[int]
    ) -> tuple[str | None, str | None]:
        known = {one.name: one for one in egresses}
        for account in self._by_use(account_subject, accounts):
            wait = _wait(self._states.get(account_subject(account.name), {}), account, now)
            if wait is not None:
                waits.append(wait)
                continue
            bound = account.egress or self._pairs.get(account.name)
            pair = known.get(bound or "")
            gone = pair is None or self._states.get(egress_subject(pair.name), {}).get("banned")
            choice = egresses if gone and not account.egress else [pair] if pair else []
            if egress := self._ready(egress_subject, [one for one in choice if one.allowed], now, waits):
                return account.name, egress
        return None, None

    def _ready(
        self, subject: Callable[[str], str], candidates: Sequence[Candidate], now: int, waits: list[int]
    ) -> str | None:
        for one in self._by_use(subject, candidates):
            wait = _wait(self._states.get(subject(one.name), {}), one, now)
            if wait is None:
                return one.name
            waits.append(wait)
        return None

    def _by_use(self, subject: Callable[[str], str], candidates: Sequence[Candidate]) -> list[Candidate]:
        return sorted(candidates, key=lambda one: int(self._states.get(subject(one.name), {}).get("used", 0)))

    def _count(self, verdict: Verdict, bucket: int) -> None:
        tally = self._tallies.setdefault(verdict.subject, {})
        codes = tally.setdefault(str(bucket), {})
        codes[verdict.code] = codes.get(verdict.code, 0) + 1
        _prune(tally, bucket - TALLY_BUCKETS)


def _wait(state: State, limits: Candidate, now: int) -> int | None:
    """Nothing where it is ready; else the ms until it may be, 0 while it is busy, `NEVER` while it is banned."""
    if state.get("banned"):
        return NEVER
    over = [state.get("cooling", 0)]
    for buckets, size, many, most in (
        (state.get("hour", {}), TEN_MINUTES_MS, HOUR_BUCKETS, limits.hourly),
        (state.get("day", {}), HOUR_MS, DAY_BUCKETS, limits.daily),
    ):
        live = {int(bucket): count for bucket, count in buckets.items() if int(bucket) > now // size - many}
        if most is not None and sum(live.values()) >= most:
            over.append((min(live) + many) * size)
    if max(over) > now:
        return int(max(over)) - now
    in_use = sum(deadline > now for deadline in state.get("leases", {}).values())
    return 0 if in_use >= (limits.concurrency if state.get("proven") else 1) else None


def _use(state: State, lease: str, now: int, deadline: int) -> None:
    leases = state.get("leases", {})
    state["leases"] = {key: end for key, end in leases.items() if end > now} | {lease: deadline}
    state["used"] = now
    for name, size, many in (("hour", TEN_MINUTES_MS, HOUR_BUCKETS), ("day", HOUR_MS, DAY_BUCKETS)):
        buckets, bucket = state.setdefault(name, {}), now // size
        buckets[str(bucket)] = buckets.get(str(bucket), 0) + 1
        _prune(buckets, bucket - many)


def _judge(state: State, verdict: Verdict, now: int) -> None:
    effect = verdict.effect
    if effect is Effect.STRIKE:
        state["strikes"] = state.get("strikes", 0) + 1
        effect = Effect.COOL if state["strikes"] >= STRIKES else effect
    if effect in (Effect.STRIKE, Effect.COOL):
        state["proven"] = False
    if effect is Effect.OK:
        state |= {"proven": True, "strikes": 0}
        if state.get("cooling", 0) <= now:
            state["step"] = 0
    elif effect is Effect.BAN:
        state |= {"banned": now, "reason": verdict.code}
    elif effect is Effect.COOL and state.get("cooling", 0) <= now:  # those that ran together count once
        state["step"] = state.get("step", 0) + 1
        lasts = max(min(FIRST_COOL_MS << min(state["step"] - 1, 20), LONGEST_COOL_MS), verdict.cool_ms)
        state |= {"cooling": now + min(lasts, LONGEST_COOL_MS), "strikes": 0, "reason": verdict.code}


def _prune(buckets: dict[str, int] | Tally, oldest: int) -> None:
    for bucket in [bucket for bucket in buckets if int(bucket) <= oldest]:
        del buckets[bucket]


def _none_ready(waits: list[int]) -> NoneReady:
    return NoneReady(min((wait for wait in waits if wait != NEVER), default=None))
