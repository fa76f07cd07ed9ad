"""Random steps and faults against a reference model in plain Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from include.ytdlp_ops.errors import CancelRequested, LeaseLost
from include.ytdlp_ops.models import UrlItem
from include.ytdlp_ops.queues.connecting import address_of, connect
from include.ytdlp_ops.queues.doctor import examine
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue, Record
from include.ytdlp_ops.queues.reading import pages
from include.ytdlp_ops.queues.recovery import requeue, sweep
from tests.queueing import inbox_of, url_of
from tests.servers import Valkey

MAX_ATTEMPTS = 3
HOUR_MS = 3_600_000
numbers = st.integers(0, 4)
formats = st.sampled_from([None, "ba"])
which = st.integers(0, 59)  # of those that are there, by its remainder
ENDS: dict[Place, Record] = {
    Place.RESULT: {},
    Place.SKIPPED: {"code": "private"},
    Place.FAIL: {"code": "network", "retryable": True},
    Place.DEFERRED: {"code": "upcoming", "outcome": "defer"},
}


class Model(RuleBasedStateMachine):
    """
    The queue beside a dict: item id -> (place, token, attempt), and a list of what waits.

    Old tokens are kept, and used again: whatever they try must change nothing.
    """

    queue: ClassVar[Queue]

    def __init__(self) -> None:
        super().__init__()
        self.queue.client.flushall()
        self.waits: list[tuple[str, str | None, int, bool]] = []  # url, formats, attempt, force
        self.place: dict[str, Place] = {}
        self.records: dict[str, Record] = {}
        self.asked: dict[str, str | None] = {}  # formats of what is in a place
        self.attempts: dict[str, int] = {}
        self.flagged: set[str] = set()
        self.stale: list[Record] = []
        self.submitted: set[str] = set()

    # -- in --
    def _has_room(self) -> bool:
        """One look of a claim shows all that waits: a claim that finds something looks no second time."""
        return len(self.waits) < 10

    @rule(number=numbers, wanted=formats, force=st.booleans())
    def submit(self, number: int, wanted: str | None, force: bool) -> None:
        url = url_of(number)
        if not self._has_room():
            return

        (answer,) = self.queue.submit([UrlItem(url=url, formats=wanted, force=force)])

        place = self.place.get(url)
        same = self.asked.get(url) == wanted
        if place is Place.PROGRESS and same:
            assert answer == "running"
        elif place is Place.RESULT and same and not force:
            assert answer == "already_done"
        else:
            assert answer == "queued"
            self.waits.append((url, wanted, 1, force))
        self.submitted.add(url)

    @rule(number=numbers)
    def push_bare(self, number: int) -> None:
        if not self._has_room():
            return
        self.queue.client.rpush(self.queue.keys.inbox, url_of(number)[-11:])
        self.waits.append((url_of(number), None, 1, False))
        self.submitted.add(url_of(number))

    @rule(most=st.integers(1, 4))
    def claim(self, most: int) -> None:
        expected = self._claims(most)

        claim = self.queue.claim(most)

        assert [(record["url"], record.get("formats"), record["attempt"]) for record in claim.records] == expected
        for record in claim.records:
            self.records[record["url"]] = record

    def _claims(self, most: int) -> list[tuple[str, str | None, int]]:
        """What a claim of so many must take, by the rules in words."""
        taken: list[tuple[str, str | None, int]] = []
        later = []
        while self.waits and len(taken) < most:
            url, wanted, attempt, force = self.waits.pop(0)
            place, same = self.place.get(url), self.asked.get(url) == wanted
            if place is Place.PROGRESS:
                if not same:
                    later.append((url, wanted, attempt, force))
                continue
            if place is Place.RESULT and same and not force:
                continue
            if place not in (None, Place.RESULT):
                attempt = 1
            self.place[url], self.asked[url], self.attempts[url] = Place.PROGRESS, wanted, attempt
            taken.append((url, wanted, attempt))
        self.waits += later
        return taken

    # -- in the worker --
    def _one_running(self, which: int) -> str:
        """By number, so that what is drawn does not depend on the server: hypothesis would call that flaky."""
        running = sorted(url for url, place in self.place.items() if place is Place.PROGRESS)
        return running[which % len(running)] if running else ""

    @rule(which=which)
    def begin(self, which: int) -> None:
        url = self._one_running(which)
        record = self.records.get(url)
        if record is None or record["state"] == "running":
            return
        self.stale.append(record)

        self.records[url] = self.queue.begin(url, record["token"], host="x")

    @rule(which=which)
    def heartbeat(self, which: int) -> None:
        url = self._one_running(which)
        if not url:
            return

        try:
            self.queue.heartbeat(self.records[url], {"downloaded_bytes": 1})
            flagged = False
        except CancelRequested:
            flagged = True

        assert flagged == (url in self.flagged)

    @rule(which=which, place=st.sampled_from(sorted(ENDS)), retry=st.booleans())
    def finish(self, which: int, place: Place, retry: bool) -> None:
        url = self._one_running(which)
        if not url:
            return
        due = place is Place.DEFERRED or (place is Place.FAIL and retry and self.attempts[url] < MAX_ATTEMPTS)
        outcome = {**ENDS[place], "retryable": due}

        for _ in range(2):  # the second as after a lost reply
            self.queue.finish(self.records[url], place, outcome, due_in_ms=HOUR_MS if due else None)

        self._leave(url, place)

    def _leave(self, url: str, place: Place | None) -> None:
        self.stale.append(self.records.pop(url))
        self.flagged.discard(url)
        if place is None:
            self.place.pop(url)
        else:
            self.place[url] = place

    @rule(which=which)
    def release(self, which: int) -> None:
        url = self._one_running(which)
        if not url:
            return

        assert self.queue.release(self.records[url])

        if url in self.flagged:
            self._leave(url, Place.SKIPPED)
        else:
            self.waits.insert(0, (url, self.asked[url], self.attempts[url], self._force(url)))
            self._leave(url, None)

    def _force(self, url: str) -> bool:
        return bool(self.records[url].get("force"))

    @rule(which=which)
    def act_with_a_stale_token(self, which: int) -> None:
        if not self.stale:
            return
        record = self.stale[which % len(self.stale)]
        before = self._dump()

        assert not self.queue.release(record)
        for step in (
            lambda: self.queue.begin(record["id"], record["token"], host="late"),
            lambda: self.queue.heartbeat(record),
        ):
            with pytest.raises(LeaseLost):
                step()

        assert self._dump() == before

    # -- from outside --
    @rule(which=which)
    def stall_and_sweep(self, which: int) -> None:
        url = self._one_running(which)
        if not url:
            return
        self.queue.client.zadd(self.queue.keys.leases, {url: 1})
        self._make_all_due()
        force = self._force(url)

        swept = sweep(self.queue, max_attempts=MAX_ATTEMPTS)

        self._promote_all(swept.promoted)
        if url in self.flagged:
            self._leave(url, Place.SKIPPED)
        elif self.attempts[url] >= MAX_ATTEMPTS:
            self._leave(url, Place.FAIL)
        else:
            at = len(self.waits) - swept.promoted
            self.waits.insert(at, (url, self.asked[url], self.attempts[url] + 1, force))
            self._leave(url, None)
        assert swept.returned + swept.dead + swept.cancelled == 1

    @rule()
    def sweep_what_is_due(self) -> None:
        self._make_all_due()

        self._promote_all(sweep(self.queue, max_attempts=MAX_ATTEMPTS).promoted)

        assert self.queue.client.zcard(self.queue.keys.due) == 0

    def _make_all_due(self) -> None:
        """By hand: what the clock did between two steps would be another thing each time."""
        due: list[bytes] = self.queue.steps.command("zrange", self.queue.keys.due, 0, -1)
        if due:
            self.queue.client.zadd(self.queue.keys.due, dict.fromkeys(due, 1))

    def _promote_all(self, count: int) -> None:
        """Read the promoted ones off the inbox's tail: their order among themselves is free."""
        tail = inbox_of(self.queue)[-count:] if count else []
        for element in tail:
            url = element["url"]
            assert self.place.pop(url) in (Place.FAIL, Place.DEFERRED)
            assert element.get("formats") == self.asked[url]
            self.waits.append((url, element.get("formats"), element["attempt"], bool(element.get("force"))))

    @rule(place=st.sampled_from([Place.FAIL, Place.SKIPPED, Place.RESULT, Place.DEFERRED]))
    def requeue_by_hand(self, place: Place) -> None:
        seen = sorted(pair for page in pages(self.queue, place) for pair in page)
        forces = {url: json.loads(raw).get("force", False) for url, raw in seen}

        assert requeue(self.queue, place, seen) == len(seen)

        for url, _ in seen:
            assert self.place.pop(url) is place
            self.waits.append((url, self.asked[url], 1, forces[url]))

    @rule(number=numbers)
    def cancel(self, number: int) -> None:
        url = url_of(number)
        place = self.place.get(url)
        begun = place is Place.PROGRESS and self.records[url]["state"] == "running"
        waits = any(waiting[0] == url for waiting in self.waits)
        runs_again = place is Place.DEFERRED or (place is Place.FAIL and self._find(url)[1]["retryable"])

        answer = self.queue.cancel(url)

        self.waits = [waiting for waiting in self.waits if waiting[0] != url]
        if begun:
            assert answer is Place.PROGRESS
            self.flagged.add(url)
        elif place is Place.PROGRESS:
            assert answer is Place.SKIPPED
            self._leave(url, Place.SKIPPED)
        elif runs_again:
            assert answer is Place.SKIPPED
            self.place[url] = Place.SKIPPED
        else:
            assert answer is (Place.SKIPPED if waits else None)
            if waits and place is None:
                self.place[url] = Place.SKIPPED
                self.asked[url] = self._find(url)[1].get("formats")

    def _find(self, url: str) -> tuple[Place, Record]:
        found = self.queue.find(url)
        assert found is not None
        return found

    # -- faults --
    @rule()
    def forget_scripts(self) -> None:
        self.queue.client.script_flush()

    @rule()
    def drop_connections(self) -> None:
        self.queue.client.connection_pool.disconnect()

    # -- what always holds --
    @invariant()
    def every_item_is_where_the_model_has_it(self) -> None:
        found = {url: place for place in Place for page in pages(self.queue, place) for url, _ in page}
        assert found == self.place
        assert len(found) == sum(self.queue.depths()[place] for place in Place)

    @invariant()
    def the_inbox_is_the_models(self) -> None:
        waits = [
            (element["url"], element.get("formats"), element["attempt"], bool(element.get("force")))
            if isinstance(element, dict)
            else (f"https://www.youtube.com/watch?v={element}", None, 1, False)
            for element in inbox_of(self.queue)
        ]
        assert waits == self.waits

    @invariant()
    def the_doctor_finds_nothing(self) -> None:
        found = [str(one) for one in examine(self.queue, max_attempts=MAX_ATTEMPTS, expected=self.submitted)]
        assert found == []

    def _dump(self) -> dict[bytes, Any]:
        keys: list[bytes] = self.queue.steps.command("keys")
        return {key: self.queue.client.dump(key) for key in keys}


@contextmanager
def model_on_a_server(folder: Path) -> Iterator[type[Model]]:
    """The machine with a server of its own."""
    with Valkey(folder) as server:
        client = connect(address_of(server.url))
        Model.queue = Queue(client, "auth")
        yield Model
        client.close()


def check(folder: Path, *, steps: int, examples: int, seed: int) -> None:
    """Run the machine; hypothesis prints the shortest sequence of steps that fails."""
    from hypothesis import seed as with_seed

    chosen = settings(
        stateful_step_count=steps,
        max_examples=examples,
        phases=[Phase.generate, Phase.shrink],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    with model_on_a_server(folder) as machine:
        run_state_machine_as_test(with_seed(seed)(machine), settings=chosen)


def test_50_random_steps_against_a_model(tmp_path: Path, seed: int) -> None:
    check(tmp_path, steps=25, examples=10, seed=seed)


@pytest.mark.slow
def test_50_200_random_steps_100_times_against_a_model(tmp_path: Path, seed: int) -> None:
    check(tmp_path, steps=200, examples=100, seed=seed)
