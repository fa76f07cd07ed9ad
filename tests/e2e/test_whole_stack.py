"""
The whole stack as a user starts it, with the three samples; then what can happen to it.

One run on a fresh folder is looked at by many tests; a second one on the same folder is broken.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import av  # noqa: TID253 - a test's module, no DAG file imports it
import httpx  # noqa: TID253 - likewise
import pytest

from include.ytdlp_ops.local.folder import REPOSITORY
from tests.servers import Valkey

GOOD, PRIVATE, BOT = (
    f"https://www.youtube.com/watch?v={name}" for name in ("ok-00000001", "private-001", "bot-0000001")
)
USUAL_PORTS = (5432, 6379, 8080, 8793, 8794)
SECONDS = 90


class Started:
    """``python -m include.ytdlp_ops.local`` as a child, with its lines."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "include.ytdlp_ops.local", "--data-dir", str(folder), *arguments]
        self.process = subprocess.Popen(
            command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout is not None
        self._output = self.process.stdout
        self.said: list[str] = []

    def wait_for(self, words: str) -> None:
        """Read until a line with these words."""
        for line in self._output:
            self.said.append(line)
            if words in line:
                return
        pytest.fail(f"{words!r} was not said in\n{''.join(self.said)}")

    def end(self) -> int:
        """Read to the end, which comes when also the keeper has closed its side; the exit status."""
        self.said += self._output
        self._output.close()
        return self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()  # nothing, unless a test has failed
        self.process.wait()
        self._output.close()

    @property
    def text(self) -> str:
        """All that was said."""
        return "".join(self.said)


def processes_of(folder: Path) -> dict[int, str]:
    """The processes that have a file of the folder open, with their command lines: every part has its log."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if any(
                    str(target).startswith(f"{folder}/") for target in map(Path.readlink, (entry / "fd").iterdir())
                ):
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stack") / "local"


@pytest.fixture(scope="module")
def first(folder: Path) -> Started:
    """One run to its end, with the usual ports of all its servers taken."""
    with ExitStack() as taken:
        for port in USUAL_PORTS:
            with suppress(OSError):  # somebody has it: taken as well
                taken.enter_context(socket.create_server(("127.0.0.1", port)))
        with Started(folder, "--once", "--timeout", str(SECONDS)) as run:
            run.end()
    return run


@pytest.fixture(scope="module")
def report(first: Started) -> dict[str, Any]:
    path = first.folder / "last_run.json"
    assert path.exists(), first.text
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def _of(report: dict[str, Any], url: str) -> dict[str, Any]:
    return next(each for each in report["urls"] if each["id"] == url)


def test_it_ends_with_0_when_every_url_has_ended(first: Started) -> None:
    assert first.process.returncode == 0, first.text
    assert "all have ended" in first.text


def test_no_process_is_left_after_the_end(first: Started) -> None:
    assert processes_of(first.folder) == {}


def test_the_good_video_becomes_one_verified_file(report: dict[str, Any]) -> None:
    good = _of(report, GOOD)

    assert (good["outcome"], good["code"]) == ("result", None)
    (file,) = good["files"]
    content = Path(file["path"]).read_bytes()
    assert (len(content), hashlib.sha256(content).hexdigest()) == (file["bytes"], file["sha256"])
    assert file["codecs"] == ["h264", "aac"]
    assert file["duration"] == pytest.approx(4, abs=0.2)
    with av.open(file["path"]) as media:
        assert [stream.type for stream in media.streams] == ["video", "audio"]
        assert sum(1 for _ in media.decode()) > 400


def test_nothing_but_the_file_is_left(first: Started, report: dict[str, Any]) -> None:
    (file,) = _of(report, GOOD)["files"]

    assert [path for path in (first.folder / "output").rglob("*") if path.is_file()] == [Path(file["path"])]
    for folder in ("work", "staging", "infos"):
        left = [path for path in (first.folder / folder).rglob("*") if path.is_file()]
        assert [path for path in left if path.name != ".cleaned"] == [], folder


def test_the_private_video_is_skipped(report: dict[str, Any]) -> None:
    private = _of(report, PRIVATE)

    assert (private["outcome"], private["code"], private["files"]) == ("skipped", "private", [])


def test_the_bot_check_fails_and_will_be_tried_again(report: dict[str, Any]) -> None:
    bot = _of(report, BOT)

    assert (bot["outcome"], bot["code"], bot["retryable"]) == ("fail", "bot_check", True)
    assert bot["retry_at"]


def test_the_hashes_that_were_kept_agree_with_the_report(first: Started, report: dict[str, Any]) -> None:
    names = ("auth_result", "auth_skipped", "auth_fail", "auth_progress", "dl_progress", "dl_fail", "groups")
    with Valkey(first.folder / "redis") as server:
        client: Any = server.client(decode_responses=True)
        done = client.hkeys("queue2_dl_result")
        published = json.loads(client.hget("queue2_publish_result", GOOD))
        fields = {name: client.hkeys(f"queue2_{name}") for name in names}
        waiting = [client.llen(name) for name in ("queue2_auth_inbox", "queue_dl_format_tasks")]
        client.close()

    assert sorted(done) == ["youtube:ok-00000001:140", "youtube:ok-00000001:299"]
    assert [published["sha256"]] == [each["sha256"] for each in _of(report, GOOD)["files"]]
    assert fields == {
        "auth_result": [GOOD],
        "auth_skipped": [PRIVATE],
        "auth_fail": [BOT],
        "auth_progress": [],
        "dl_progress": [],
        "dl_fail": [],
        "groups": [],
    }
    assert waiting == [0, 0]


def test_no_log_holds_a_secret(first: Started) -> None:
    secrets = json.loads((first.folder / "secrets.json").read_text())
    told = {log: log.read_text(errors="replace") for log in (first.folder / "airflow").rglob("*.log")}
    told |= {log: log.read_text(errors="replace") for log in (first.folder / "logs").iterdir()}

    found = [(log, name) for log, text in told.items() for name, secret in secrets.items() if secret in text]

    assert len(told) > 8
    assert found == []


def test_the_time_to_the_first_file_was_measured(report: dict[str, Any]) -> None:
    assert 0 < report["seconds_to_ready"] < report["seconds_to_first_file"] <= report["seconds_in_all"]


@pytest.mark.slow
def test_a_second_run_goes_on_with_what_is_there_and_a_dead_part_ends_it(first: Started) -> None:
    with Started(first.folder, "--timeout", str(SECONDS)) as run:
        run.wait_for("Ctrl-C ends everything")
        again = _of(json.loads((first.folder / "last_run.json").read_text()), GOOD)
        anonymous, page, depths, events = _pages(run.text)
        (valkey,) = (pid for pid, command in processes_of(first.folder).items() if "valkey-server" in command)

        os.kill(valkey, signal.SIGKILL)

        assert run.end() == 1
    assert f"valkey was ended by SIGKILL; its log is {first.folder}/logs/valkey.log" in run.text
    assert (again["answer"], again["outcome"], len(again["files"])) == ("already_done", "result", 1)
    assert processes_of(first.folder) == {}
    assert anonymous.status_code == 401
    assert "<h1>Queues</h1>" in page.text
    counted = {entry["key"]: entry["depth"] for entry in depths.json()}
    (event,) = events.json()["asset_events"]
    assert (event["name"], event["extra"]["id"]) == ("ytdlp_videos", GOOD)
    assert (event["extra"]["sha256"], event["extra"]["video_codec"]) == (again["files"][0]["sha256"], "h264")
    assert (counted["queue2_auth_result"], counted["queue2_dl_result"], counted["video_queue_inbox"]) == (1, 2, 0)


def _pages(said: str) -> list[httpx.Response]:
    """The depths without a login; with one the page in Airflow's navigation, its depths, the videos' events."""
    found = re.search(r"Airflow: (http://\S+) \(user (\w+), password (\S+)\)", said)
    assert found is not None, said
    address, user, password = found.groups()
    with httpx.Client(base_url=address, timeout=30) as client:
        anonymous = client.get("/ytdlp-ops/depths")
        login = client.post("/auth/token", json={"username": user, "password": password})
        client.headers["Authorization"] = f"Bearer {login.json()['access_token']}"
        name = "ytdlp_videos"
        return [
            anonymous,
            client.get("/ytdlp-ops/"),
            client.get("/ytdlp-ops/depths"),
            client.get("/api/v2/assets/events", params={"name_pattern": name}),
        ]


@pytest.mark.slow
def test_a_second_stack_on_the_same_folder_is_refused_in_one_line(first: Started) -> None:
    with Started(first.folder) as run:
        run.wait_for("starting")

        with Started(first.folder, "--once") as another:
            another.end()

        assert (another.process.returncode, another.text.count("\n")) == (2, 1)
        assert f"another stack (process {run.process.pid}) runs on" in another.text


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)]
)
@pytest.mark.slow
def test_nothing_is_left_when_it_is_told_to_end_while_it_starts(
    first: Started, number: signal.Signals, status: int
) -> None:
    with Started(first.folder) as run:
        run.wait_for("starting")

        run.process.send_signal(number)

        assert run.end() == status, run.text
    assert "Traceback" not in run.text
    assert processes_of(first.folder) == {}
