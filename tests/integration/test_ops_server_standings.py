"""What both stores of standings promise, in memory and in a real Valkey."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from include.ytdlp_ops.errors import ConfigurationError
from include.ytdlp_ops.ops_server.standing import (
    Action,
    Candidate,
    Effect,
    NoneReady,
    StandingStore,
    Taken,
    Verdict,
)
from include.ytdlp_ops.ops_server.standing_in_memory import StandingInMemory
from include.ytdlp_ops.ops_server.standing_in_redis import StandingInRedis
from tests.servers import Valkey
from tests.standings import BASE, Later, egresses, later_in_redis, settle, take, taken

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
Kept = tuple[StandingStore, Later]


@pytest.fixture(params=["memory", "redis"])
def kept(request: pytest.FixtureRequest) -> Iterator[Kept]:
    if request.param == "memory":
        ahead = [0]
        yield (
            StandingInMemory(lambda: time.time_ns() // 1_000_000 + ahead[0]),
            lambda ms: ahead.append(ahead.pop() + ms),
        )
        return
    valkey: Valkey = request.getfixturevalue("valkey")
    with valkey.client() as client:
        client.flushall()
    store = StandingInRedis(valkey.url, BASE)
    yield store, later_in_redis(valkey)
    store.close()


def cool(store: StandingStore, name: str, cool_ms: int = 0) -> float:
    """Cool an egress down; for how many seconds it does."""
    store.settle("", [Verdict(subject=f"egress/{name}", code="bot_check", effect=Effect.COOL, cool_ms=cool_ms)])
    found = take(store, egresses(name))
    assert isinstance(found, NoneReady)
    assert found.wait_ms
    return found.wait_ms / 1000


def test_the_least_recently_used_is_taken(kept: Kept) -> None:
    store, later = kept
    order = []

    for _ in range(6):
        found = taken(store, egresses("a", "b", "c"))
        settle(store, found, Effect.OK)
        order.append(found.egress)
        later(1)

    assert order == ["a", "b", "c", "a", "b", "c"]


def test_one_that_has_not_worked_yet_gets_one_video_at_a_time(kept: Kept) -> None:
    store, _ = kept
    first = taken(store, egresses("a"), lease="1")

    assert take(store, egresses("a"), lease="2") == NoneReady(0)
    settle(store, first, Effect.OK)
    at_once = [take(store, egresses("a"), lease=str(number)) for number in range(5)]

    assert [isinstance(found, Taken) for found in at_once] == [True] * 4 + [False]


def test_a_lease_that_nobody_settled_ends_by_itself(kept: Kept) -> None:
    store, later = kept
    taken(store, egresses("a"), lease="1")

    later(61_000)

    assert isinstance(take(store, egresses("a"), lease="2"), Taken)


def test_a_refused_egress_cools_for_a_minute_and_returns_by_itself(kept: Kept) -> None:
    store, later = kept
    settle(store, taken(store, egresses("a")), Effect.COOL)

    waiting = take(store, egresses("a"))
    later(MINUTE_MS)

    assert isinstance(waiting, NoneReady)
    assert waiting.wait_ms is not None
    assert 50_000 < waiting.wait_ms <= MINUTE_MS
    assert isinstance(take(store, egresses("a")), Taken)


def test_each_cool_down_is_twice_as_long_and_none_longer_than_six_hours(kept: Kept) -> None:
    store, later = kept
    lasted = []

    for _ in range(12):
        lasted.append(cool(store, "a") / 60)
        later(7 * HOUR_MS)

    assert lasted == pytest.approx([1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360, 360], abs=0.1)


def test_success_ends_the_doubling(kept: Kept) -> None:
    store, later = kept
    cool(store, "a")
    later(MINUTE_MS)
    cool(store, "a")
    later(2 * MINUTE_MS)

    settle(store, taken(store, egresses("a")), Effect.OK)

    assert cool(store, "a") == pytest.approx(60, abs=5)


def test_refusals_that_ran_together_count_once(kept: Kept) -> None:
    store, _ = kept
    cool(store, "a")

    assert cool(store, "a") == pytest.approx(60, abs=5)


def test_a_success_that_began_before_the_refusal_does_not_end_the_cool_down(kept: Kept) -> None:
    store, _ = kept
    found = taken(store, egresses("a"))
    cool(store, "a")

    settle(store, found, Effect.OK)

    assert isinstance(take(store, egresses("a")), NoneReady)


def test_the_site_s_own_time_to_wait_is_kept_within_six_hours(kept: Kept) -> None:
    store, _ = kept

    assert cool(store, "a", 20 * MINUTE_MS) == pytest.approx(1200, abs=5)
    assert cool(store, "b", 90 * HOUR_MS) == pytest.approx(6 * 3600, abs=5)


def test_one_strike_is_forgiven_and_two_in_a_row_are_not(kept: Kept) -> None:
    store, _ = kept
    for effect in (Effect.STRIKE, Effect.OK, Effect.STRIKE):
        settle(store, taken(store, egresses("a")), effect)

    found = taken(store, egresses("a"))
    settle(store, found, Effect.STRIKE)

    assert isinstance(take(store, egresses("a")), NoneReady)


def test_the_hourly_budget_holds_in_any_hour_and_comes_back(kept: Kept) -> None:
    store, later = kept
    listed = egresses("a", hourly=3)
    for _ in range(3):
        settle(store, taken(store, listed), Effect.OK)
    later(40 * MINUTE_MS)

    spent = take(store, listed)
    later(30 * MINUTE_MS)

    assert isinstance(spent, NoneReady)
    assert spent.wait_ms is not None
    assert 9 * MINUTE_MS < spent.wait_ms <= 20 * MINUTE_MS
    assert isinstance(take(store, listed), Taken)


def test_the_daily_budget_holds_over_many_hours(kept: Kept) -> None:
    store, later = kept
    listed = egresses("a", daily=2)
    for _ in range(2):
        settle(store, taken(store, listed), Effect.OK)
        later(5 * HOUR_MS)

    spent = take(store, listed)
    later(15 * HOUR_MS)

    assert isinstance(spent, NoneReady)
    assert isinstance(take(store, listed), Taken)


def test_an_account_stays_with_its_egress(kept: Kept) -> None:
    store, later = kept
    accounts = [Candidate(name="anna", concurrency=1)]
    pairs = []

    for _ in range(3):
        found = taken(store, egresses("a", "b"), accounts)
        settle(store, found, Effect.OK)
        pairs.append((found.account, found.egress))
        later(1)
        settle(store, taken(store, egresses("a", "b")), Effect.OK)  # without: in turn
        later(1)

    assert pairs == [("anna", "a")] * 3


def test_an_account_waits_for_its_egress_but_leaves_one_that_is_banned(kept: Kept) -> None:
    store, later = kept
    accounts, listed = [Candidate(name="anna", concurrency=1)], egresses("a", "b")
    settle(store, taken(store, listed, accounts), Effect.OK)
    cool(store, "a")

    cooling = take(store, listed, accounts)
    store.override("egress/a", Action.BAN, "burnt")
    moved = taken(store, listed, accounts)
    later(1)

    assert isinstance(cooling, NoneReady)
    assert (moved.account, moved.egress) == ("anna", "b")


def test_an_account_whose_egress_may_not_be_used_now_is_not_moved(kept: Kept) -> None:
    store, _ = kept
    accounts = [Candidate(name="anna", concurrency=1)]
    settle(store, taken(store, egresses("a", "b"), accounts), Effect.OK)
    without_a = [Candidate(name="a", concurrency=4, allowed=False), *egresses("b")]

    found = take(store, without_a, accounts)

    assert found == NoneReady(None)


def test_accounts_are_used_in_turn_each_through_its_own_egress(kept: Kept) -> None:
    store, later = kept
    accounts = [
        Candidate(name="anna", concurrency=1, egress="b"),
        Candidate(name="ben", concurrency=1, egress="a"),
    ]
    pairs = []

    for _ in range(4):
        found = taken(store, egresses("a", "b"), accounts)
        settle(store, found, Effect.OK)
        pairs.append((found.account, found.egress))
        later(1)

    assert pairs == [("anna", "b"), ("ben", "a")] * 2


def test_a_banned_one_stays_away_until_a_person_returns_it(kept: Kept) -> None:
    store, later = kept
    store.override("egress/a", Action.BAN, "by hand")
    later(48 * HOUR_MS)

    away = take(store, egresses("a"))
    (banned,) = store.look(["egress/a"])
    store.override("egress/a", Action.UNBAN, "")

    assert away == NoneReady(None)
    assert (banned.state, banned.reason) == ("banned", "by hand")
    assert isinstance(take(store, egresses("a")), Taken)


def test_a_reset_forgets_budget_counts_and_cool_down(kept: Kept) -> None:
    store, _ = kept
    listed = egresses("a", hourly=1)
    settle(store, taken(store, listed), Effect.COOL)

    store.override("egress/a", Action.RESET, "")

    (standing,) = store.look(["egress/a"])
    assert (standing.state, standing.asked_last_hour, standing.last_day) == ("healthy", 0, {})
    assert isinstance(take(store, listed), Taken)


def test_answers_are_counted_by_code_over_an_hour_and_a_day(kept: Kept) -> None:
    store, _ = kept
    for effect, code in ((Effect.OK, "ok"), (Effect.OK, "ok"), (Effect.NONE, "unknown"), (Effect.OK, "private")):
        settle(store, taken(store, egresses("a")), effect, code)

    standing, untouched = store.look(["egress/a", "egress/b"])

    assert standing.last_hour == standing.last_day == {"ok": 2, "unknown": 1, "private": 1}
    assert (standing.success_share, standing.asked_last_hour, standing.in_use) == (0.5, 4, 0)
    assert (untouched.state, untouched.success_share) == ("healthy", None)


def test_many_at_once_never_take_more_than_the_limit(kept: Kept) -> None:
    store, _ = kept
    settle(store, taken(store, egresses("a")), Effect.OK)

    with ThreadPoolExecutor(8) as callers:
        found = list(callers.map(lambda number: take(store, egresses("a"), lease=f"l{number}"), range(40)))

    assert sum(isinstance(one, Taken) for one in found) == 4


# -- in Redis only ---------------------------------------------------------------------------------------------


def test_two_servers_share_what_they_know(valkey: Valkey) -> None:
    with valkey.client() as client:
        client.flushall()
    one, two = StandingInRedis(valkey.url, BASE), StandingInRedis(valkey.url, BASE)

    settle(one, taken(one, egresses("a")), Effect.COOL)

    assert isinstance(take(two, egresses("a")), NoneReady)
    one.close()
    two.close()


def test_a_restart_of_redis_loses_neither_standings_nor_the_server(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with Valkey(tmp_path_factory.mktemp("own")) as own:
        store = StandingInRedis(own.url, BASE)
        store.override("egress/a", Action.BAN, "by hand")

        own.stop()
        with pytest.raises(ConnectionError, match=rf"Redis at 127\.0\.0\.1:{own.port} can't keep"):
            store.look(["egress/a"])
        own.start()

        assert store.look(["egress/a"])[0].state == "banned"
        assert take(store, egresses("a")) == NoneReady(None)  # scripts are sent again
        store.close()


def test_damage_is_survived_and_a_key_of_another_type_is_named(valkey: Valkey) -> None:
    with valkey.client() as client:
        client.flushall()
        client.hset(f"{BASE}_standings", "egress/a", "no JSON")
        client.set(f"{BASE}_pairs", "a string")
    store = StandingInRedis(valkey.url, BASE)

    store.settle("", [Verdict(subject="egress/a", code="ok", effect=Effect.OK)])
    with pytest.raises(ConnectionError, match=f"WRONGKEYTYPE {BASE}_pairs is a string"):
        take(store, egresses("a"))

    assert store.look(["egress/a"])[0].last_hour == {"ok": 1}
    store.close()


def test_an_address_that_is_none_is_refused_unseen() -> None:
    with pytest.raises(ConfigurationError, match="redis_url is no Redis URL") as caught:
        StandingInRedis("http://:hunter2@redis", BASE)

    assert "hunter2" not in str(caught.value)
