"""Extraction processes that live on from job to job, and are killed at a deadline."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import ExtractionRefused
from include.ytdlp_ops.ops_server.config import REDIS_VARIABLE, TOKEN_VARIABLE
from include.ytdlp_ops.ops_server.jobs import Answer, Job, SiteRefused, read_reply

log = logging.getLogger(__name__)

PROJECT = Path(__file__).resolve().parents[3]
RESTART_SECONDS = 5.0
_SECRETS = (TOKEN_VARIABLE, REDIS_VARIABLE)


class ExtractionPool:
    """
    As many extraction processes as asked for; one that ends or is killed is replaced.

    Processes, as a thread can't be stopped; living ones, as a fork for each request cost half as much again
    (229 against 152 ms an extraction, 2 cores, offline site). A new one is ready after about 0.6 s.

    :param size: number of processes.
    :param ca_file: a PEM bundle that they trust instead of certifi's.
    :param plugins: yt-dlp plugins that they load, as modules of ``yt_dlp_plugins.extractor``.
    """

    def __init__(self, size: int, ca_file: Path | None = None, plugins: Sequence[str] = ()) -> None:
        self.size = size
        self._plugins = plugins
        self.ready = 0
        self.loaded: dict[str, Any] = {}
        self._environ = _environ(ca_file)
        self._idle: asyncio.Queue[_Worker] = asyncio.Queue()
        self._keepers: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start the processes; requests wait for them within their own deadline."""
        self._keepers = [asyncio.create_task(self._keep()) for _ in range(self.size)]

    async def stop(self) -> None:
        """Kill the processes, whatever they do, and wait until they are gone."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)

    async def extract(self, job: Job, deadline: float, seconds: float) -> Answer:
        """
        Have one job done.

        :param deadline: when to give up, in the event loop's time.
        :param seconds: most that the job may take, once a process is free for it.
        :raises SiteRefused: the diagnosis; ``network`` when the time is over, with the process killed.
        :raises ExtractionRefused: ``ops_server_unavailable`` if no process came free, or so late that the egress
            can't be blamed for what did not come.
        """
        worker = await self._free_worker(deadline)
        begins = asyncio.get_running_loop().time()
        ends = min(deadline, begins + seconds)
        try:
            async with asyncio.timeout_at(ends):
                answer = await worker.do(job)
        except SiteRefused:
            self._idle.put_nowait(worker)
            raise
        except (TimeoutError, EOFError, OSError) as error:
            worker.kill()
            if isinstance(error, TimeoutError) and ends - begins < seconds / 2:
                raise _too_late(self.size) from None
            raise _killed(error, job) from None
        except BaseException:
            worker.kill()  # what it says now would be taken for the answer to the next job
            raise
        self._idle.put_nowait(worker)
        return answer

    async def _free_worker(self, deadline: float) -> _Worker:
        try:
            async with asyncio.timeout_at(deadline):
                while not (worker := await self._idle.get()).alive:
                    pass
        except TimeoutError:
            raise _too_late(self.size) from None
        return worker

    async def _keep(self) -> None:
        """Keep one process alive until cancelled."""
        while True:
            try:
                worker = await _Worker.start(self._environ, self._plugins)
            except OSError as error:  # no memory or no process left; both come back
                log.error("no extraction process could be started: %s; next try in %s s", error, RESTART_SECONDS)
                await asyncio.sleep(RESTART_SECONDS)
                continue
            try:
                await self._lend(worker)
            finally:
                worker.kill()
                await worker.process.wait()

    async def _lend(self, worker: _Worker) -> None:
        """Offer one process to jobs until it ends."""
        try:
            self.loaded = await worker.hello()
        except EOFError:
            code = await worker.process.wait()
            log.error("extraction process ended with %s before it was ready; next in %s s", code, RESTART_SECONDS)
            await asyncio.sleep(RESTART_SECONDS)
            return
        self.ready += 1
        try:
            self._idle.put_nowait(worker)
            code = await worker.process.wait()
        finally:
            self.ready -= 1
        log.warning("extraction process %s ended with %s; another is started", worker.process.pid, code)


class _Worker:
    def __init__(self, process: Process) -> None:
        assert process.stdin
        assert process.stdout
        self.process, self._stdin, self._stdout = process, process.stdin, process.stdout

    @classmethod
    async def start(cls, environ: dict[str, str], plugins: Sequence[str]) -> _Worker:
        module = "include.ytdlp_ops.ops_server.extraction"
        # a session of its own: Ctrl-C is for the server, and a deno can be killed with it
        return cls(
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                module,
                *plugins,
                stdin=PIPE,
                stdout=PIPE,
                env=environ,
                start_new_session=True,
            )
        )

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    async def hello(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(await self._line())
        return loaded

    async def do(self, job: Job) -> Answer:
        self._stdin.write(job.to_line())
        await self._stdin.drain()
        size, stale_cookies = read_reply(await self._line())
        return Answer(body=await self._stdout.readexactly(size), stale_cookies=stale_cookies)

    def kill(self) -> None:
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    async def _line(self) -> bytes:
        line = await self._stdout.readline()
        if not line:
            raise EOFError
        return line


def _too_late(size: int) -> ExtractionRefused:
    message = f"none of {size} extraction processes came free in time; raise workers, or see /readyz"
    return ExtractionRefused(Code.OPS_SERVER_UNAVAILABLE, message)


def _killed(error: Exception, job: Job) -> SiteRefused:
    """What it means that a process was killed at its time's end, or ended by itself, in the middle of a job."""
    if isinstance(error, TimeoutError):
        code, message = Code.NETWORK, f"{job.url}: no answer through egress {job.egress!r} in its time"
    else:
        code, message = Code.UNKNOWN, f"{job.url}: the extraction process ended in the middle of it"
    refusal = SiteRefused(code, message, egress=job.egress, account=job.account)
    refusal.ended = False
    return refusal


def _environ(ca_file: Path | None) -> dict[str, str]:
    environ = {name: value for name, value in os.environ.items() if name not in _SECRETS}
    environ["YTDLP_NO_PLUGINS"] = "1"
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PROJECT), environ.get("PYTHONPATH")]))
    # the deno wheel puts its program beside the interpreter
    environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", os.defpath)])
    if ca_file:
        environ["SSL_CERT_FILE"] = str(ca_file)
    return environ
