"""What an operator wants to know first: how much is where, how old, how fast, and why it failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from include.ytdlp_ops.queues.filtering import HOUR_MS, last_step_ms
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.listing import INBOX, Entry, key_of, pages_of
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.resting import resting

if TYPE_CHECKING:
    from redis import Redis

SAMPLE = 2000
"""Records read of each place; HSCAN's order has nothing to do with what is in them."""
TOP = 5
_HELPERS = {"leases": "zcard", "due": "zcard", "orphans": "zcard", "oversized": "hlen"}


@dataclass(frozen=True, kw_only=True)
class PlaceSurvey:
    """
    One LIST or HASH.

    :param key: its name.
    :param depth: entries in it.
    :param oldest_seconds: how long ago the last step of the oldest entry was; of a sample, if there are many.
    :param last_hour: entries whose last step was within an hour, about.
    :param reasons: the most frequent codes and their share of the entries read.
    """

    key: str
    depth: int
    oldest_seconds: int | None = None
    last_hour: int = 0
    reasons: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StageSurvey:
    """
    One stage.

    :param places: by name, the inbox first.
    :param helpers: depths of its helper keys.
    :param counters: how often what happened, since the queue began.
    :param closed: why nothing is claimed; empty where it is.
    :param resting: hosts that take nothing, with the reason.
    """

    stage: str
    places: dict[str, PlaceSurvey]
    helpers: dict[str, int]
    counters: dict[str, int]
    closed: str
    resting: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Ids and counts, small enough for XCom."""
        return {**asdict(self), "counters": {k: v for k, v in sorted(self.counters.items()) if ":" not in k}}


def survey(queue: Queue) -> StageSurvey:
    """Look at one stage; no call is longer than a page, and a sample stands for a million."""
    now_ms, depths = queue.now_ms(), queue.depths()
    places = {where: _place(queue, where, depth, now_ms) for where, depth in depths.items()}
    helpers = {
        key: queue.steps.command(command, key)
        for key, command in ((getattr(queue.keys, name), command) for name, command in _HELPERS.items())
    }
    return StageSurvey(
        stage=queue.stage,
        places=places,
        helpers=helpers,
        counters=queue.counters(),
        closed=str(queue.circuit()),
        resting={each.host: each.reason for each in resting(queue)},
    )


def survey_all(client: Redis, queue_base: str | None = None) -> list[StageSurvey]:
    """Every stage."""
    return [survey(Queue(client, stage, queue_base=queue_base)) for stage in Stage]


def as_table(surveys: list[StageSurvey]) -> Iterator[str]:
    """Lines for a log or a terminal."""
    yield f"{'key':<32} {'depth':>12} {'oldest':>9} {'last hour':>12}  reasons"
    for stage in surveys:
        yield f"stage {stage.stage}{': ' + stage.closed if stage.closed else ''}"
        for host, reason in stage.resting.items():
            yield f"  {host} rests: {reason}"
        for place in stage.places.values():
            reasons = ", ".join(f"{code} {share:.0%}" for code, share in place.reasons.items())
            age = "" if place.oldest_seconds is None else _age(place.oldest_seconds)
            hour = f"{place.last_hour:,}" if place.depth else ""
            yield f"  {place.key:<30} {place.depth:>12,} {age:>9} {hour:>12}  {reasons}".rstrip()
        for key, depth in stage.helpers.items():
            if depth:
                yield f"  {key:<30} {depth:>12,}"


def installation_exists(client: Redis, queue_base: str) -> bool:
    """Whether any key of any stage is there."""
    queues = [Queue(client, stage, queue_base=queue_base) for stage in Stage]
    keys = {key_of(queue.keys, where) for queue in queues for where in (INBOX, *Place)}
    keys |= {key for queue in queues for key in (queue.keys.counters, queue.keys.pause)}
    return any(queues[0].steps.command("type", key) != b"none" for key in sorted(keys))


def _place(queue: Queue, where: str, depth: int, now_ms: int) -> PlaceSurvey:
    key = key_of(queue.keys, where)
    read = _sample(queue, where) if depth else []
    times = [ms for entry in read if (ms := last_step_ms(entry.record)) is not None]
    within = sum(now_ms - ms <= HOUR_MS for ms in times)
    codes = Counter(str(entry.record["code"]) for entry in read if entry.record.get("code"))
    return PlaceSurvey(
        key=key,
        depth=depth,
        oldest_seconds=max(0, now_ms - min(times)) // 1000 if times else None,
        last_hour=round(within * depth / len(read)) if read else 0,
        reasons={code: count / len(read) for code, count in codes.most_common(TOP)},
    )


def _sample(queue: Queue, where: str) -> list[Entry]:
    """Of an inbox its head, where the oldest waits; of a HASH as good as any."""
    read: list[Entry] = []
    for page in pages_of(queue, where):
        read += page.entries
        if len(read) >= SAMPLE:
            break
    return read


def _age(seconds: int) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
