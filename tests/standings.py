"""Both stores of standings with a clock that tests can move, so that the same tests run on both."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from include.ytdlp_ops.ops_server.standing import Candidate, Effect, NoneReady, StandingStore, Taken, Verdict
from tests.servers import Valkey

BASE = "test_ops_server"
Later = Callable[[int], None]
"""Lets this many ms go by."""


def later_in_redis(valkey: Valkey) -> Later:
    """Redis' own clock can't be moved: everything that is kept is moved into the past instead."""

    def later(ms: int) -> None:
        with valkey.client(decode_responses=True) as client:
            stored: Any = client.hgetall(f"{BASE}_standings")
            for subject, state in stored.items():
                client.hset(f"{BASE}_standings", subject, json.dumps(_moved(json.loads(state), ms)))

    return later


def _moved(state: dict[str, Any], ms: int) -> dict[str, Any]:
    moved = {name: state[name] - ms for name in ("used", "cooling", "banned") if state.get(name)}
    leases = {lease: deadline - ms for lease, deadline in state.get("leases", {}).items()}
    hour = {str(int(bucket) - ms // 600_000): count for bucket, count in state.get("hour", {}).items()}
    day = {str(int(bucket) - ms // 3_600_000): count for bucket, count in state.get("day", {}).items()}
    return {**state, **moved, "leases": leases, "hour": hour, "day": day}


def egresses(*names: str, **limits: Any) -> list[Candidate]:
    """Candidates; four videos at once, unless said otherwise."""
    return [Candidate(**{"name": name, "concurrency": 4, **limits}) for name in names]


def take(
    store: StandingStore, listed: list[Candidate], accounts: list[Candidate] | None = None, lease: str = "l"
) -> Taken | NoneReady:
    """Take one for a minute."""
    return store.take(lease, 60_000, listed, accounts)


def taken(
    store: StandingStore, listed: list[Candidate], accounts: list[Candidate] | None = None, lease: str = "l"
) -> Taken:
    """Take one, which must be there."""
    found = take(store, listed, accounts, lease)
    assert isinstance(found, Taken), found
    return found


def settle(store: StandingStore, found: Taken, effect: Effect, code: str = "", cool_ms: int = 0) -> None:
    """The same for egress and account."""
    code = code or ("ok" if effect is Effect.OK else "bot_check")
    subjects = found.subjects
    store.settle(
        found.lease, [Verdict(subject=one, code=code, effect=effect, cool_ms=cool_ms) for one in subjects]
    )
