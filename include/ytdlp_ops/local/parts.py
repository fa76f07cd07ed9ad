"""The processes that the stack consists of: start, look, end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from include.ytdlp_ops.errors import YtdlpOpsError
from include.ytdlp_ops.local import keeper, launch

LAST_LINES = 12


class PartDied(YtdlpOpsError):
    """A part of the stack ended by itself; the message names it, its log and the last lines of that."""

    def __init__(self, name: str, log: Path, how: str) -> None:
        last = "\n".join(f"    {line}" for line in last_lines(log))
        super().__init__(f"{name} {how}; its log is {log}" + (f", which ends with\n{last}" if last else ""))
        self.name = name


class Part:
    """
    One process with a session of its own, that ends with the supervisor.

    :param name: for people.
    :param log: takes its output; begins anew with each start.
    :param process: the running process; its pid is its session's id.
    :param stop_signal: what ends it in good order.
    """

    def __init__(
        self, name: str, log: Path, process: subprocess.Popen[bytes], stop_signal: signal.Signals
    ) -> None:
        self.name = name
        self.log = log
        self.process = process
        self.stop_signal = stop_signal

    @property
    def session(self) -> int:
        """The id of the session that it and all that it starts live in."""
        return self.process.pid

    def check(self) -> None:
        """
        Nothing, as long as it runs.

        :raises PartDied: if it has ended.
        """
        if (status := self.process.poll()) is not None:
            raise PartDied(self.name, self.log, ended_how(status))


class Parts:
    """
    All parts, with the keeper that ends them should this process be killed.

    :param lock: a descriptor that the keeper holds, too, until the last part has ended.
    :param grace_seconds: how long a part may take for its end.
    """

    def __init__(self, lock: int, *, grace_seconds: float = keeper.GRACE_SECONDS) -> None:
        self._parts: list[Part] = []
        self._grace_seconds = grace_seconds
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__],
            stdin=subprocess.PIPE,
            pass_fds=[lock],
            start_new_session=True,
        )

    def start(
        self,
        name: str,
        command: Sequence[str | PathLike[str]],
        *,
        log: Path,
        env: Mapping[str, str],
        cwd: Path,
        stop_signal: signal.Signals = signal.SIGTERM,
        as_nobody: bool = False,
        stdin: int = subprocess.DEVNULL,
    ) -> Part:
        """Start one more part, after those that it needs: they end in reverse order."""
        prefix = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), str(int(stop_signal))]
        prefix += ["--as-nobody"] if as_nobody else []
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*prefix, *(os.fspath(argument) for argument in command)],
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
            )
        part = Part(name, log, process, stop_signal)
        self._parts.append(part)
        pipe(self._keeper).write(f"{part.session}\n".encode())
        pipe(self._keeper).flush()
        return part

    def check(self) -> None:
        """
        Nothing, as long as all run.

        :raises PartDied: if one has ended.
        """
        for part in self._parts:
            part.check()

    @property
    def sessions(self) -> dict[str, int]:
        """The session id of each part by its name."""
        return {part.name: part.session for part in self._parts}

    def end(self, part: Part) -> None:
        """End one part and all that it started."""
        keeper.end_sessions({part.session}, part.stop_signal, self._grace_seconds)
        part.process.wait()
        if part.process.stdin:
            part.process.stdin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for part in reversed(self._parts):
            self.end(part)
        pipe(self._keeper).close()
        self._keeper.wait()


def pipe(process: subprocess.Popen[bytes]) -> IO[bytes]:
    """The pipe to a process that was started with one."""
    if process.stdin is None:
        raise ValueError(f"process {process.pid} was started without a pipe")
    return process.stdin


def ended_how(status: int) -> str:
    """A wait status in words."""
    return f"ended with status {status}" if status >= 0 else f"was ended by {signal.Signals(-status).name}"


def last_lines(log: Path) -> list[str]:
    """The last lines of a log; none if there is none."""
    try:
        return log.read_text(errors="replace").rstrip().splitlines()[-LAST_LINES:]
    except OSError:
        return []


class HeldPort:
    """
    A free loopback port, held until closed, on which another process may listen meanwhile.

    Two sockets with SO_REUSEADDR may be bound to one port as long as at most one listens; the kernel gives a bound
    port to nobody who asks for a free one.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]

    def close(self) -> None:
        """Give it back."""
        self._socket.close()
