"""Every Redis key of this project is spelled here and nowhere else (DESIGN §2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.models import FormatItem, Item, PublishItem, UrlItem

DEFAULT_BASES = {"v01": "video_queue", "auth": "queue2", "dl": "queue2", "publish": "queue2"}
_BASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SEEDS_DL_INBOX = "queue_dl_format_tasks"  # other tools push here: irregular, and fixed


class Stage(StrEnum):
    """A stage of the way from URL to file; its inbox holds items of one model."""

    V01 = "v01"
    AUTH = "auth"
    DL = "dl"
    PUBLISH = "publish"

    @property
    def model(self) -> type[Item]:
        """The class of the items in this stage's inbox."""
        models: dict[Stage, type[Item]] = {Stage.DL: FormatItem, Stage.PUBLISH: PublishItem}
        return models.get(self, UrlItem)


class Place(StrEnum):
    """Where an item is; a HASH of its own for all but the inbox."""

    PROGRESS = "progress"
    RESULT = "result"
    FAIL = "fail"
    SKIPPED = "skipped"
    DEFERRED = "deferred"


@dataclass(frozen=True)
class QueueKeys:
    """
    The keys of one stage.

    :param stage: the stage.
    :param queue_base: the installation's name; the only part of a key that differs between two
        installations in one Redis.
    """

    stage: Stage
    queue_base: str

    @classmethod
    def of(cls, stage: Stage | str, queue_base: str | None = None) -> Self:
        """
        The keys of a stage.

        :raises BadInput: for an unknown stage or a base that can't be part of a key.
        """
        try:
            stage = Stage(stage)
        except ValueError:
            raise BadInput(f"stage {stage!r} is none of {', '.join(Stage)}") from None
        queue_base = queue_base or DEFAULT_BASES[stage]
        if not _BASE.fullmatch(queue_base):
            raise BadInput(
                f"queue_base {queue_base!r} must be 1 to 64 of A-Z a-z 0-9 _ . - and start with none of _.-"
            )
        return cls(stage, queue_base)

    @property
    def base(self) -> str:
        """What this stage's HASHes and helper keys begin with."""
        return self.queue_base if self.stage is Stage.V01 else f"{self.queue_base}_{self.stage}"

    @property
    def inbox(self) -> str:
        """LIST: what waits."""
        if self.stage is not Stage.DL:
            return f"{self.base}_inbox"
        return _SEEDS_DL_INBOX if self.queue_base == DEFAULT_BASES["dl"] else f"{self.base}_format_tasks"

    def hash_of(self, place: Place) -> str:
        """HASH: item id -> record, of one place."""
        return f"{self.base}_{place}"

    @property
    def progress(self) -> str:
        """HASH: claimed and running items."""
        return self.hash_of(Place.PROGRESS)

    @property
    def result(self) -> str:
        """HASH: done."""
        return self.hash_of(Place.RESULT)

    @property
    def fail(self) -> str:
        """HASH: failed, retryable or dead."""
        return self.hash_of(Place.FAIL)

    @property
    def skipped(self) -> str:
        """HASH: can't be had."""
        return self.hash_of(Place.SKIPPED)

    @property
    def deferred(self) -> str:
        """HASH: not before a time."""
        return self.hash_of(Place.DEFERRED)

    @property
    def leases(self) -> str:
        """ZSET: item id -> lease deadline, ms."""
        return f"{self.base}_leases"

    @property
    def due(self) -> str:
        """ZSET: item id -> due time of automatic retries and deferrals, ms."""
        return f"{self.base}_due"

    @property
    def oversized(self) -> str:
        """HASH: item id -> bytes of elements too long to be looked at."""
        return f"{self.base}_oversized"

    @property
    def orphans(self) -> str:
        """ZSET: ids in progress without token, lease or times -> when the sweeper first saw them, ms."""
        return f"{self.base}_orphans"

    @property
    def resting(self) -> str:
        """HASH: host -> why it takes nothing from this stage, and until when."""
        return f"{self.base}_resting"

    @property
    def pause(self) -> str:
        """HASH: since, reason; exists while the stage is paused by hand."""
        return f"{self.base}_pause"

    @property
    def circuit(self) -> str:
        """HASH: how the last finishes ended; state, reason, until … while the circuit is open or probing."""
        return f"{self.base}_circuit"

    @property
    def counters(self) -> str:
        """HASH: name -> how often, since the queue began."""
        return f"{self.base}_counters"

    @property
    def ledger(self) -> str:
        """STRING with a TTL: since when all that ended is archived, unix ms; exists while a ledger is at work."""
        return f"{self.base}_ledger"

    @property
    def attempts(self) -> str:
        """HASH: sha1 of the record, a blank and the item id -> record, of attempts that others followed."""
        return f"{self.base}_attempts"

    @property
    def limits(self) -> str:
        """HASH of the installation: bucket -> starts a minute, "starts a minute:burst", or bytes a second."""
        return f"{self.queue_base}_limits"

    @property
    def buckets(self) -> str:
        """HASH of the installation: bucket -> tokens left, or bytes come and allowed, and when counted."""
        return f"{self.queue_base}_buckets"

    @property
    def egress_addresses(self) -> str:
        """HASH of the installation: egress -> the address that its newest media URLs are bound to."""
        return f"{self.queue_base}_egress_addresses"

    @property
    def refused_clients(self) -> str:
        """HASH of the installation: player client -> videos in a row whose media it was refused, and the last."""
        return f"{self.queue_base}_refused_clients"

    @property
    def groups(self) -> str:
        """HASH of the installation: video -> its publish item, with the jobs of all wanted formats in `jobs`."""
        return f"{self.queue_base}_groups"

    @property
    def wake(self) -> str:
        """STRING with a TTL: a dispatcher has been woken and has not run yet."""
        return f"{self.base}_wake"

    @property
    def sweep_wake(self) -> str:
        """STRING with a TTL: the sweeper has been woken for this stage a moment ago."""
        return f"{self.base}_sweep_wake"

    def request(self, step: str, request_id: str) -> str:
        """LIST or STRING with a TTL: the answer that a request was given."""
        return f"{self.base}_{step}:{request_id}"
