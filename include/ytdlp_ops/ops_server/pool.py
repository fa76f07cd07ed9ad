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
from pathlib import Path
from typing import Any

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import ExtractionRefused
from include.ytdlp_ops.ops_server.config import TOKEN_VARIABLE
from include.ytdlp_ops.ops_server.jobs import Job, read_reply

log = logging.getLogger(__name__)

PROJECT = Path(__file__).resolve().parents[3]
RESTART_SECONDS = 5.0


class ExtractionPool:
    """
    As many extraction processes as asked for; one that ends or is killed is replaced.

    Processes, as a thread can't be stopped; living ones, as a fork for each request cost half as much again
    (229 against 152 ms an extraction, 2 cores, offline site). A new one is ready after about 0.6 s.

    :param size: number of processes.
    :param ca_file: a PEM bundle that they trust instead of certifi's.
    """

    def __init__(self, size: int, ca_file: Path | None = None) -> None:
        self.size = size
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

    async def extract(self, job: Job, deadline: float) -> bytes:
        """
        Have one job done.

        :param deadline: when to give up, in the event loop's time.
        :return: the JSON body of the answer.
        :raises ExtractionRefused: the diagnosis; ``network`` at the deadline, with the process killed;
            ``ops_server_unavailable`` if no process came free.
        """
        worker = await self._free_worker(deadline)
        try:
            async with asyncio.timeout_at(deadline):
                answer = await worker.do(job)
        except ExtractionRefused:
            self._idle.put_nowait(worker)
            raise
        except BaseException as error:
            worker.kill()  # what it says now would be taken for the answer to the next job
            if isinstance(error, TimeoutError):
                message = f"{job.url}: no answer through egress {job.egress!r} within the request's deadline"
                raise ExtractionRefused(Code.NETWORK, message, egress=job.egress) from None
            if isinstance(error, (EOFError, OSError)):
                message = f"{job.url}: the extraction process ended in the middle of it"
                raise ExtractionRefused(Code.UNKNOWN, message, egress=job.egress) from None
            raise
        self._idle.put_nowait(worker)
        return answer

    async def _free_worker(self, deadline: float) -> _Worker:
        try:
            async with asyncio.timeout_at(deadline):
                while not (worker := await self._idle.get()).alive:
                    pass
        except TimeoutError:
            message = f"none of {self.size} extraction processes came free in time; raise workers, or see /readyz"
            raise ExtractionRefused(Code.OPS_SERVER_UNAVAILABLE, message) from None
        return worker

    async def _keep(self) -> None:
        """Keep one process alive until cancelled."""
        while True:
            try:
                worker = await _Worker.start(self._environ)
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
    async def start(cls, environ: dict[str, str]) -> _Worker:
        module = "include.ytdlp_ops.ops_server.extraction"
        # a session of its own: Ctrl-C is for the server, and a deno can be killed with it
        return cls(
            await asyncio.create_subprocess_exec(
                sys.executable, "-m", module, stdin=PIPE, stdout=PIPE, env=environ, start_new_session=True
            )
        )

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    async def hello(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(await self._line())
        return loaded

    async def do(self, job: Job) -> bytes:
        self._stdin.write(job.to_line())
        await self._stdin.drain()
        return await self._stdout.readexactly(read_reply(await self._line()))

    def kill(self) -> None:
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    async def _line(self) -> bytes:
        line = await self._stdout.readline()
        if not line:
            raise EOFError
        return line


def _environ(ca_file: Path | None) -> dict[str, str]:
    environ = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
    environ["YTDLP_NO_PLUGINS"] = "1"
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PROJECT), environ.get("PYTHONPATH")]))
    # the deno wheel puts its program beside the interpreter
    environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", os.defpath)])
    if ca_file:
        environ["SSL_CERT_FILE"] = str(ca_file)
    return environ
