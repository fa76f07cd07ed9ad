"""
The body of an extraction process: yt-dlp is loaded once, jobs come on stdin, replies go to stdout.

`pool` starts it as ``python -m`` and kills it at a deadline. It ends with the server, also with one that was
killed: stdin closes, and the thread that reads it ends the process group in the middle of whatever it does.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

import yt_dlp  # type: ignore[import-untyped]  # noqa: TID253 -- untyped; a process's own body, in no DAG file
import yt_dlp.extractor.youtube  # type: ignore[import-untyped]  # noqa: TID253 -- now, not in the first job
from yt_dlp.version import __version__ as yt_dlp_version  # type: ignore[import-untyped]  # noqa: TID253 -- as above

from include.ytdlp_ops.certificates import share_contexts
from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.diagnosis import diagnose
from include.ytdlp_ops.diagnosis.signals import WarningRecorder, read_signal, recording_youtube_ie
from include.ytdlp_ops.ops_server.expanding import expand, resumable_tab_ie
from include.ytdlp_ops.ops_server.guard import Guard
from include.ytdlp_ops.ops_server.jobs import Answer, Job, SiteRefused, answer_line, refusal_line
from include.ytdlp_ops.ops_server.quality import check, describe

STALE_COOKIES = "no longer valid"


class _YoutubeDL(yt_dlp.YoutubeDL):  # type: ignore[misc]  # untyped
    """Asks through `requests` only: what libcurl connects to, nobody could guard."""

    def build_request_director(self, handlers: Any, preferences: Any = None) -> Any:
        """See yt-dlp."""
        chosen = [handler for handler in handlers if handler.RH_KEY == "Requests"]
        return super().build_request_director(chosen, preferences)


def main() -> None:
    """Say hello with what was loaded, then work on jobs until the server ends."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not get between the replies
    jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
    threading.Thread(target=_read_jobs, args=(jobs,), daemon=True).start()
    guard = Guard()
    guard.install()
    share_contexts()
    hello = {"yt_dlp_version": yt_dlp_version, "deno": deno_version(), "missing": load_plugins(sys.argv[1:])}
    _send(replies, json.dumps(hello).encode() + b"\n")
    while True:
        job = jobs.get()
        try:
            answer = work_on(job, guard)
        except SiteRefused as refusal:
            _send(replies, refusal_line(refusal))
        else:
            _send(replies, answer_line(len(answer.body), stale_cookies=answer.stale_cookies) + answer.body)


def deno_version() -> str | None:
    """The version of the deno that yt-dlp would run; None where there is none that runs."""
    program = shutil.which("deno")
    if not program:
        return None
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=True)  # noqa: S603 -- nobody's input
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.match(r"deno (\d+(?:\.\d+)+)", said.stdout)
    return found[1] if found else None


def load_plugins(names: list[str]) -> list[str]:
    """Load these modules of ``yt_dlp_plugins.extractor``, and no others; those that could not be."""
    missing = []
    for name in names:
        try:
            importlib.import_module(f"yt_dlp_plugins.extractor.{name}")
        except ImportError as error:
            missing.append(f"{name} ({error})")
    return missing


def work_on(job: Job, guard: Guard) -> Answer:
    """
    Ask the site what a job wants to know.

    :raises SiteRefused: with the diagnosis, and without the proxy's credentials.
    """
    recorder, youtube, tab = WarningRecorder(), recording_youtube_ie(), resumable_tab_ie()
    try:
        with (
            guard.during(job.proxy, allow_private=job.allow_private, services=job.services),
            _YoutubeDL(_options(job, recorder)) as ydl,
        ):
            for extractor in (youtube, tab):
                if extractor.ie_key() in ydl._ies:  # add_info_extractor asks no allowlist
                    ydl.add_info_extractor(extractor)
            if not any(extractor.suitable(job.url) for extractor in ydl._ies.values()):
                allowed = ", ".join(job.extractors)
                message = f"{job.url}: no extractor that is allowed here takes it; extractors are {allowed}"
                raise SiteRefused(Code.BAD_URL, message)
            body = _page(ydl, job, tab) if job.page else _info(ydl, job, youtube, recorder)
        if len(body) > job.max_bytes:
            message = f"{job.url}: its answer has {len(body)} bytes, more than max_info_bytes ({job.max_bytes})"
            raise SiteRefused(Code.UNKNOWN, message)
    except Exception as error:  # noqa: BLE001 -- the diagnosis is there for every kind of failure
        refusal = _refused(error, job, youtube, recorder)
        if guard.refused:
            refusal = SiteRefused(Code.BAD_URL, f"{job.url}: {guard.refused}")
        refusal.egress, refusal.account = job.egress, job.account
        refusal.stale_cookies = _has_stale_cookies(recorder)
        raise refusal from None
    return Answer(body=body, stale_cookies=_has_stale_cookies(recorder))


def _info(ydl: Any, job: Job, youtube: Any, recorder: WarningRecorder) -> bytes:
    info = ydl.sanitize_info(ydl.extract_info(job.url, download=False), True)
    warnings = [without_secrets(warning, job) for warning in recorder.warnings]
    check(info, job, warnings, ydl)
    answer = {
        "info": info,
        "egress": job.egress,
        "account": job.account,
        "client": job.client
        or next((said.client for said in youtube.seen if said.status == "OK" and said.client), None),
        "proxy": job.proxy,
        "warnings": warnings,
        "yt_dlp_version": yt_dlp_version,
        **describe(info),
    }
    return json.dumps(answer).encode()


def _page(ydl: Any, job: Job, tab: Any) -> bytes:
    assert job.page
    answer = {**expand(ydl, job.page, tab), "egress": job.egress, "account": job.account}
    return json.dumps(answer).encode()


def _options(job: Job, recorder: WarningRecorder) -> dict[str, Any]:
    arguments = dict(job.extractor_args)
    if job.client:
        arguments["youtube"] = {**arguments.get("youtube", {}), "player_client": [job.client]}
    return {
        "quiet": True,
        "logger": recorder,
        "allowed_extractors": job.extractors,
        "extractor_args": arguments,
        "proxy": job.proxy or "",  # None would take one from the environment
        "cookiefile": job.cookies,
        "socket_timeout": job.socket_timeout,
        "cachedir": False,
        "noplaylist": not job.page,
        # a list is refused: don't read more of it than its first entry tells
        "extract_flat": "in_playlist",
        **({} if job.page else {"playlist_items": "1"}),
        # "/all": storyboards alone are refused by check, not by yt-dlp as a format that is missing
        "format": "bestvideo*+bestaudio/best/all",
        "compat_opts": {"no-certifi"} if os.environ.get("SSL_CERT_FILE") else set(),
    }


def _refused(error: Exception, job: Job, youtube: Any, recorder: WarningRecorder) -> SiteRefused:
    if isinstance(error, SiteRefused):
        return error
    met = read_signal(error, stage="auth", playability=youtube.seen, warnings=recorder.warnings)
    said = diagnose(met)
    refusal = SiteRefused(
        said.code, without_secrets(said.message, job), outcome=said.outcome, retry_after=said.retry_after
    )
    refusal.countries = said.countries
    return refusal


def _has_stale_cookies(recorder: WarningRecorder) -> bool:
    return any(STALE_COOKIES in warning for warning in recorder.warnings)


def without_secrets(text: str, job: Job) -> str:
    """The text without the proxy's user and password, in case that an error quotes its URL."""
    userinfo, at, _ = urlsplit(job.proxy or "").netloc.rpartition("@")
    if not at:
        return text
    return text.replace(f"{userinfo}@", "***@").replace(f"{unquote(userinfo)}@", "***@")


def _read_jobs(jobs: queue.SimpleQueue[Job]) -> None:
    with os.fdopen(0, "rb", closefd=False) as lines:
        for line in lines:
            jobs.put(Job.from_line(line))
    os.killpg(os.getpgrp(), signal.SIGKILL)  # with a deno that it may have started


def _send(replies: BinaryIO, data: bytes) -> None:
    replies.write(data)
    replies.flush()


if __name__ == "__main__":
    main()
