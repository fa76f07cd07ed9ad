"""Processes of the stack: none outlives it, however it ends, and one that dies is named."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from include.ytdlp_ops.local.folder import REPOSITORY
from include.ytdlp_ops.local.keeper import members
from include.ytdlp_ops.local.parts import HeldPort, PartDied, Parts, pipe

STARTS_ANOTHER = "sleep 600 & echo started; wait"
IGNORES_SIGTERM = "trap '' TERM; echo started; while :; do sleep 0.1; done"


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


def _start(parts: Parts, folder: Path, script: str, name: str = "part") -> int:
    """Start a shell as a part, and wait until it says something; its session."""
    said = folder / f"{name}.fifo"
    os.mkfifo(said)
    part = parts.start(
        name, ["sh", "-c", f"({script}) > {said}"], log=folder / f"{name}.log", env=dict(os.environ), cwd=folder
    )
    with said.open() as stream:
        stream.readline()
    return part.session


@pytest.mark.parametrize("script", [STARTS_ANOTHER, IGNORES_SIGTERM])
def test_what_a_part_started_ends_with_it(lock: int, tmp_path: Path, script: str) -> None:
    with Parts(lock, grace_seconds=0.2) as parts:
        session = _start(parts, tmp_path, script)
        assert members({session})

    assert not members({session})


def test_parts_end_in_reverse_order(lock: int, tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    with Parts(lock) as parts:
        for name in ("first", "second"):
            script = f"trap 'echo {name} >> {ended}; exit' TERM; echo started; while :; do sleep 0.02; done"
            _start(parts, tmp_path, script, name)

    assert list(dict.fromkeys(ended.read_text().split())) == ["second", "first"]


@pytest.mark.parametrize("script", [STARTS_ANOTHER, IGNORES_SIGTERM])
def test_no_process_outlives_a_killed_supervisor(tmp_path: Path, script: str) -> None:
    program = f"""
import os, sys, time
sys.path.insert(0, {str(REPOSITORY)!r})
from pathlib import Path
from include.ytdlp_ops.local.parts import Parts
folder = Path({str(tmp_path)!r})
parts = Parts(os.open(folder / "lock", os.O_RDWR | os.O_CREAT))
part = parts.start("part", ["sh", "-c", {script!r}], log=folder / "log", env=dict(os.environ), cwd=folder)
while "started" not in (folder / "log").read_text():
    time.sleep(0.01)
print(part.session, flush=True)
time.sleep(600)
"""
    supervisor = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert supervisor.stdout is not None
    session = int(supervisor.stdout.readline())
    assert members({session})

    supervisor.kill()
    supervisor.wait()
    supervisor.stdout.read()  # the keeper has the other end, and closes it when it is done
    supervisor.stdout.close()

    assert not members({session})


def test_a_part_that_died_is_named_with_its_log_and_the_last_lines_of_that(lock: int, tmp_path: Path) -> None:
    log = tmp_path / "crash.log"
    with Parts(lock) as parts:
        part = parts.start("valkey", ["sh", "-c", "seq 100; exit 3"], log=log, env=dict(os.environ), cwd=tmp_path)
        part.process.wait()

        with pytest.raises(PartDied) as died:
            parts.check()

    said = str(died.value).splitlines()
    assert said[0] == f"valkey ended with status 3; its log is {log}, which ends with"
    assert said[-1].strip() == "100"


def test_a_part_that_was_killed_says_by_which_signal(lock: int, tmp_path: Path) -> None:
    with Parts(lock) as parts:
        part = parts.start("site", ["cat"], log=tmp_path / "l", env={}, cwd=tmp_path, stdin=subprocess.PIPE)
        part.process.kill()
        part.process.wait()

        with pytest.raises(PartDied, match=r"^site was ended by SIGKILL; its log is "):
            parts.check()


def test_the_environment_of_a_part_is_only_what_it_was_given(lock: int, tmp_path: Path) -> None:
    with Parts(lock) as parts:
        part = parts.start(
            "cat",
            ["sh", "-c", "read line; env"],
            log=tmp_path / "log",
            env={"ONLY": "this"},
            cwd=tmp_path,
            stdin=subprocess.PIPE,
        )
        pipe(part.process).write(b"go\n")
        pipe(part.process).flush()
        part.process.wait()

    names = {line.split("=")[0] for line in (tmp_path / "log").read_text().splitlines()}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"} == {"ONLY"}


def test_a_held_port_is_given_to_nobody_but_can_be_listened_on() -> None:
    held = HeldPort()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        assert other.getsockname()[1] != held.number

    with socket.create_server(("127.0.0.1", held.number)) as server:
        socket.create_connection(("127.0.0.1", held.number)).close()
        connection, _ = server.accept()

    connection.close()
    held.close()
