"""
The queue: one stage's items and the steps between their states.

    submit → claim → begin → heartbeat* → finish(result | fail | skipped | deferred) | release

Every step is one Lua script, safe to ask again: after a lost reply the queue repeats it, within its patience.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from include.ytdlp_ops.errors import BadInput, CancelRequested, LeaseLost
from include.ytdlp_ops.models import MAX_ELEMENT_BYTES, Item
from include.ytdlp_ops.queues.cancelling import cancel, cancelled
from include.ytdlp_ops.queues.circuit import Breaker, Circuit, class_of
from include.ytdlp_ops.queues.claiming import Claim, candidate, submission
from include.ytdlp_ops.queues.groups import Group, join, join_arguments, join_keys
from include.ytdlp_ops.queues.keys import Place, QueueKeys, Stage
from include.ytdlp_ops.queues.records import (
    Record,
    bad_input,
    bytes_of_id,
    element_of,
    encode,
    ended,
    read_record,
)
from include.ytdlp_ops.queues.resting import end_rests, why_resting
from include.ytdlp_ops.queues.scripts import Scripts

if TYPE_CHECKING:
    from redis import Redis

__all__ = ["Claim", "Queue", "Record"]

CLAIM_LEASE_MS = 10 * 60 * 1000  # to be triggered and started
RUNNING_LEASE_MS = 120 * 1000
NOT_HOST_MS = 10 * 60 * 1000
REQUEST_TTL_MS = 3600 * 1000
OWN_REQUEST_TTL_MS = 60 * 1000  # nobody but this call knows its id
SUBMIT_BATCH = 500
MOST_AT_ONCE = 500  # Lua hands back some thousand values at most
CLAIM_ROUNDS = 32
FEWEST_LOOKED_AT = 16  # copies before the first new item cost no further round
FINISH_PATIENCE_SECONDS = 90.0  # under the running lease: what took an hour to make is not given up lightly


class Queue:
    """
    One stage's queue.

    :param client: from `connecting.connect`.
    :param stage: whose queue.
    :param queue_base: the installation, if not the default one.
    :param patience_seconds: how long a step is asked again while the server can't be reached.
    :param finish_patience_seconds: the same for `finish`, which has more to lose.
    :param running_lease_ms: how long an item is its worker's after `begin` and each heartbeat.
    :param breaker: when this stage's circuit opens.
    """

    def __init__(
        self,
        client: Redis,
        stage: Stage | str,
        *,
        queue_base: str | None = None,
        patience_seconds: float = 10,
        finish_patience_seconds: float = FINISH_PATIENCE_SECONDS,
        running_lease_ms: int = RUNNING_LEASE_MS,
        breaker: Breaker | None = None,
    ) -> None:
        self.client = client
        self.keys = QueueKeys.of(stage, queue_base)
        self.stage = self.keys.stage
        self.steps = Scripts(client, patience_seconds)
        self._finish_patience_seconds = finish_patience_seconds
        self.running_lease_ms = running_lease_ms
        self._breaker = str(breaker or Breaker())

    # -- in ------------------------------------------------------------------------------------------------
    def submit(
        self, items: Iterable[Item | str | bytes], *, urgent: bool = False, request_id: str | None = None
    ) -> list[str]:
        """
        Put items into the inbox, in order; copies of what runs or is done are counted there instead.

        :param items: items, or elements as a producer would push them.
        :param urgent: to the head of the inbox.
        :param request_id: asked twice under one id, it is done once; remembered for an hour.
        :returns: one word an item: ``queued``, ``running`` or ``already_done``.
        :raises BadInput: names the first element that can't be taken; then none was.
        """
        elements = [submission(self.stage, item) for item in items]
        ttl_ms = REQUEST_TTL_MS if request_id else OWN_REQUEST_TTL_MS
        request_id = request_id or secrets.token_hex(8)
        answers: list[str] = []
        for start in range(0, len(elements), SUBMIT_BATCH):
            args: list[Any] = [ttl_ms, int(urgent)]
            for element in elements[start : start + SUBMIT_BATCH]:
                args += element
            request = self.keys.request("submit", f"{request_id}:{start}")
            keys = [self.keys.inbox, self.keys.progress, self.keys.result, request, self.keys.counters]
            answers += [word.decode() for word in self.steps.run("submit", keys, args)]
        return answers

    def claim(
        self,
        most: int,
        *,
        request_id: str | None = None,
        host: str | None = None,
        lease_ms: int = CLAIM_LEASE_MS,
    ) -> Claim:
        """
        Take up to `most` items from the head of the inbox, 500 at most; fewer where copies lie between them.

        :param request_id: asked twice under one id, the same items come back, while the lease lasts.
        :param host: who claims: what was released as not for this host goes to the tail instead, and a host that
            rests gets nothing.
        :raises QueueError: under memory pressure; nothing was taken.
        """
        if host and (why := why_resting(self, host)):
            return Claim(closed=why)
        most = min(most, MOST_AT_ONCE)
        request = self.keys.request("claim", request_id or secrets.token_hex(8))
        found = Claim()
        for _ in range(CLAIM_ROUNDS):
            now_ms, *looked = self.steps.run(
                "peek", [self.keys.inbox], [max(most, FEWEST_LOOKED_AT), MAX_ELEMENT_BYTES]
            )
            candidates = [
                candidate(self.stage, element, host, now_ms) for element in looked if isinstance(element, bytes)
            ]
            reply, more = self._claim(request, most, lease_ms, candidates, direct=False)
            found = reply.after(found)
            # Others took the head between look and claim: look again. All that waits, waits for another: stop.
            again = more or reply.taken > reply.later
            if found.records or reply.closed or not again:
                break
        return found

    def take(self, item: Item, *, lease_ms: int = CLAIM_LEASE_MS) -> Record | None:
        """
        Submit one item and claim it in the same step, past the inbox, pauses and circuits: a person asked.

        :returns: its progress record; or nothing where it is a copy of one that runs or is done, or where one
            that wants something else runs: then it waits in the inbox.
        """
        request = self.keys.request("claim", secrets.token_hex(8))
        wanted = candidate(self.stage, item.to_inbox().encode(), None, 0)
        reply, _ = self._claim(request, 1, lease_ms, [wanted], direct=True)
        return reply.records[0] if reply.records else None

    # -- in the worker ---------------------------------------------------------------------------------------
    def begin(
        self,
        item_id: str,
        token: str,
        *,
        host: str,
        dag_id: str | None = None,
        run_id: str | None = None,
    ) -> Record:
        """
        Start a claimed item: the claim's token is exchanged for one that only this caller knows.

        :returns: the progress record; its `token` is the one to go on with.
        :raises LeaseLost: if the item is gone (swept, finished, cancelled), or another's.
        """
        members = encode({"host": host, "dag_id": dag_id, "run_id": run_id})[1:-1]
        args = [bytes_of_id(item_id), token, secrets.token_hex(16), self.running_lease_ms, members]
        reply = self.steps.run("begin", [self.keys.progress, self.keys.leases], args)
        if reply is None:
            raise LeaseLost(
                f"{item_id!r} of stage {self.stage} is not this run's: it was swept, finished or taken over"
            )
        record: Record = from_json(reply)
        return record

    def heartbeat(self, record: Record, progress: Record | None = None) -> None:
        """
        Extend the lease, and say how far the item is.

        :raises LeaseLost: if the item is gone, or another's.
        :raises CancelRequested: if it shall be cancelled; it is still the caller's, and its lease extended.
        """
        now = encode({**record, "progress": progress or {}})
        args = [bytes_of_id(record["id"]), record["token"], self.running_lease_ms, now]
        answer = self.steps.run("heartbeat", [self.keys.progress, self.keys.leases], args)
        if not answer:
            raise LeaseLost(f"{record['id']!r} of stage {self.stage} went to another worker")
        if answer == 2:
            raise CancelRequested(
                f"{record['id']!r} of stage {self.stage} shall be cancelled: finish it as skipped"
            )

    def finish(
        self,
        record: Record,
        place: Place,
        outcome: Record,
        *,
        due_in_ms: int | None = None,
        push: Sequence[tuple[Stage, Item]] = (),
        group: Group | None = None,
    ) -> Record | None:
        """
        Give an item up with its one terminal record.

        :param record: as `begin` returned it.
        :param outcome: what the stage adds: what it made, or why it failed.
        :param due_in_ms: when it is taken up again by itself; deferred needs it.
        :param push: what comes next, stage by stage; pushed in the same step.
        :param group: the video that it belongs to; the end that completes its formats sends it to publish.
        :returns: the progress record of the publish item, where this end completed the group and the caller
            publishes in place.
        :raises LeaseLost: if the item is gone, or another's; then nothing was written.
        """
        if place is Place.PROGRESS or (place is Place.DEFERRED and due_in_ms is None):
            raise BadInput(f"finish {record['id']!r} as {place}: that is no end; give due_in_ms with deferred")
        keys = [self.keys.progress, self.keys.leases, self.keys.hash_of(place), self.keys.due]
        keys += [self.keys.counters, self.keys.circuit, *join_keys(self.keys)]
        stages = sorted({stage for stage, _ in push})
        keys += [QueueKeys.of(stage, self.keys.queue_base).inbox for stage in stages]
        code = outcome.get("code") or ""
        args: list[Any] = [bytes_of_id(record["id"]), record["token"], encode(ended(record, **outcome))]
        args += ["" if due_in_ms is None else due_in_ms, place, str(code), class_of(place, code), self._breaker]
        args += join_arguments(group, self.running_lease_ms)
        for stage, item in push:
            args += [stages.index(stage) + 1, item.to_inbox()]
        reply = self.steps.run("finish", keys, args, patience_seconds=self._finish_patience_seconds)
        if not reply:
            raise LeaseLost(
                f"{record['id']!r} of stage {self.stage} went to another worker; its end was not recorded"
            )
        return json.loads(reply) if isinstance(reply, bytes) else None

    def release(
        self, record: Record, *, reason: str = "", not_host: str | None = None, not_host_ms: int = NOT_HOST_MS
    ) -> bool:
        """
        Hand an item back unchanged to the head of its inbox; one that was cancelled meanwhile is skipped.

        :param reason: kept with the item as `released_because`, for people.
        :param not_host: a host that shall not claim it again for `not_host_ms`; claims that name no host do not
            look at it.
        :returns: False if it was no longer the caller's.
        """
        item = self.stage.model.from_record({**record, **({"released_because": reason} if reason else {})})
        keys = [self.keys.progress, self.keys.leases, self.keys.inbox, self.keys.skipped, self.keys.counters]
        args = [bytes_of_id(record["id"]), record["token"], element_of(item), encode(cancelled(record))]
        args += [encode(dict(list((item.not_hosts or {}).items())[-16:]))]
        args += [json.dumps(not_host) if not_host else "", not_host_ms]
        return bool(self.steps.run("release", keys, args))

    # -- from outside ----------------------------------------------------------------------------------------
    def move(
        self,
        source: Place,
        seen: Sequence[tuple[str, bytes]],
        *,
        counter: str,
        inbox: str | None = None,
        element: str | bytes = "",
        place: Place = Place.FAIL,
        record: Record | None = None,
        only_past: bool = False,
    ) -> bool:
        """
        Take items out of a place: to an `inbox` as one `element`, or else to another `place` as one `record`.

        :param seen: item ids with their records as read; empty where a lease or due time has none.
        :param counter: what it is counted as.
        :param inbox: the key of the inbox to push to.
        :param only_past: only where lease or due time is over.
        :returns: False if any changed meanwhile or its time has not come; then none was moved.
        """
        times = self.keys.leases if source is Place.PROGRESS else self.keys.due
        target = inbox or self.keys.hash_of(place)
        value = element if inbox else encode(record) if record else ""
        args: list[Any] = ["list" if inbox else "hash", value, int(only_past), counter]
        for item_id, raw in seen:
            args += [bytes_of_id(item_id), raw]
        keys = [self.keys.hash_of(source), times, target, self.keys.counters]
        return bool(self.steps.run("move", keys, args))

    def cancel(self, item_id: str, *, reason: str = "by hand") -> Place | None:
        """Cancel an item, wherever it is; see `cancelling.cancel`."""
        place = cancel(self, item_id, reason=reason)
        if self.stage is Stage.DL and place is Place.SKIPPED and (found := self.find(item_id)):
            join(self, [str(found[1]["group"])] if found[1].get("group") else [])
        return place

    def pause(self, reason: str) -> None:
        """Stop claiming; what runs goes on, so that a paused stage drains."""
        since = datetime.fromtimestamp(self.now_ms() / 1000, UTC).isoformat(timespec="seconds")
        self.steps.command("hset", self.keys.pause, mapping={"since": since, "reason": reason})

    def resume(self) -> None:
        """Claim again: lifts a pause by hand, closes the circuit, and ends the rest of hosts."""
        end_rests(self)
        self.steps.command("delete", self.keys.pause, self.keys.circuit)

    def circuit(self) -> Circuit:
        """Whether this stage may claim, and why not."""
        circuit, pause = (self.steps.command("hgetall", key) for key in (self.keys.circuit, self.keys.pause))
        return Circuit.of(circuit, pause)

    def counters(self) -> dict[str, int]:
        """How often what happened, since the queue began: ``claimed``, ``result``, ``fail:bot_check`` …"""
        counted: dict[bytes, bytes] = self.steps.command("hgetall", self.keys.counters)
        return {name.decode(): int(value) for name, value in counted.items() if value.isdigit()}

    def depths(self) -> dict[str, int]:
        """How many items are in each place, inbox included; no call is longer than O(1)."""

        def ask() -> list[int]:
            pipeline = self.client.pipeline(transaction=False)
            pipeline.llen(self.keys.inbox)
            for place in Place:
                pipeline.hlen(self.keys.hash_of(place))
            return pipeline.execute()

        return dict(zip(["inbox", *Place], self.steps.ask(ask), strict=True))

    def find(self, item_id: str) -> tuple[Place, Record] | None:
        """Where an item is, with its record; nothing if it waits in the inbox or was never here."""
        seen = self.see(item_id)
        return None if seen is None else (seen[0], read_record(seen[1]))

    def see(self, item_id: str) -> tuple[Place, bytes] | None:
        """Where an item is, with its record as it lies there."""
        found = self.look(item_id, *(self.keys.hash_of(place) for place in Place))
        return next(((place, raw) for place, raw in zip(Place, found, strict=True) if raw is not None), None)

    def look(self, item_id: str, *keys: str) -> list[bytes | None]:
        """What several HASHes or ZSETs have of an item, at one moment."""
        found: list[bytes | None] = self.steps.run("look", keys, [bytes_of_id(item_id)])
        return found

    def now_ms(self) -> int:
        """The server's time, the only clock of the queue: unix ms."""
        seconds, microseconds = self.steps.command("time")
        return int(seconds) * 1000 + int(microseconds) // 1000

    # -- small things ----------------------------------------------------------------------------------------
    def _claim(
        self, request: str, most: int, lease_ms: int, candidates: Sequence[list[Any]], *, direct: bool
    ) -> tuple[Claim, bool]:
        of = self.keys
        keys = [of.inbox, of.progress, of.leases, of.result, of.fail, of.skipped, of.deferred, of.due, request]
        keys += [of.oversized, of.pause, of.circuit, of.limits, of.buckets, of.counters]
        oversized = bad_input(self.stage, f"the element is longer than {MAX_ELEMENT_BYTES} bytes; see raw_bytes")
        args = [lease_ms, most, MAX_ELEMENT_BYTES, int(direct), encode(oversized), f"stage:{self.stage}"]
        args += [value for candidate in candidates for value in candidate]
        taken, dropped, refused, later, more, closed, *records = self.steps.run("claim", keys, args)
        claim = Claim(
            records=[from_json(record) for record in records],
            taken=taken,
            dropped=dropped,
            refused=refused,
            later=later,
            closed=closed.decode("utf-8", "replace"),
        )
        return claim, bool(more)
