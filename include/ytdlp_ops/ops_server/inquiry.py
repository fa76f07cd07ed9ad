"""
The course of one request: who is asked next, after what has been said, and what it all means in the end.

It knows no clock and no network, so that every course can be read and tested by itself.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import ExtractionRefused
from include.ytdlp_ops.ops_server.config import Account, Egress, OpsServerConfig
from include.ytdlp_ops.ops_server.contract import InfoRequest
from include.ytdlp_ops.ops_server.jobs import SiteRefused
from include.ytdlp_ops.ops_server.standing import Candidate, NoneReady

SIGNING_IN_HELPS = frozenset({Code.AGE, Code.MEMBERS, Code.PRIVATE})
EGRESS_FAULTS = frozenset(
    {
        Code.BOT_CHECK,
        Code.HTTP_429,
        Code.PROXY,
        Code.TLS_INTERCEPTED,
        Code.NETWORK_FILTER,
        Code.NETWORK,
        Code.RATE_LIMITED_SESSION,
    }
)
"""Another egress is asked, up to a limit; of all else that rotates, two opinions are enough."""
MOST_EGRESSES = 4
"""Egresses that one request may try: a video that is refused everywhere must not send them all to rest."""
OPINIONS = 2
MOST_ACCOUNTS = 2
"""Accounts that one request may use: the video may be for members, and one is."""
AGAIN_SECONDS = 3600.0
"""When to come again, where only a person can make an egress or account ready."""
COUNTRY = "country:"


@dataclass(frozen=True, kw_only=True)
class Step:
    """
    Whom to ask.

    :param signed_in: with an account.
    :param countries: only an egress that comes out in one of these.
    :param not_countries: only an egress that comes out in none of these.
    """

    signed_in: bool = False
    countries: Collection[str] = ()
    not_countries: Collection[str] = ()


class Inquiry:
    """
    One request's course.

    :raises ExtractionRefused: ``bad_input`` for an egress, account or profile that is not there.
    """

    def __init__(self, config: OpsServerConfig, request: InfoRequest) -> None:
        self._request = request
        self._egresses, self._accounts = config.egresses, config.accounts
        self.said: list[SiteRefused] = []
        self._unready: tuple[Step, NoneReady] | None = None
        _must_be_known("egress", request.egress, [one.name for one in config.egresses])
        _must_be_known("account", request.account, [one.name for one in config.accounts])
        _must_be_known("profile", request.profile, list(config.profiles))

    def first(self) -> Step:
        """Without an account, unless one was asked for: cookies are used only where they are needed."""
        return Step(signed_in=bool(self._request.account))

    def heard(self, refusal: SiteRefused) -> Step | None:
        """Take note of what was said; whom to ask next, or nobody."""
        self.said.append(refusal)
        code = refusal.code
        if code in SIGNING_IN_HELPS:
            return self._sign_in()
        if code is Code.GEO:
            return self._from_elsewhere(refusal)
        if self._request.egress or not (refusal.outcome is Outcome.ROTATE or code is Code.NETWORK):
            return None
        if code is not Code.UNAVAILABLE_UNEXPLAINED and refusal.account:
            return self._sign_in()
        alike = sum(one.code not in EGRESS_FAULTS for one in self.said)
        enough = code not in EGRESS_FAULTS and alike >= OPINIONS
        return None if enough or len({one.egress for one in self.said}) >= MOST_EGRESSES else Step()

    def unready(self, step: Step, found: NoneReady) -> None:
        """Take note that nobody can be asked for this step."""
        self._unready = (step, found)

    def named(self, step: Step) -> tuple[str, str | None] | None:
        """The egress, and account, that the request names: they are asked whatever their state."""
        request = self._request
        if (
            not request.egress
            or request.egress in request.exclude_egress
            or (step.signed_in and not request.account)
        ):
            return None
        return request.egress, request.account

    def candidates(self, step: Step) -> tuple[list[Candidate], list[Candidate] | None]:
        """Egresses and accounts for a step, as the store takes them."""
        egresses = [
            Candidate(
                name=one.name,
                concurrency=one.concurrency,
                hourly=one.hourly,
                daily=one.daily,
                allowed=self._may_go_through(one, step),
            )
            for one in self._egresses
        ]
        if not step.signed_in:
            return egresses, None
        accounts = [
            Candidate(name=one.name, concurrency=1, hourly=one.hourly, daily=one.daily, egress=one.egress)
            for one in self._usable_accounts()
        ]
        return egresses, accounts

    def conclusion(self) -> ExtractionRefused:
        """What is answered, where there is no info."""
        if not self.said:
            return self._nobody()
        last = self.said[-1]
        if self.says_removed():
            message = f"{last.message} (two egresses say so, and no more)"
            return ExtractionRefused(Code.REMOVED, message, egress=last.egress, account=last.account)
        if self._unready and self._unready[0].signed_in and last.code in SIGNING_IN_HELPS:
            wait = _seconds(self._unready[1])
            message = f"{last.message} (an account may see it, and none is ready; see /v1/accounts)"
            return ExtractionRefused(
                last.code, message, outcome=Outcome.DEFER, retry_after=wait, egress=last.egress
            )
        if self._unready and last.retry_after is None and self._unready[1].wait_ms:
            last.retry_after = _seconds(self._unready[1])
        return last

    def says_removed(self) -> bool:
        """Whether two egresses called it unavailable without a reason; one alone may be blocked (DESIGN §6)."""
        return len({one.egress for one in self.said if one.code is Code.UNAVAILABLE_UNEXPLAINED}) >= OPINIONS

    def _sign_in(self) -> Step | None:
        return Step(signed_in=True) if not self._request.account and self._usable_accounts() else None

    def _from_elsewhere(self, refusal: SiteRefused) -> Step | None:
        tried = self._countries_tried()
        step = Step(countries=refusal.countries) if refusal.countries else Step(not_countries=tried)
        if self._request.egress or not any(self._may_go_through(one, step) for one in self._egresses):
            return None
        known = [one.country for one in self._egresses if one.name == refusal.egress and one.country]
        return step if refusal.countries or known else None

    def _countries_tried(self) -> set[str]:
        asked = {one.egress for one in self.said}
        return {one.country for one in self._egresses if one.name in asked and one.country}

    def _may_go_through(self, egress: Egress, step: Step) -> bool:
        request = self._request
        if request.egress:
            return egress.name == request.egress and egress.name not in request.exclude_egress
        # with an account the one that answered without may be asked again; one that failed may not
        besides = {one.egress for one in self.said if not step.signed_in or one.code in EGRESS_FAULTS}
        if egress.name in besides or egress.name in request.exclude_egress:
            return False
        if step.countries and egress.country not in step.countries:
            return False
        if step.not_countries and (not egress.country or egress.country in step.not_countries):
            return False
        return step.countries != () or self._is_for_the_item(egress)

    def _is_for_the_item(self, egress: Egress) -> bool:
        tags = set(self._request.tags)
        countries = {tag.removeprefix(COUNTRY) for tag in tags if tag.startswith(COUNTRY)}
        known = {tag for one in self._egresses for tag in one.tags}
        return (not countries or egress.country in countries) and (tags & known) <= set(egress.tags)

    def _usable_accounts(self) -> list[Account]:
        if self._request.account:
            return [one for one in self._accounts if one.name == self._request.account]
        tried = {one.account for one in self.said if one.account}
        if len(tried) >= MOST_ACCOUNTS:
            return []
        tags = set(self._request.tags)
        return [one for one in self._accounts if one.name not in tried and (not one.tags or tags & set(one.tags))]

    def _nobody(self) -> ExtractionRefused:
        names = ", ".join(one.name for one in self._egresses)
        found = self._unready[1] if self._unready else NoneReady(None)
        step = self._unready[0] if self._unready else Step()
        if not any(self._may_go_through(one, step) for one in self._egresses):
            message = f"tags and exclude_egress leave none of {names}; exclude fewer, or add an egress"
            return ExtractionRefused(Code.OPS_SERVER_UNAVAILABLE, message)
        who = f"account {self._request.account!r} is not" if self._request.account else f"none of {names} is"
        if found.wait_ms == 0:
            message = f"{who} free before the deadline; raise concurrency, or add an egress"
            return ExtractionRefused(Code.OPS_SERVER_UNAVAILABLE, message)
        message = f"{who} ready: cooling, over budget or banned; see /v1/egresses and /v1/accounts"
        return ExtractionRefused(
            Code.OPS_SERVER_UNAVAILABLE, message, outcome=Outcome.DEFER, retry_after=_seconds(found)
        )


def _must_be_known(kind: str, name: str | None, known: Collection[str]) -> None:
    if name and name not in known:
        has = (
            f"this server has {', '.join(sorted(known))}" if known else f"this server has no {kind}s, leave it out"
        )
        raise ExtractionRefused(Code.BAD_INPUT, f"{kind}: {name!r} is unknown; {has}")


def _seconds(found: NoneReady) -> float:
    return AGAIN_SECONDS if found.wait_ms is None else max(1.0, found.wait_ms / 1000)
