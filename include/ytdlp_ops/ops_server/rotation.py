"""Takes egresses and accounts, has the site asked, and tells the pool what came of it."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import BadInput, ExtractionRefused
from include.ytdlp_ops.ops_server.blaming import blocked_egress, dead_account, verdicts
from include.ytdlp_ops.ops_server.config import OpsServerConfig
from include.ytdlp_ops.ops_server.config_file import ConfigFile
from include.ytdlp_ops.ops_server.contract import OK, ExpandRequest, InfoRequest
from include.ytdlp_ops.ops_server.cookies import CookieCopies
from include.ytdlp_ops.ops_server.expanding import Cursor
from include.ytdlp_ops.ops_server.inquiry import Inquiry, Step
from include.ytdlp_ops.ops_server.jobs import Answer, Job, SiteRefused
from include.ytdlp_ops.ops_server.metrics import Metrics
from include.ytdlp_ops.ops_server.pool import ExtractionPool
from include.ytdlp_ops.ops_server.standing import NoneReady, StandingStore, Taken, Verdict
from include.ytdlp_ops.urls import canonical_url, refuse_private_target

log = logging.getLogger(__name__)
Found = TypeVar("Found")

LEAST_SECONDS = 1.0
"""With less time left nobody else is asked."""
_LEASE_MARGIN_SECONDS = 30
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 0.25


class Rotation:
    """
    Answers a request through one egress after the other.

    :param file: limits and yt-dlp's settings, as they are when a request comes.
    :param pool: does the jobs.
    :param store: knows how egresses and accounts stand.
    """

    def __init__(self, file: ConfigFile, pool: ExtractionPool, store: StandingStore, metrics: Metrics) -> None:
        self._file, self._pool, self._store, self._metrics = file, pool, store, metrics
        self._copies = CookieCopies()

    def close(self) -> None:
        """Remove what lies on disk."""
        self._copies.close()

    async def info(self, request: InfoRequest) -> bytes:
        """
        Extract, as `Inquiry` has it, within the deadline.

        :return: the JSON body of the answer.
        :raises ExtractionRefused: the conclusion.
        """
        return await self._asked(request, None)

    async def expand(self, request: ExpandRequest) -> bytes:
        """One page of a list, through the egresses as for an info."""
        try:
            cursor = Cursor.from_text(request.cursor) if request.cursor else Cursor(lists=[request.url])
        except BadInput as error:
            raise ExtractionRefused(Code.BAD_INPUT, str(error)) from None
        cursor.lists = [_checked(url, self._file.current) for url in cursor.lists]
        asked = InfoRequest(
            url=cursor.lists[0], egress=request.egress, account=request.account, profile=request.profile
        )
        return await self._asked(asked, {"cursor": cursor.model_dump(), "limit": request.limit})

    async def _asked(self, request: InfoRequest, page: dict[str, Any] | None) -> bytes:
        config = self._file.current
        inquiry, url = Inquiry(config, request), _checked(request.url, config)
        clock = asyncio.get_running_loop().time
        deadline = clock() + config.deadline_seconds
        step: Step | None = inquiry.first()
        while step:
            taken = await self._take(config, inquiry, step, deadline)
            if isinstance(taken, NoneReady):
                inquiry.unready(step, taken)
                break
            try:
                answer = await self._ask(config, taken, _job(config, url, request, page, taken), deadline)
            except SiteRefused as refusal:
                next_step = inquiry.heard(refusal)
                step = next_step if deadline - clock() > LEAST_SECONDS else None
            else:
                await self._blame_the_blocked(inquiry)
                return answer.body
        raise inquiry.conclusion()

    async def _take(
        self, config: OpsServerConfig, inquiry: Inquiry, step: Step, deadline: float
    ) -> Taken | NoneReady:
        """Whom the step means, waiting for one that is busy; a named egress is taken whatever its state."""
        lease, lease_ms = secrets.token_hex(8), int((config.deadline_seconds + _LEASE_MARGIN_SECONDS) * 1000)
        egresses, accounts = inquiry.candidates(step)
        pause = _FIRST_PAUSE_SECONDS
        while True:
            found = await self._stored(self._store.take, lease, lease_ms, egresses, accounts)
            if isinstance(found, NoneReady) and (named := inquiry.named(step)):
                return Taken(lease="", egress=named[0], account=named[1])
            if isinstance(found, Taken) or found.wait_ms != 0:
                return found
            if asyncio.get_running_loop().time() + pause > deadline:
                return found
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def _ask(self, config: OpsServerConfig, taken: Taken, job: Job, deadline: float) -> Answer:
        """One job, and what its answer means for the standing of those who were taken for it."""
        started = time.monotonic()
        code: Code | None = Code.OPS_SERVER_UNAVAILABLE  # unless it comes to an answer
        retry_after, dead = None, False
        try:
            answer = await self._run(config, job, deadline)
            code, dead = None, answer.stale_cookies
            return answer
        except SiteRefused as refusal:
            code, retry_after, dead = refusal.code, refusal.retry_after, refusal.stale_cookies
            raise
        finally:
            self._metrics.seconds.observe(time.monotonic() - started)
            log.info("%s egress=%s account=%s code=%s", job.url, taken.egress, taken.account, code or OK)
            await self._settle(taken, code, retry_after, dead=dead or code is Code.COOKIES_ROTATED)

    async def _run(self, config: OpsServerConfig, job: Job, deadline: float) -> Answer:
        """One job, with a copy of the account's cookies of its own."""
        seconds = min(config.attempt_seconds, config.deadline_seconds)
        account = next((one for one in config.accounts if one.name == job.account), None)
        if not account:
            return await self._pool.extract(job, deadline, seconds)
        try:
            copy = self._copies.lend(account.cookies)
        except OSError as error:
            message = f"the cookies of account {account.name} can't be read: {error.strerror}"
            raise SiteRefused(Code.COOKIES_ROTATED, message, egress=job.egress, account=job.account) from None
        found: Answer | SiteRefused | None = None
        try:
            found = await self._pool.extract(replace(job, cookies=str(copy)), deadline, seconds)
        except SiteRefused as refusal:
            found = refusal
        finally:
            ended = found is not None and found.ended
            signed_in = await asyncio.to_thread(self._copies.take_back, copy, account.cookies, ended=ended)
        found.stale_cookies = found.stale_cookies or not signed_in
        if isinstance(found, SiteRefused):
            raise found
        return found

    async def _settle(self, taken: Taken, code: Code | None, retry_after: float | None, *, dead: bool) -> None:
        self._metrics.answers.labels(taken.egress, code or OK).inc()
        found = verdicts(taken.egress, taken.account, code, retry_after)
        if dead and taken.account:
            log.warning(
                "account %s is set aside: the site has signed it out, or its file can't be read; "
                "export its cookies anew, it returns when the file has changed", taken.account,
            )  # fmt: skip
            found[1:] = [dead_account(taken.account)]
        await self._tell(found, taken.lease)

    async def _tell(self, found: Sequence[Verdict], lease: str = "") -> None:
        """Have the store take note; one that can't be reached must not cost the answer."""
        try:
            await asyncio.to_thread(self._store.settle, lease, found)
        except ConnectionError as error:
            log.warning("%s", error)

    async def _blame_the_blocked(self, inquiry: Inquiry) -> None:
        """The video plays: who called it unavailable is blocked."""
        blocked = {one.egress for one in inquiry.said if one.code is Code.UNAVAILABLE_UNEXPLAINED and one.egress}
        if blocked:
            await self._tell([blocked_egress(name, Code.UNAVAILABLE_UNEXPLAINED) for name in blocked])

    async def _stored(self, step: Callable[..., Found], *args: Any) -> Found:
        try:
            return await asyncio.to_thread(step, *args)
        except ConnectionError as error:
            raise ExtractionRefused(Code.OPS_SERVER_UNAVAILABLE, str(error)) from None


def _checked(url: str, config: OpsServerConfig) -> str:
    try:
        url = canonical_url(url)
        if not config.allow_private_targets:
            refuse_private_target(url)
    except BadInput as error:
        raise ExtractionRefused(Code.BAD_URL, str(error)) from None
    return url


def _job(
    config: OpsServerConfig, url: str, request: InfoRequest, page: dict[str, Any] | None, taken: Taken
) -> Job:
    profile = config.profile(request.profile)
    arguments = dict(config.extractor_args)
    if config.player_clients:
        arguments["youtube"] = {**arguments.get("youtube", {}), "player_client": list(config.player_clients)}
    return Job(
        url=url,
        egress=taken.egress,
        proxy=next(one.proxy_url for one in config.egresses if one.name == taken.egress),
        account=taken.account,
        client=request.client,
        extractors=profile.extractors or config.extractors,
        extractor_args=arguments,
        socket_timeout=config.socket_timeout_seconds,
        allow_private=config.allow_private_targets,
        services=config.services,
        max_bytes=config.max_info_bytes,
        formats=request.formats,
        min_height=request.min_height or profile.min_height,
        page=page,
    )
