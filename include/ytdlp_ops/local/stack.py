"""The whole system on one machine: servers, ops server and Airflow, started together and ended together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from include.ytdlp_ops.local import servers
from include.ytdlp_ops.local.airflow_client import AirflowClient
from include.ytdlp_ops.local.environment import (
    ADMIN,
    airflow_environment,
    base_environment,
    settings_environment,
)
from include.ytdlp_ops.local.folder import REPOSITORY, Folder, write_private
from include.ytdlp_ops.local.parts import HeldPort, Part, PartDied, Parts, ended_how, pipe
from include.ytdlp_ops.queues.connecting import RedisAddress

SAMPLE_EGRESSES = [f"egress{number}" for number in range(1, 13)]
"""Enough that the sample behind a bot check, which is refused through each, leaves some for the others."""


class Stack:
    """
    The stack, for as long as the `with` lasts.

    :param data_dir: what outlives it; a second stack on the same folder is refused.
    :param sample: play the sample site on loopback, with egresses of its own; else the internet, directly.
    :param say: told, in a few words, what is being done.

    `env` is what Airflow's processes find in their environment; `site` what the sample site said once ready.
    """

    def __init__(
        self, data_dir: Path, *, sample: bool = True, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self.folder = Folder(data_dir.absolute())
        self.sample = sample
        self.site: dict[str, Any] = {}
        self.env: dict[str, str] = {}
        self._say = say
        self._exits = ExitStack()

    # -- start and end -------------------------------------------------------------------------------------
    def __enter__(self) -> Self:
        self.started_at = time.time()
        try:
            self._start()
        except BaseException:
            self._exits.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def _start(self) -> None:
        folder = self.folder
        lock = folder.lock()
        self._exits.callback(os.close, lock)
        folder.prepare()
        self.secrets = folder.secrets()
        write_private(folder.passwords, {ADMIN: self.secrets.admin_password})
        self._take_ports()
        self._say("starting Valkey, PostgreSQL, Airflow, the ops server" + (", the sample site" * self.sample))
        self._postgres = servers.PostgresFiles(folder)
        self._exits.callback(self._postgres.remove_socket)
        self.env = base_environment() | airflow_environment(
            folder,
            self.secrets,
            postgres_socket=self._postgres.socket,
            api_port=self._ports["api"].number,
            redis_port=self._ports["redis"].number,
            ops_port=self._ports["ops"].number,
        )
        self.parts = self._exits.enter_context(Parts(lock))
        self._start_servers()

    def _take_ports(self) -> None:
        self._ports = {name: HeldPort() for name in ("redis", "ops", "api")}
        for port in self._ports.values():
            self._exits.callback(port.close)

    def _start_servers(self) -> None:
        parts, folder, postgres = self.parts, self.folder, self._postgres
        servers.start_valkey(parts, folder, self.secrets, self._ports["redis"].number, base_environment())
        if self.sample:
            servers.start_site(parts, folder, base_environment())
        migrate = postgres.migrated_for() != version("apache-airflow-core")
        airflow = self._start_airflow(migrate)
        postgres.make(base_environment())
        postgres.start(parts, base_environment())
        servers.wait_until(parts, "PostgreSQL", postgres.answers)
        if migrate:
            postgres.make_database()
        if self.sample:
            servers.wait_until(parts, "the sample site", self._site_is_ready)
        settings = settings_environment(folder, ca_file=self.ca_file)
        self.env |= settings
        self._start_ops_server(settings)
        try:
            pipe(airflow.process).write(json.dumps(settings).encode() + b"\n")
            pipe(airflow.process).flush()
        except BrokenPipeError:  # it could not even be imported
            airflow.process.wait()
            self.check()

    def _start_airflow(self, migrate: bool) -> Part:
        command = [sys.executable, "-m", "include.ytdlp_ops.local.airflow_parts"]
        command += [str(self.folder.logs), str(self._ended_file)] + ["--migrate"] * migrate
        part = self.parts.start(
            "airflow",
            command,
            log=self.folder.log("airflow"),
            env=self.env,
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
        )
        self._exits.callback(self.parts.end, part)  # before the servers that it works with
        return part

    def _start_ops_server(self, settings: dict[str, str]) -> None:
        egresses: list[dict[str, str | None]] = [{"name": "direct", "proxy": None}]
        if self.sample:
            egresses = [{"name": name, "proxy": self.proxy(name)} for name in SAMPLE_EGRESSES]
        servers.start_ops_server(
            self.parts,
            self.folder,
            token=self.secrets.ops_server_token,
            port=self._ports["ops"].number,
            egresses=egresses,
            env=base_environment() | settings,
        )

    # -- where things are ----------------------------------------------------------------------------------
    @property
    def airflow_url(self) -> str:
        """Airflow's UI."""
        return f"http://127.0.0.1:{self._ports['api'].number}"

    @property
    def redis_address(self) -> RedisAddress:
        """The queue's Redis, for `connecting.connect`."""
        return RedisAddress(
            host="127.0.0.1", port=self._ports["redis"].number, password=self.secrets.redis_password
        )

    @property
    def redis_url(self) -> str:
        """The queue's Redis, password included."""
        return f"redis://:{self.secrets.redis_password}@127.0.0.1:{self._ports['redis'].number}/0"

    @property
    def login(self) -> tuple[str, str]:
        """User and password of the UI."""
        return ADMIN, self.secrets.admin_password

    @property
    def ca_file(self) -> Path | None:
        """The sample site's certificates beside the usual ones."""
        return Path(self.site["bundle_file"]) if self.site else None

    def proxy(self, egress: str) -> str:
        """The sample site's proxy URL of an egress."""
        return f"http://{egress}:x@127.0.0.1:{self.site['port']}"

    # -- looking -------------------------------------------------------------------------------------------
    def check(self) -> None:
        """
        Nothing, as long as every part runs.

        :raises PartDied: names the part, its log and the last lines of that.
        """
        try:
            self.parts.check()
        except PartDied as error:
            if error.name != "airflow" or not self._ended_file.exists():
                raise
            ended = json.loads(self._ended_file.read_text())
            name = str(ended["name"])
            raise PartDied(name, self.folder.log(name), ended_how(ended["status"])) from None

    def wait_ready(self, seconds: float = 300.0) -> list[str]:
        """
        Wait until the UI answers, all of Airflow beats and every DAG file has been read.

        :returns: the files in ``dags/`` that can't be imported, with the reason.
        :raises PartDied: if a part ends meanwhile.
        :raises NotReady: when the time is over.
        """
        with AirflowClient(self.airflow_url, *self.login) as client:
            servers.wait_until(self, "the ops server", self._ops_server_is_ready, seconds)
            pause = {"pause_seconds": 0.25}  # each question costs the server some 20 ms of the CPU it starts with
            servers.wait_until(self, "Airflow", lambda: client.is_healthy(since=self.started_at), seconds, **pause)
            self._postgres.set_migrated_for(version("apache-airflow-core"))
            files = {path.stem for path in (REPOSITORY / "dags").glob("*.py")}
            servers.wait_until(self, "the DAGs", lambda: client.has_read(files), seconds, **pause)
            return client.import_errors()

    @property
    def _ended_file(self) -> Path:
        return self.folder.run / "airflow-ended.json"

    def _ops_server_is_ready(self) -> bool:
        return servers.read_ready_file(self.folder, "ops-server") is not None

    def _site_is_ready(self) -> bool:
        self.site = servers.read_ready_file(self.folder, "site") or {}
        return bool(self.site)
