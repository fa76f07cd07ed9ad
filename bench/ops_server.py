"""The ops server: extractions beside yt-dlp's own command line, a pool with sick egresses, and memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.figures import Figure, gives
from include.ytdlp_ops.errors import OpsServerError
from include.ytdlp_ops.ops_server.client import OpsServerClient
from tests.offline_youtube.server import OfflineYouTube
from tests.ops_servers import OpsServer, start

CALLERS = 4
WORKERS = 2
EXTRACTIONS, COMMANDS = 200, 20
SICK_URLS = 200
MEMORY_EXTRACTIONS = 2000
ANY_NUMBER = {"hourly": None, "concurrency": CALLERS}


@gives("extractions_per_s", "extraction_over_cli_ratio")
def extractions() -> dict[str, Figure]:
    """One egress that is well, as many callers at once for the server as for the command line."""
    with _server("good") as (site, server):
        _extract(server, range(CALLERS))  # every process has been asked once
        rate, seconds = _rate(lambda number: _extract(server, [number]), EXTRACTIONS)
        cli_rate, cli_seconds = _rate(lambda number: _command(site, number), COMMANDS)
    against = (
        f"p50 {_ms(seconds, 50)} ms, p99 {_ms(seconds, 99)} ms; "
        f"yt-dlp -J {cli_rate:.2f}/s, p50 {_ms(cli_seconds, 50)} ms; {CALLERS} callers"
    )
    return {
        "extractions_per_s": Figure(value=rate, unit="/s", against=against),
        "extraction_over_cli_ratio": Figure(value=rate / cli_rate, unit="x", against=against),
    }


@gives("sick_pool_first_dispatch_share", "sick_egress_requests_max")
def sick_pool() -> dict[str, Figure]:
    """
    Of five egresses one never answers and one is bot-checked; each URL is asked for once.

    The requests of a sick one are the videos asked through it; each is a few HTTP requests. It is tried again
    after a minute, then two, so that a longer run has more of them.
    """
    sick = ("hang", "botip")
    limits = {"socket_timeout_seconds": 3, "attempt_seconds": 5}
    with _server(*sick, "good1", "good2", "good3", **limits) as (site, server):
        with ThreadPoolExecutor(CALLERS) as callers:
            came = list(callers.map(lambda number: _came(server, number), range(SICK_URLS)))
        with server.client() as client:
            asked = {one.name: sum(one.last_hour.values()) for one in client.egresses()}
        requests = sum(entry["egress"] == "botip" for entry in site.log)
    against = (
        f"{SICK_URLS} URLs; asked {', '.join(f'{name} {count}' for name, count in asked.items())}; "
        f"HTTP requests at the site through botip: {requests}"
    )
    worst = max(asked[name] for name in sick)
    return {
        "sick_pool_first_dispatch_share": Figure(value=sum(came) / len(came), unit="", against=against),
        "sick_egress_requests_max": Figure(value=worst, unit="", against=against),
    }


@gives("ops_server_rss_mb")
def memory() -> dict[str, Figure]:
    """Server and extraction processes together, after a long time of work."""
    with _server("good") as (_, server):
        _rate(lambda number: _extract(server, [number]), 100)
        before = _rss_mb(server)
        _rate(lambda number: _extract(server, [number]), MEMORY_EXTRACTIONS - 100)
        after = _rss_mb(server)
    against = (
        f"{MEMORY_EXTRACTIONS} extractions, {sum(before):.0f} MB after 100; server {after[0]:.0f}, "
        f"{WORKERS} processes {', '.join(f'{each:.0f}' for each in after[1:])}"
    )
    return {"ops_server_rss_mb": Figure(value=sum(after), unit="MB", against=against)}


@contextmanager
def _server(*egresses: str, **fields: Any) -> Iterator[tuple[OfflineYouTube, OpsServer]]:
    each = dict.fromkeys(egresses, ANY_NUMBER)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, OfflineYouTube(Path(folder, "site")) as site:
        server = start(site, Path(folder), egresses, workers=WORKERS, each=each, **fields)
        try:
            yield site, server
        finally:
            server.stop()


def _rate(work: Callable[[int], None], many: int) -> tuple[float, list[float]]:
    """Pieces of work a second, and the seconds that each took."""

    def timed(number: int) -> float:
        began = time.perf_counter()
        work(number)
        return time.perf_counter() - began

    started = time.perf_counter()
    with ThreadPoolExecutor(CALLERS) as callers:
        seconds = list(callers.map(timed, range(many)))
    return many / (time.perf_counter() - started), seconds


def _ms(seconds: list[float], percent: int) -> int:
    return round(statistics.quantiles(seconds, n=100)[percent - 1] * 1000)


def _extract(server: OpsServer, numbers: Sequence[int]) -> None:
    with server.client() as client:
        for number in numbers:
            _info(client, number)


def _info(client: OpsServerClient, number: int) -> None:
    client.info(f"ok-{number:08d}")


def _came(server: OpsServer, number: int) -> bool:
    with server.client() as client:
        try:
            _info(client, number)
        except OpsServerError:
            return False
    return True


def _command(site: OfflineYouTube, number: int) -> None:
    """``yt-dlp -J URL``, as a shell loop would."""
    command = [sys.executable, "-m", "yt_dlp", "--ignore-config", "--quiet", "--no-warnings", "-J"]
    command += ["--compat-options", "no-certifi", "--proxy", site.proxy("cli")]
    url = f"https://www.youtube.com/watch?v=ok-{number:08d}"
    env = os.environ | {"SSL_CERT_FILE": str(site.ca_file)}
    subprocess.run([*command, url], env=env, check=True, stdout=subprocess.DEVNULL)


def _rss_mb(server: OpsServer) -> list[float]:
    """Of the server, then of each of its processes."""
    found = []
    for pid in (server.process.pid, *server.workers()):
        status = Path(f"/proc/{pid}/status").read_text()
        found.append(int(status.split("VmRSS:")[1].split()[0]) / 1024)
    return found
