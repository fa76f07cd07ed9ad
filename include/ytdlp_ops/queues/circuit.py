"""
The circuit breaker of a stage, and its pause by hand: both are asked inside the claim, so that no claimer misses
them.

    closed ──share of one systemic class──> open ──cool-down over, one probe claimed──> probing
       ^                                      ^                                            │
       └──────── the probe ended well ────────┼──────── the probe met it again: twice as long ┘
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.queues.keys import Place

SYSTEMIC: dict[Code, str] = {
    Code.BOT_CHECK: "bot_check",
    Code.UNAVAILABLE_UNEXPLAINED: "bot_check",
    Code.RATE_LIMITED_SESSION: "rate_limit",
    Code.HTTP_429: "rate_limit",
    Code.PROXY: "proxy",
    Code.TLS_INTERCEPTED: "proxy",
    Code.NETWORK_FILTER: "proxy",
    Code.HTTP_403: "forbidden",
    Code.MEDIA_403: "forbidden",
    Code.ACCOUNT_BLOCKED: "account",
    Code.COOKIES_ROTATED: "account",
    Code.CLIENT_BROKEN: "client",
    Code.NO_USABLE_FORMATS: "client",
    Code.OPS_SERVER_UNAVAILABLE: "server",
}
"""Codes that say something of the way to the site, not of one video, and the class that they are counted in.

A class is kept as its first letter: no two may share one, nor with ``ok`` and ``undecided``.
"""


@dataclass(frozen=True, kw_only=True)
class Breaker:
    """
    When a stage's circuit opens, and for how long.

    :param window: finishes that are looked back on.
    :param share: of the window in one systemic class, above which the circuit opens.
    :param cool_down_ms: of the first opening; doubles each time the probe meets the reason again.
    :param longest_cool_down_ms: no cool-down is longer.
    """

    window: int = 20
    share: float = 0.3
    cool_down_ms: int = 60 * 1000
    longest_cool_down_ms: int = 60 * 60 * 1000

    def __str__(self) -> str:
        """As the finish step takes it."""
        return f"{self.window} {self.share} {self.cool_down_ms} {self.longest_cool_down_ms}"


@dataclass(frozen=True, kw_only=True)
class Circuit:
    """
    Whether a stage may claim, and why not.

    :param state: ``closed``, ``open`` or ``probing``.
    :param reason: the systemic class that opened it.
    :param share: how much of the last finishes ended so.
    :param opened_at: UTC, ISO 8601.
    :param until: when one item may be tried, UTC, ISO 8601.
    :param probe: the id of the item that decides.
    :param paused_since: UTC, ISO 8601, where it was paused by hand.
    :param paused_reason: what the person said.
    """

    state: str = "closed"
    reason: str = ""
    share: str = ""
    opened_at: str = ""
    until: str = ""
    probe: str = ""
    paused_since: str = ""
    paused_reason: str = ""

    @classmethod
    def of(cls, circuit: Mapping[bytes, bytes], pause: Mapping[bytes, bytes]) -> Circuit:
        """From the two HASHes of a stage."""
        known = {name.decode(): value.decode("utf-8", "replace") for name, value in circuit.items()}
        fields = ("state", "reason", "share", "opened_at", "until", "probe")
        return cls(
            **{name: known[name] for name in fields if name in known},
            paused_since=pause.get(b"since", b"").decode("utf-8", "replace"),
            paused_reason=pause.get(b"reason", b"").decode("utf-8", "replace"),
        )

    @property
    def may_claim(self) -> bool:
        """False while paused by hand, or while the circuit is anything but closed."""
        return self.state == "closed" and not self.paused_since

    def __str__(self) -> str:
        """For log lines and pages; empty where all is well."""
        parts = []
        if self.paused_since:
            parts.append(f"paused since {self.paused_since}: {self.paused_reason}")
        if self.state != "closed":
            then = f"nothing is claimed until {self.until}" if self.state == "open" else f"{self.probe} decides"
            parts.append(f"circuit {self.state}: {self.share} ended {self.reason}; {then}")
        return "; ".join(parts)


def class_of(place: Place, code: object) -> str:
    """
    What the breaker makes of a finish: the site answered (``ok``), a systemic class, or neither.

    A 403 of media skips its format, and counts all the same: in 2026 it was for days the fate of whole clients.
    """
    if code in SYSTEMIC and (place is not Place.SKIPPED or code == Code.MEDIA_403):
        return SYSTEMIC[Code(str(code))]
    if place is Place.RESULT or place is Place.SKIPPED or code in (Code.UPCOMING, Code.NOT_LIVE):
        return "ok"
    return "undecided"
