"""Whose fault a refusal is: what an answer means for the standing of the egress and the account that got it."""

from __future__ import annotations

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.ops_server.contract import OK
from include.ytdlp_ops.ops_server.standing import Effect, Verdict, account_subject, egress_subject

_EGRESS = {
    **dict.fromkeys(
        (Code.BOT_CHECK, Code.HTTP_429, Code.PROXY, Code.TLS_INTERCEPTED, Code.NETWORK_FILTER), Effect.COOL
    ),
    # one may be the site's fault, or the moment's
    **dict.fromkeys((Code.HTTP_403, Code.NETWORK), Effect.STRIKE),
}
_EGRESS_ALONE = {Code.RATE_LIMITED_SESSION: Effect.COOL, Code.ACCOUNT_BLOCKED: Effect.STRIKE}
"""What is said of the session: the egress's, where nobody was signed in."""
_ACCOUNT = {
    Code.COOKIES_ROTATED: Effect.BAN,
    **dict.fromkeys((Code.ACCOUNT_BLOCKED, Code.RATE_LIMITED_SESSION, Code.BOT_CHECK), Effect.COOL),
}
_SAYS_NOTHING = frozenset(
    {Code.BAD_URL, Code.FORMAT_MISSING, Code.MEDIA_403, Code.MEDIA_GONE, Code.CANCELLED, Code.NOT_FOUND}
)


def verdicts(egress: str, account: str | None, code: Code | None, retry_after: float | None) -> list[Verdict]:
    """
    What an answer means for those who got it.

    :param code: why there is nothing; None: it worked. A refusal that is about the video shows that they work.
    :param retry_after: seconds, as the site said.
    """
    if code is None or (code.outcome in (Outcome.SKIP, Outcome.DEFER) and code not in _SAYS_NOTHING):
        of_egress = of_account = Effect.OK
    else:
        of_egress = _EGRESS.get(code) or (not account and _EGRESS_ALONE.get(code)) or Effect.NONE
        of_account = _ACCOUNT.get(code, Effect.NONE)
    said, cool_ms = code or OK, round((retry_after or 0) * 1000)
    found = [Verdict(subject=egress_subject(egress), code=said, effect=of_egress, cool_ms=cool_ms)]
    if account:
        found.append(Verdict(subject=account_subject(account), code=said, effect=of_account, cool_ms=cool_ms))
    return found


def dead_account(account: str) -> Verdict:
    """The site has signed it out."""
    return Verdict(subject=account_subject(account), code=Code.COOKIES_ROTATED, effect=Effect.BAN)


def blocked_egress(egress: str, code: Code) -> Verdict:
    """It called a video unavailable that another egress got."""
    return Verdict(subject=egress_subject(egress), code=code, effect=Effect.COOL)
