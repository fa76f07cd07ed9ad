"""One item while this process works on it: its token, its heartbeats, its end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import CancelRequested, LeaseLost, QueueError, Refusal
from include.ytdlp_ops.models import FormatItem, Item, UrlItem
from include.ytdlp_ops.queues.backoff import MAX_ATTEMPTS, backoff_seconds
from include.ytdlp_ops.queues.groups import Group
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.limits import Limits
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.records import Record

log = logging.getLogger(__name__)
HEARTBEATS_A_LEASE = 6  # a lease outlives five that are lost
UNCHANGING = (Code.BAD_INPUT, Code.INCOMPLETE)
"""Failures that another attempt at the same item can't change."""
DEFER_SECONDS = 3600.0
HOST_AGAIN_SECONDS = 600.0
LONGEST_WAIT_SECONDS = 120.0


class Terminated(BaseException):
    """The process was told to stop: hand the item back. No `except Exception` on the way may eat it."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """
    How an item ended.

    :param place: the HASH that has its record; nothing where it was handed back.
    :param code: why, unless it is done.
    :param message: for people.
    :param summary: ids and counts, small enough for XCom.
    :param publishes: the publish item that this end has claimed for its own run.
    :param egress: the way out that met the refusal.
    :param account: the account that met it.
    """

    place: Place | None
    code: Code | None = None
    message: str = ""
    summary: dict[str, Any] | None = None
    publishes: dict[str, Any] | None = None
    egress: str | None = None
    account: str | None = None


class RunningItem:
    """
    A begun item. As a context manager it sends heartbeats from a thread until its end.

    :param queue: the queue that it came from.
    :param record: as `Queue.begin` returned it.
    :param max_attempts: after so many a failure is final.
    """

    def __init__(
        self,
        queue: Queue,
        record: Record,
        *,
        max_attempts: int = MAX_ATTEMPTS,
    ) -> None:
        self.queue = queue
        self.record = record
        self.item: Item = queue.stage.model.from_record(record)
        self._heartbeat_seconds = queue.running_lease_ms / 1000 / HEARTBEATS_A_LEASE
        self._max_attempts = max_attempts
        self._progress: Record = {}
        self._lost: BaseException | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    @property
    def token(self) -> str:
        """Proof that this run owns the item."""
        return str(self.record["token"])

    def report(self, **progress: Any) -> None:
        """Say how far the item is; the next heartbeat carries it."""
        self._progress = progress

    def lost(self) -> BaseException | None:
        """Why this run must stop, if it must: asked between blocks of a download."""
        return self._lost

    def confirm(self) -> None:
        """
        Make sure, by asking the server, that the item is still this run's: before files move.

        :raises LeaseLost: if it is not.
        :raises CancelRequested: if it shall be cancelled.
        """
        self.queue.heartbeat(self.record, self._progress)

    # -- its end ---------------------------------------------------------------------------------------------
    def done(
        self,
        result: Record,
        *,
        push: Sequence[tuple[Stage, Item]] = (),
        group: Group | None = None,
        summary: Record | None = None,
    ) -> Ended:
        """Record what the stage made, and push what comes next in the same step."""
        claimed = self.queue.finish(self.record, Place.RESULT, result, push=push, group=group)
        return Ended(place=Place.RESULT, summary=summary or {}, publishes=claimed)

    def refused(
        self, refusal: Refusal, *, push: Sequence[tuple[Stage, Item]] = (), more: Record | None = None
    ) -> Ended:
        """
        Record why the item was not done, by what its reason means for it.

        :param push: what is to be done instead; pushed in the same step.
        :param more: what else the record says.
        """
        place, due_in_seconds = self._consequence(refusal)
        retryable = due_in_seconds is not None
        outcome: Record = {
            "code": refusal.code,
            "reason": refusal.code,
            "outcome": refusal.outcome,
            "message": refusal.message,
            "egress": refusal.egress or self.record.get("egress"),
            "account": refusal.account or self.record.get("account"),
            "retryable": retryable,
        }
        due_in_ms = None if due_in_seconds is None else round(due_in_seconds * 1000)
        group = None if retryable else self._group()
        self.queue.finish(
            self.record, place, {**outcome, **(more or {})}, due_in_ms=due_in_ms, push=push, group=group
        )
        return Ended(
            place=place,
            code=refusal.code,
            message=refusal.message,
            egress=outcome["egress"],
            account=outcome["account"],
        )

    def _group(self) -> Group | None:
        """The video that must not wait for this item any more."""
        if isinstance(self.item, FormatItem) and self.item.group:
            return Group(video=self.item.group)
        if self.queue.stage is Stage.AUTH and isinstance(self.item, UrlItem) and self.item.refresh:
            return Group(video=self.item.item_id, gone=self.item.refresh)
        return None

    def hand_back(self, message: str, *, not_host: str | None = None) -> Ended:
        """
        Put the item back unchanged; its attempt does not count.

        :param not_host: a host that shall not get it again for ten minutes.
        """
        self.queue.release(
            self.record, reason=message, not_host=not_host, not_host_ms=round(HOST_AGAIN_SECONDS * 1000)
        )
        return Ended(place=None, message=message)

    def await_start(self, bucket: str) -> None:
        """
        Wait for a start that a fleet-wide limit allows; the lease is kept meanwhile.

        :param bucket: ``egress:NAME`` or ``account:NAME``.
        :raises Refusal: `LIMITED`, to be taken up later, if the limit allows none within two minutes.
        """
        limits = Limits(self.queue.client, self.queue.keys)
        end = time.monotonic() + LONGEST_WAIT_SECONDS
        while wait_ms := limits.wait_ms(bucket):
            if time.monotonic() + wait_ms / 1000 > end:
                raise Refusal(
                    Code.LIMITED, f"the limit of {bucket} allows no start now", retry_after=wait_ms / 1000
                )
            if self._ended.wait(min(wait_ms / 1000, 1.0)):
                return
            if self._lost is not None:
                raise self._lost
        if wait_ms is None:
            raise Refusal(Code.LIMITED, f"the limit of {bucket} is 0: no start until a person changes it")

    def _consequence(self, refusal: Refusal) -> tuple[Place, float | None]:
        if refusal.outcome is Outcome.SKIP:
            return Place.SKIPPED, None
        if refusal.outcome in (Outcome.DEFER, Outcome.OPERATOR):
            return Place.DEFERRED, refusal.retry_after or DEFER_SECONDS
        if refusal.code in UNCHANGING or self.item.attempt >= self._max_attempts:
            return Place.FAIL, None
        return Place.FAIL, backoff_seconds(self.item.attempt, retry_after=refusal.retry_after)

    # -- heartbeats ------------------------------------------------------------------------------------------
    def _beat(self) -> None:
        while not self._ended.wait(self._heartbeat_seconds):
            try:
                self.confirm()
            except (LeaseLost, CancelRequested) as error:
                self._lost = error
                return
            except QueueError as error:  # the lease lasts longer than a short outage
                log.warning("heartbeat of %s: %s", self.record["id"], error)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(timeout=5)
