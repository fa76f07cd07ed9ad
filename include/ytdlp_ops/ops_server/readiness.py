"""Whether the server can extract, and what makes it worse at it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from typing import Any

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import ExtractionRefused
from include.ytdlp_ops.ops_server.config_file import ConfigFile
from include.ytdlp_ops.ops_server.pool import ExtractionPool
from include.ytdlp_ops.ops_server.standing import Standing

OLDEST_DENO = [2, 3]
"""That yt-dlp takes."""
STALE_DAYS = 60
"""Sites change; a yt-dlp that is older fails at more of them every week."""


def readiness(pool: ExtractionPool, file: ConfigFile, standings: Iterable[Standing]) -> dict[str, Any]:
    """
    What ``GET /readyz`` answers.

    :raises ExtractionRefused: if no extraction process is ready.
    """
    if not pool.ready:
        message = f"none of {pool.size} extraction processes is ready; the server's log says why if it stays so"
        raise ExtractionRefused(Code.OPS_SERVER_UNAVAILABLE, message)
    return {
        "status": "ready",
        "yt_dlp_version": pool.loaded["yt_dlp_version"],
        "workers": pool.ready,
        "warnings": list(_warnings(pool, file, standings)),
    }


def _warnings(pool: ExtractionPool, file: ConfigFile, standings: Iterable[Standing]) -> Iterator[str]:
    if problem := _without_runtime(pool.loaded["deno"]):
        yield f"{problem}: YouTube will hold back formats; install deno"
    if pool.ready < pool.size:
        yield f"only {pool.ready} of {pool.size} extraction processes are ready"
    version = str(pool.loaded["yt_dlp_version"])
    days = age_in_days(version, datetime.now(UTC).date())
    if days is not None and days > STALE_DAYS:
        yield f"yt-dlp {version} is {days} days old; upgrade it"
    for plugin in pool.loaded["missing"]:
        yield f"plugin {plugin} could not be loaded; install it, or take it out of plugins"
    if file.problem:
        yield file.problem
    for standing in standings:
        if standing.state == "banned":
            yield f"{standing.subject.replace('/', ' ')} is set aside: {standing.reason}"


def _without_runtime(deno: str | None) -> str | None:
    if not deno:
        return "deno is not found, or does not run"
    old = [int(part) for part in deno.split(".")[:2]] < OLDEST_DENO
    return f"deno {deno} is too old for yt-dlp" if old else None


def age_in_days(version: str, today: date) -> int | None:
    """How old a yt-dlp is: its version is its date; None where it is not."""
    try:
        year, month, day = (int(part) for part in version.split(".")[:3])
        return (today - date(year, month, day)).days
    except ValueError:
        return None
