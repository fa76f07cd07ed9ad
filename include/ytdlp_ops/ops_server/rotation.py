"""Which egress asks, and what several egresses say together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Set

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import BadInput, ExtractionRefused
from include.ytdlp_ops.ops_server.config import Egress, OpsServerConfig
from include.ytdlp_ops.ops_server.contract import InfoRequest
from include.ytdlp_ops.ops_server.jobs import Job
from include.ytdlp_ops.ops_server.pool import ExtractionPool
from include.ytdlp_ops.urls import canonical_url, refuse_private_target

log = logging.getLogger(__name__)


class Egresses:
    """
    The egresses in order of their last use.

    :param egresses: those of the configuration; the first is used first.
    """

    def __init__(self, egresses: Iterable[Egress]) -> None:
        self._by_use = {egress.name: egress for egress in egresses}

    def __contains__(self, name: str) -> bool:
        return name in self._by_use

    @property
    def names(self) -> str:
        """Their names, for messages."""
        return ", ".join(sorted(self._by_use))

    def take(self, *, asked: str | None, besides: Set[str]) -> Egress | None:
        """The one asked for, else the least recently used, if it is not among `besides`; counts as a use."""
        wanted = [asked] if asked else list(self._by_use)
        name = next((name for name in wanted if name not in besides), None)
        if name is None:
            return None
        self._by_use[name] = egress = self._by_use.pop(name)
        return egress


class Rotation:
    """
    Answers a request through one egress after the other.

    :param config: limits and yt-dlp's settings.
    :param pool: does the jobs.
    """

    def __init__(self, config: OpsServerConfig, pool: ExtractionPool) -> None:
        self._config, self._pool = config, pool
        self._egresses = Egresses(config.egresses)
        self._arguments = dict(config.extractor_args)
        if config.player_clients:
            youtube = self._arguments.get("youtube", {})
            self._arguments["youtube"] = {**youtube, "player_client": list(config.player_clients)}

    async def info(self, request: InfoRequest) -> bytes:
        """
        Extract, with the next egress wherever one answers ``rotate``, each once and within the deadline.

        :return: the JSON body of the answer.
        :raises ExtractionRefused: the last diagnosis and the egress that gave it; ``removed`` where two
            egresses say "unavailable" and not why.
        """
        url = self._checked(request)
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._config.deadline_seconds
        besides = set(request.exclude_egress)
        said: list[ExtractionRefused] = []
        while egress := self._egresses.take(asked=request.egress, besides=besides):
            besides.add(egress.name)
            try:
                answer = await self._pool.extract(self._job(url, request, egress), deadline)
            except ExtractionRefused as refusal:
                log.info("%s egress=%s code=%s outcome=%s", url, egress.name, refusal.code, refusal.outcome)
                said.append(refusal)
                if refusal.outcome is not Outcome.ROTATE or _is_removed(said) or clock() >= deadline:
                    break
            else:
                log.info("%s egress=%s bytes=%s", url, egress.name, len(answer))
                return answer
        raise self._conclusion(said)

    def _checked(self, request: InfoRequest) -> str:
        if request.egress and request.egress not in self._egresses:
            message = f"egress: {request.egress!r} is unknown; this server has {self._egresses.names}"
            raise ExtractionRefused(Code.BAD_INPUT, message)
        if request.account:
            message = f"account: {request.account!r} is unknown; this server has no accounts, leave it out"
            raise ExtractionRefused(Code.BAD_INPUT, message)
        try:
            url = canonical_url(request.url)
            if not self._config.allow_private_targets:
                refuse_private_target(url)
        except BadInput as error:
            raise ExtractionRefused(Code.BAD_URL, str(error)) from None
        return url

    def _job(self, url: str, request: InfoRequest, egress: Egress) -> Job:
        return Job(
            url=url,
            egress=egress.name,
            proxy=egress.proxy_url,
            client=request.client,
            extractors=self._config.extractors,
            extractor_args=self._arguments,
            socket_timeout=self._config.socket_timeout_seconds,
        )

    def _conclusion(self, said: list[ExtractionRefused]) -> ExtractionRefused:
        if not said:
            message = f"exclude_egress: leaves none of {self._egresses.names}; exclude fewer, or add an egress"
            return ExtractionRefused(Code.OPS_SERVER_UNAVAILABLE, message)
        last = said[-1]
        if not _is_removed(said):
            return last
        message = f"{last.message} (two egresses say so, and no more)"
        return ExtractionRefused(Code.REMOVED, message, egress=last.egress, account=last.account)


def _is_removed(said: list[ExtractionRefused]) -> bool:
    """Whether two egresses called the video unavailable without a reason; one alone may be blocked (DESIGN §6)."""
    return sum(refusal.code is Code.UNAVAILABLE_UNEXPLAINED for refusal in said) >= 2
