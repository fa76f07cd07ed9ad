"""What people and workers tell the pool, and what it tells them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import ExtractionRefused
from include.ytdlp_ops.ops_server.blaming import verdicts
from include.ytdlp_ops.ops_server.config import Account, Egress
from include.ytdlp_ops.ops_server.config_file import ConfigFile
from include.ytdlp_ops.ops_server.contract import OK, OutcomeRequest, StandingAnswer
from include.ytdlp_ops.ops_server.standing import (
    Action,
    Standing,
    StandingStore,
    account_subject,
    egress_subject,
)

log = logging.getLogger(__name__)
Found = TypeVar("Found")

RELOAD_SECONDS = 1.0


class Managing:
    """
    The pool as people see it.

    :param file: which egresses and accounts there are.
    :param store: how they stand.
    """

    def __init__(self, file: ConfigFile, store: StandingStore) -> None:
        self._file, self._store = file, store

    async def standings(self) -> list[Standing]:
        """Every egress, then every account."""
        config = self._file.current
        subjects = [egress_subject(one.name) for one in config.egresses]
        subjects += [account_subject(one.name) for one in config.accounts]
        return await _stored(self._store.look, subjects)

    async def egresses(self) -> list[StandingAnswer]:
        """How each egress stands, in the configuration's order."""
        listed = self._file.current.egresses
        found = await _stored(self._store.look, [egress_subject(one.name) for one in listed])
        return [_answer(one, standing, country=one.country) for one, standing in zip(listed, found, strict=True)]

    async def accounts(self) -> list[StandingAnswer]:
        """How each account stands, in the configuration's order."""
        listed = self._file.current.accounts
        found = await _stored(self._store.look, [account_subject(one.name) for one in listed])
        return [_answer(one, standing, egress=one.egress) for one, standing in zip(listed, found, strict=True)]

    async def override_egress(self, name: str, action: Action, reason: str) -> None:
        """Ban, unban or reset an egress."""
        self._must_know("egress", name, [one.name for one in self._file.current.egresses])
        await self._override(egress_subject(name), action, reason)

    async def override_account(self, name: str, action: Action, reason: str) -> None:
        """Ban, unban or reset an account."""
        self._must_know("account", name, [one.name for one in self._file.current.accounts])
        await self._override(account_subject(name), action, reason)

    async def outcome(self, said: OutcomeRequest) -> None:
        """Count what happened later with an info, on those who brought it."""
        config = self._file.current
        self._must_know("egress", said.egress, [one.name for one in config.egresses], 422)
        if said.account:
            self._must_know("account", said.account, [one.name for one in config.accounts], 422)
        code = None if said.code == OK else Code(said.code)
        log.info("%s says egress=%s account=%s code=%s", said.stage, said.egress, said.account, said.code)
        await _stored(self._store.settle, "", verdicts(said.egress, said.account, code, None))

    async def follow_files(self) -> None:
        """Until cancelled: reload a changed configuration, return accounts whose cookies came anew."""
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            try:
                await asyncio.to_thread(self._file.reload)
                await self._return_renewed()
            except ExtractionRefused as error:
                log.warning("accounts could not be looked at: %s", error)
            except Exception:  # the next look may do, and nobody else would notice that it has ended
                log.exception("configuration and cookies could not be looked at")

    async def _return_renewed(self) -> None:
        listed = self._file.current.accounts
        found = await _stored(self._store.look, [account_subject(one.name) for one in listed])
        for account, standing in zip(listed, found, strict=True):
            dead = standing.state == "banned" and standing.reason == Code.COOKIES_ROTATED
            if dead and standing.banned_at and _changed_at(account) > standing.banned_at:
                log.info("account %s returns: its cookies are new", account.name)
                await self._override(standing.subject, Action.RESET, "")

    async def _override(self, subject: str, action: Action, reason: str) -> None:
        await _stored(self._store.override, subject, action, reason)
        log.info("%s: %s (%r)", subject, action, reason)

    def _must_know(self, kind: str, name: str, known: list[str], status: int = 404) -> None:
        if name not in known:
            has = ", ".join(sorted(known)) or f"no {kind}s"
            refusal = ExtractionRefused(Code.BAD_INPUT, f"{kind}: {name!r} is unknown; this server has {has}")
            raise Unknown(refusal, status)


class Unknown(Exception):
    """A name in a path that is not there: a problem with a status of its own."""

    def __init__(self, refusal: ExtractionRefused, status: int) -> None:
        super().__init__(refusal.message)
        self.refusal, self.status = refusal, status


def _changed_at(account: Account) -> float:
    try:
        return account.cookies.stat().st_mtime
    except OSError:
        return 0.0


def _answer(one: Egress | Account, standing: Standing, **more: Any) -> StandingAnswer:
    return StandingAnswer(
        name=one.name,
        state=standing.state,
        cooling_until=standing.cooling_until,
        reason=standing.reason,
        tags=tuple(one.tags),
        in_use=standing.in_use,
        used_at=standing.used_at,
        asked_last_hour=standing.asked_last_hour,
        asked_last_day=standing.asked_last_day,
        hourly=one.hourly,
        daily=one.daily,
        success_share=standing.success_share,
        last_hour=dict(standing.last_hour),
        last_day=dict(standing.last_day),
        **more,
    )


async def _stored(step: Callable[..., Found], *args: Any) -> Found:
    try:
        return await asyncio.to_thread(step, *args)
    except ConnectionError as error:
        raise ExtractionRefused(Code.OPS_SERVER_UNAVAILABLE, str(error)) from None
