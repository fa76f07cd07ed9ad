"""The limits on bandwidth that a download has to keep: its host's, and the fleet's, which Redis shares out."""

from __future__ import annotations

import logging
import threading
import time

from include.ytdlp_ops.downloading.directories import component
from include.ytdlp_ops.downloading.pacing import DownloadPace, HostPace, Pace
from include.ytdlp_ops.errors import QueueError
from include.ytdlp_ops.queues.limits import FLEET_BANDWIDTH, Limits
from include.ytdlp_ops.settings import Settings
from include.ytdlp_ops.stages.running import RunningItem

log = logging.getLogger(__name__)

_ASK_SECONDS = 0.5
_BATCH_SECONDS, _BATCH_BYTES = 0.125, 1 << 20  # of the whole limit; what is less at the end is not accounted for
_SLOW_ANSWERS = 5  # of the time at most a fifth is spent waiting for Redis
_SILENCE_SECONDS = 10.0
_WEIGHT = 0.2  # of the newest speed in the average


def paces_for(running: RunningItem, settings: Settings, egress: str | None) -> list[Pace]:
    """
    The limits that hold for this item's bytes.

    :param settings: whose work directory is there already.
    :param egress: through which they come.
    """
    limits = Limits(running.queue.client, running.queue.keys, patience_seconds=0)
    buckets = [FLEET_BANDWIDTH, *([f"bandwidth:egress:{egress}"] if egress else [])]
    paces: list[Pace] = [FleetPace(limits, buckets)]
    if settings.host_rate_limit:
        paces.append(
            HostPace(settings.work_dir / f".bandwidth-{component(settings.host)}", settings.host_rate_limit)
        )
    return paces


class FleetPace:
    """
    A share of the fleet's limits, asked for in batches of bytes that have come.

    While Redis does not answer, the download goes on at the speed that it was last allowed.
    """

    def __init__(self, limits: Limits, buckets: list[str]) -> None:
        self._limits = limits
        self._tickets = dict.fromkeys(buckets, 0)
        self._lock = threading.Lock()
        self._owed = 0
        self._batch: float = 0  # the first bytes ask at once
        self._asked_at = time.monotonic()
        self._ask_seconds = _ASK_SECONDS
        self._go_on_at = 0.0
        self._speed: float | None = None  # of this download, while it is limited
        self._alone: DownloadPace | None = None
        self._silent_until = 0.0

    def spend(self, count: int) -> float:
        """Account for bytes that came: seconds to wait before the next ones are read. Of 0: how long still."""
        with self._lock:
            self._owed += count
            now = time.monotonic()
            if now < self._silent_until:
                return self._alone.spend(count) if self._alone else 0.0
            waits = now < self._go_on_at
            if (waits and not count) or self._owed > self._batch or now - self._asked_at > self._ask_seconds:
                self._ask(now)
            return self._go_on_at - time.monotonic()

    def _ask(self, now: float) -> None:
        try:
            turns = self._limits.spend(self._tickets, self._owed)
        except QueueError as error:
            log.warning("the fleet's bandwidth is not shared out: %s; going on at the last speed", error)
            self._silent_until = time.monotonic() + _SILENCE_SECONDS
            self._alone = DownloadPace(self._speed) if self._speed else None
            return
        answered = time.monotonic()
        rates = [turn.rate for turn in turns if turn.rate is not None]
        if self._owed:
            self._measure(self._owed / max(now - self._asked_at, 0.001), min(rates, default=None))
            self._asked_at = answered
        self._ask_seconds = max(_ASK_SECONDS, _SLOW_ANSWERS * (answered - now))
        self._batch = min(_BATCH_BYTES, _BATCH_SECONDS * min(rates)) if rates else float("inf")
        self._tickets = dict(zip(self._tickets, (turn.ticket for turn in turns), strict=True))
        self._go_on_at = answered + max(turn.wait_seconds for turn in turns)
        self._owed = 0

    def _measure(self, speed: float, rate: float | None) -> None:
        if not rate:
            self._speed = None
        elif self._speed is None:
            self._speed = rate
        else:
            self._speed += _WEIGHT * (min(speed, rate) - self._speed)
