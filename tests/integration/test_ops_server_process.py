"""The ops server's processes: deadlines, deaths, and how it starts and ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx  # noqa: TID253 -- a test's module, no DAG file imports it
import pytest

from include.ytdlp_ops.codes import Code, Outcome
from tests.offline_youtube.server import OfflineYouTube
from tests.ops_servers import (
    COMMAND,
    GOOD,
    ROOT,
    TOKEN,
    OpsServer,
    all_gone,
    open_sockets,
    problem,
    refusal,
    start,
    wait_for,
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfflineYouTube]:
    with OfflineYouTube(tmp_path_factory.getbasetemp() / "offline-youtube") as site:
        yield site


@pytest.fixture
def fresh(site: OfflineYouTube, tmp_path: Path) -> Iterator[Any]:
    """Starts servers that a test may break."""
    with ExitStack() as stack:

        def begin(*egresses: str, **fields: Any) -> OpsServer:
            server = start(site, tmp_path, egresses, **fields)
            stack.callback(server.stop)
            return server

        yield begin


# -- the deadline ----------------------------------------------------------------------------------------------


def test_a_hung_extraction_ends_at_the_deadline_and_its_process_is_killed(fresh: Any) -> None:
    server = fresh("hang", "good", deadline_seconds=1.5, socket_timeout_seconds=30)
    before = server.workers()
    started = time.monotonic()

    met = refusal(server, GOOD, egress="hang")

    assert time.monotonic() - started < 5
    assert (met.code, met.outcome, met.egress) == (Code.NETWORK, Outcome.RETRY, "hang")
    wait_for(lambda: len(server.workers()) == 2 and server.workers() != before, "another process")
    wait_for(lambda: httpx.get(f"{server.url}/readyz").json()["workers"] == 2, "two processes at work")
    with server.client() as client:
        assert client.info(GOOD, egress="good").info["id"] == "ok-00000001"


@pytest.mark.slow
def test_an_egress_that_never_answers_costs_time_and_no_video(fresh: Any) -> None:
    server = fresh("hang", "good", attempt_seconds=3, socket_timeout_seconds=30)

    with server.client() as client:
        used = [client.info(GOOD).egress for _ in range(4)]
        hanging, _ = client.egresses()

    assert used == ["good"] * 4
    assert (hanging.state, hanging.last_hour) == ("cooling", {"network": 2})


@pytest.mark.slow
def test_requests_beyond_the_limit_are_told_to_come_again(fresh: Any) -> None:
    server = fresh("hang", workers=1, max_waiting=1, deadline_seconds=60, socket_timeout_seconds=60)
    (worker,) = server.workers()
    sockets = open_sockets(worker)
    with ThreadPoolExecutor(1) as callers:
        asked = callers.submit(server.post, {"url": GOOD})
        wait_for(lambda: open_sockets(worker) > sockets, "the extraction's connection")

        response = server.post({"url": GOOD})

        server.process.terminate()
        asked.result()
    said = problem(response)
    assert (response.status_code, said["code"], said["outcome"]) == (503, "ops_server_unavailable", "retry")
    assert response.headers["retry-after"] == "5"
    assert "max_waiting (1) requests wait already; ask again, or raise it" in said["detail"]


@pytest.mark.slow
def test_waiting_for_a_free_process_ends_at_the_deadline_too(fresh: Any) -> None:
    server = fresh("hang", workers=1, deadline_seconds=1.5, socket_timeout_seconds=30)

    with ThreadPoolExecutor(6) as callers:
        met = list(callers.map(lambda _: refusal(server, GOOD), range(6)))

    assert {(found.code, found.outcome) for found in met} == {
        (Code.NETWORK, Outcome.RETRY),
        (Code.OPS_SERVER_UNAVAILABLE, Outcome.RETRY),
    }


def test_a_process_that_dies_in_the_middle_is_replaced(fresh: Any) -> None:
    server = fresh("hang", "good", workers=1, deadline_seconds=20)
    (worker,) = server.workers()
    sockets = open_sockets(worker)
    with ThreadPoolExecutor(1) as callers, all_gone([worker]):
        asked = callers.submit(refusal, server, GOOD, egress="hang")
        wait_for(lambda: open_sockets(worker) > sockets, "the extraction's connection")

        os.kill(worker, signal.SIGKILL)

        assert (asked.result().code, asked.result().outcome) == (Code.UNKNOWN, Outcome.RETRY)
    with server.client() as client:
        assert client.info(GOOD, egress="good").info["id"] == "ok-00000001"


# -- plugins ---------------------------------------------------------------------------------------------------


def test_only_plugins_that_are_listed_are_loaded_and_one_that_is_not_there_is_warned_of(
    fresh: Any, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path_factory.mktemp("installed")
    folder = installed / "yt_dlp_plugins" / "extractor"
    folder.mkdir(parents=True)
    for name in ("listed", "unlisted"):
        (folder / f"{name}.py").write_text(f"open({str(installed / f'{name}-ran')!r}, 'w').close()\n")
    monkeypatch.setenv("PYTHONPATH", str(installed))

    server = fresh("good", workers=1, plugins=["listed", "absent"])

    with server.client() as client:
        client.info(GOOD)
    assert (installed / "listed-ran").exists()
    assert not (installed / "unlisted-ran").exists()
    (warned,) = server.warnings()
    assert warned.startswith("plugin absent (No module named")


# -- the process -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_told_to_end_takes_its_processes_along(fresh: Any, number: signal.Signals) -> None:
    server = fresh("good")

    with all_gone(server.workers()):
        server.process.send_signal(number)

    assert server.process.wait(10) == 0
    assert "Traceback" not in server.log


@pytest.mark.slow
def test_a_request_that_outlasts_the_grace_hears_that_the_server_ends(fresh: Any) -> None:
    server = fresh("hang", workers=1, deadline_seconds=60, socket_timeout_seconds=60)
    (worker,) = server.workers()
    sockets = open_sockets(worker)
    with ThreadPoolExecutor(1) as callers, all_gone([worker]):
        asked = callers.submit(server.post, {"url": GOOD})
        wait_for(lambda: open_sockets(worker) > sockets, "the extraction's connection")

        server.process.terminate()

        said = problem(asked.result())
    assert (said["code"], said["outcome"]) == ("ops_server_unavailable", "retry")
    assert server.process.wait(10) == 0


def test_a_killed_server_takes_its_processes_along_in_the_middle_of_a_job(fresh: Any) -> None:
    server = fresh("hang", workers=1, deadline_seconds=60, socket_timeout_seconds=60)
    (worker,) = server.workers()
    sockets = open_sockets(worker)
    with ThreadPoolExecutor(1) as callers, all_gone([worker]):
        asked = callers.submit(server.post, {"url": GOOD})
        wait_for(lambda: open_sockets(worker) > sockets, "the extraction's connection")

        server.process.kill()

        with pytest.raises(httpx.TransportError):
            asked.result()


def run_to_the_end(config: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "--config", str(config), *arguments]
    outer = {name: value for name, value in os.environ.items() if name != "YTDLP_OPS_SERVER_TOKEN"}
    return subprocess.run(
        command, cwd=ROOT, env={**outer, **environ}, capture_output=True, text=True, timeout=30, check=False
    )


@pytest.mark.parametrize(
    ("text", "environ", "said"),
    [
        ("egresses: []", {"YTDLP_OPS_SERVER_TOKEN": TOKEN}, "ops_server.yaml:1: egresses: List should have"),
        ("egresses: [{name: a}]", {}, "YTDLP_OPS_SERVER_TOKEN holds no bearer token"),
        (
            "egresses: [{name: a}]",
            {"YTDLP_OPS_SERVER_TOKEN": TOKEN, "YTDLP_OPS_CA_FILE": "/no/file"},
            "no such file",
        ),
    ],
)
def test_a_server_that_can_not_start_says_why_in_one_line(
    tmp_path: Path, text: str, environ: dict[str, str], said: str
) -> None:
    config = tmp_path / "ops_server.yaml"
    config.write_text(text)

    ended = run_to_the_end(config, **environ)

    assert ended.returncode == 2
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    config = tmp_path / "ops_server.yaml"
    config.write_text("egresses: [{name: a}]")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

        ended = run_to_the_end(config, "--port", port, YTDLP_OPS_SERVER_TOKEN=TOKEN)

    assert ended.returncode == 2
    assert f"can't listen on 127.0.0.1 port {port}: Address already in use; choose another --port" in ended.stderr
    assert ended.stderr.count("\n") == 1
