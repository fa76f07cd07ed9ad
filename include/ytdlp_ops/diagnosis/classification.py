"""From a `Signal` to a `Diagnosis`, in the order that the package's docstring gives."""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.diagnosis import rules
from include.ytdlp_ops.diagnosis.values import Diagnosis, Signal
from include.ytdlp_ops.diagnosis.wording import for_people, normalised

DEFER_SECONDS = 3600.0
"""How long to wait where nobody said when."""

_ERRNO = re.compile(r"\[errno (\d+)\]")
_HTTP_ERROR = re.compile(r"\bhttp error (\d{3})\b")
_EXPIRE = re.compile(r"[?&/]expire[=/](\d{1,12})(?!\d)")  # in the query, or in the path of HLS
_BEGINS_IN = re.compile(r"\bin (\d+) (minute|hour|day|week)s?\b")
_SECONDS = {"minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0}


class _Facts(NamedTuple):
    signal: Signal
    text: str  # normalised
    reasons: str  # every client's, normalised
    status: int | None
    now: float


class _Verdict(NamedTuple):
    code: Code
    rule: str


def diagnose(signal: Signal, *, now: float | None = None) -> Diagnosis:
    """
    Why, and what to do.

    :param now: unix seconds, for media URLs that expire and lives that begin; by default the clock.
    """
    facts = _facts(signal, time.time() if now is None else now)
    found = next((verdict for step in _STEPS if (verdict := step(facts))), _Verdict(Code.UNKNOWN, "unknown"))
    found = _second_thoughts(facts, found)
    outcome = found.code.outcome
    return Diagnosis(
        code=found.code,
        outcome=outcome,
        message=_message(facts, found.code),
        rule=found.rule,
        retry_after=_seconds_until_start(facts) if outcome is Outcome.DEFER else None,
        countries=signal.countries,
    )


def _facts(signal: Signal, now: float) -> _Facts:
    text = normalised(signal.text)
    reasons = [normalised(said.reason) for said in signal.playability if said.reason]
    status = signal.status
    if status is None and (match := _HTTP_ERROR.search(text)):
        status = int(match[1])
    return _Facts(signal, text, " | ".join(reasons), status, now)


def _machine(facts: _Facts) -> _Verdict | None:
    if verdict := _first_text(facts, facts.text, rules.MACHINE_TEXTS):
        return verdict
    outermost = facts.signal.classes[:1]
    if outermost and (code := rules.UNWRAPPED_CLASSES.get(outermost[0])):
        return _Verdict(code, f"class:{outermost[0]}")
    networked = _concerns_network(facts)
    for number in _errnos(facts):
        code = rules.ERRNOS.get(number) or (None if networked else rules.FILE_ERRNOS.get(number))
        if code:
            return _Verdict(code, f"errno:{errno.errorcode.get(number, number)}")
    return None


def _errnos(facts: _Facts) -> Iterator[int]:
    if facts.signal.errno is not None:
        yield facts.signal.errno
    yield from (int(number) for number in _ERRNO.findall(facts.text))


def _concerns_network(facts: _Facts) -> bool:
    said = "new connection" in facts.text or "connect to proxy" in facts.text
    return said or not rules.NETWORK_CLASSES.isdisjoint(facts.signal.classes)


def _class(facts: _Facts) -> _Verdict | None:
    given = facts.signal.classes
    return next((_Verdict(code, f"class:{name}") for name, code in rules.CLASSES.items() if name in given), None)


def _status(facts: _Facts) -> _Verdict | None:
    status = facts.status
    if status is None:
        return None
    media = _concerns_media(facts.signal)
    if media and status in rules.EXPIRY_STATUSES and _is_expired(facts):
        return _Verdict(Code.URL_EXPIRED, "media:expired")
    code = (rules.MEDIA_STATUSES if media else rules.SITE_STATUSES).get(status)
    if status in rules.NETWORK_STATUSES:
        code = Code.NETWORK
    if not code or (code.outcome is Outcome.SKIP and not _is_said(facts, status)):
        return None
    return _Verdict(code, f"{'media' if media else 'status'}:{status}")


def _is_said(facts: _Facts, status: int) -> bool:
    """Whether the status is what the failure is about, and not of an error that was handled on the way."""
    return not facts.text or f"http error {status}" in facts.text


def _concerns_media(signal: Signal) -> bool:
    if signal.stage != "download":
        return False
    host, media_host = signal.host, urlsplit(signal.media_url or "").hostname
    return host is None or host == media_host or host.endswith(".googlevideo.com")


def _is_expired(facts: _Facts) -> bool:
    expires = _EXPIRE.search(facts.signal.media_url or "")
    return expires is not None and int(expires[1]) <= facts.now


def _playability(facts: _Facts) -> _Verdict | None:
    told = facts.signal.playability
    for screen, code in rules.SCREENS.items():
        if any(said.screen == screen for said in told):
            return _Verdict(code, f"playability:{screen}")
    statuses = {said.status for said in told}
    if rules.NOT_YET in statuses:
        return _Verdict(Code.UPCOMING, f"playability:{rules.NOT_YET}")
    if verdict := _first_text(facts, facts.reasons, rules.EGRESS_TEXTS):
        return verdict
    if aged := statuses & rules.AGE_STATUSES:
        return _Verdict(Code.AGE, f"playability:{aged.pop()}")
    if rules.LOGIN_REQUIRED in statuses:
        return _words(facts) or _Verdict(Code.BOT_CHECK, f"playability:{rules.LOGIN_REQUIRED}")
    return None


def _words(facts: _Facts) -> _Verdict | None:
    said = facts.text or facts.reasons
    return _first_text(facts, said, rules.SYSTEMIC_TEXTS) or _first_text(facts, said, rules.CONTENT_TEXTS)


def _network(facts: _Facts) -> _Verdict | None:
    found = next((name for name in facts.signal.classes if name in rules.NETWORK_CLASSES), None)
    return _Verdict(Code.NETWORK, f"class:{found}") if found else None


_STEPS: tuple[Callable[[_Facts], _Verdict | None], ...] = (
    _machine,
    _class,
    _status,
    _playability,
    _words,
    _network,
)


def _first_text(facts: _Facts, text: str, table: Iterable[rules.TextRule]) -> _Verdict | None:
    for rule in table:
        if rule.stage in (None, facts.signal.stage) and rule.pattern.search(text):
            return _Verdict(rule.code, rule.name)
    return None


def _second_thoughts(facts: _Facts, found: _Verdict) -> _Verdict:
    """What warnings and clients make of a verdict that was reached without them."""
    warned = " | ".join(facts.signal.warned).lower()
    if rules.STALE_COOKIES in warned and found.code in rules.NEEDS_ACCOUNT:
        return _Verdict(Code.COOKIES_ROTATED, f"warned:cookies<{found.rule}")
    if warned and rules.UNEXPLAINED_TEXT.search(facts.text):
        named = next((code for words, code in rules.WARNINGS if words in warned), None)
        if named:
            found = _Verdict(named, f"warned:{named}")
        elif found.code is Code.FORMAT_MISSING:
            found = _Verdict(Code.NO_USABLE_FORMATS, "warned:formats")
    clients = [said.client for said in facts.signal.playability if said.client]
    if found.code is Code.DRM and clients and all(client.startswith("tv") for client in clients):
        # an experiment on sessions of the tv clients locks every video (yt-dlp#12563)
        return _Verdict(Code.CLIENT_BROKEN, "clients:tv_drm")
    return found


def _seconds_until_start(facts: _Facts) -> float:
    for said in facts.signal.playability:
        seconds = _timestamp(said.starts) - facts.now
        if seconds > 0:
            return seconds
    match = _BEGINS_IN.search(f"{facts.text} | {facts.reasons}")
    return int(match[1]) * _SECONDS[match[2]] if match else DEFER_SECONDS


def _timestamp(moment: str | None) -> float:
    try:
        parsed = datetime.fromisoformat(moment or "")
    except ValueError:
        return 0.0
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def _message(facts: _Facts, code: Code) -> str:
    said = for_people(facts.signal.text)
    if not said and facts.status:
        said = f"HTTP {facts.status} from {facts.signal.host or 'the site'}"
    said = said or f"no reason given ({code})"
    if code is Code.URL_EXPIRED:
        return f"the media URL is past its time, extract again: {said}"
    return said
