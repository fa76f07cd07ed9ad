"""
The body of an extraction process: yt-dlp is loaded once, jobs come on stdin, replies go to stdout.

`pool` starts it as ``python -m`` and kills it at a deadline. It ends with the server, also with one that was
killed: stdin closes, and the thread that reads it ends the process group in the middle of whatever it does.
"""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import signal
import threading
from collections.abc import Iterable
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

import yt_dlp  # type: ignore[import-untyped]  # noqa: TID253 -- untyped; a process's own body, in no DAG file
import yt_dlp.extractor.youtube  # type: ignore[import-untyped]  # noqa: TID253 -- now, not in the first job
from yt_dlp.version import __version__ as yt_dlp_version  # type: ignore[import-untyped]  # noqa: TID253 -- as above

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.diagnosis import Diagnosis, Playability, diagnose
from include.ytdlp_ops.diagnosis.signals import WarningRecorder, read_signal, recording_youtube_ie
from include.ytdlp_ops.errors import ExtractionRefused
from include.ytdlp_ops.ops_server.jobs import Job, answer_line, refusal_line

_EXPIRE = re.compile(r"[?&/]expire[=/](\d{9,11})(?!\d)")


def main() -> None:
    """Say hello with what was loaded, then work on jobs until the server ends."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not get between the replies
    jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
    threading.Thread(target=_read_jobs, args=(jobs,), daemon=True).start()
    hello = {"yt_dlp_version": yt_dlp_version, "deno": shutil.which("deno")}
    _send(replies, json.dumps(hello).encode() + b"\n")
    while True:
        job = jobs.get()
        try:
            answer = extract(job)
        except ExtractionRefused as refusal:
            _send(replies, refusal_line(refusal))
        else:
            _send(replies, answer_line(len(answer)) + answer)


def extract(job: Job) -> bytes:
    """
    Ask the site for one video.

    :return: the JSON body of the answer to the server's caller.
    :raises ExtractionRefused: with the diagnosis, and without the proxy's credentials.
    """
    recorder, youtube = WarningRecorder(), recording_youtube_ie()
    try:
        with yt_dlp.YoutubeDL(_options(job, recorder)) as ydl:
            if "Youtube" in ydl._ies:  # add_info_extractor asks no allowlist
                ydl.add_info_extractor(youtube)
            if not any(extractor.suitable(job.url) for extractor in ydl._ies.values()):
                raise _not_allowed(job)
            info = ydl.sanitize_info(ydl.extract_info(job.url, download=False), True)
    except ExtractionRefused:
        raise
    except Exception as error:  # noqa: BLE001 -- the diagnosis is there for every kind of failure
        met = read_signal(error, stage="auth", playability=youtube.seen, warnings=recorder.warnings)
        raise _diagnosed(diagnose(met), job) from None
    warnings = [_without_secrets(warning, job) for warning in recorder.warnings]
    _check(info, job, warnings)
    return _answer(info, job, youtube.seen, warnings)


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
        "socket_timeout": job.socket_timeout,
        "cachedir": False,
        "noplaylist": True,
        # a list is refused: don't read more of it than its first entry tells
        "extract_flat": "in_playlist",
        "playlist_items": "1",
        # "/all": storyboards alone are refused by _check, not by yt-dlp as a format that is missing
        "format": "bestvideo*+bestaudio/best/all",
        "compat_opts": {"no-certifi"} if os.environ.get("SSL_CERT_FILE") else set(),
    }


def _not_allowed(job: Job) -> ExtractionRefused:
    message = f"{job.url}: no extractor that is allowed here takes it; extractors are {', '.join(job.extractors)}"
    return ExtractionRefused(Code.BAD_URL, message, egress=job.egress)


def _diagnosed(said: Diagnosis, job: Job) -> ExtractionRefused:
    message = _without_secrets(said.message, job)
    return ExtractionRefused(
        said.code, message, outcome=said.outcome, retry_after=said.retry_after, egress=job.egress
    )


def _check(info: dict[str, Any] | None, job: Job, warnings: list[str]) -> None:
    """
    Refuse what is no video that could be downloaded.

    :raises ExtractionRefused: for a list, and for storyboards alone.
    """
    if not info or info.get("_type", "video") != "video":
        message = f"{job.url} is a list, not one video; lists are expanded elsewhere, submit its videos"
        raise ExtractionRefused(Code.BAD_URL, message, egress=job.egress)
    formats = info.get("formats") or [info]
    if all(found.get("vcodec") == "none" and found.get("acodec") == "none" for found in formats):
        message = f"{job.url}: only images are to be had here. yt-dlp warned: {'; '.join(warnings) or 'nothing'}"
        raise ExtractionRefused(Code.NO_USABLE_FORMATS, message, egress=job.egress)


def _answer(info: dict[str, Any], job: Job, seen: Iterable[Playability], warnings: list[str]) -> bytes:
    urls = [found.get("url") or "" for found in info.get("formats") or [info]]
    ends = [float(match[1]) for url in urls if (match := _EXPIRE.search(url))]
    answer = {
        "info": info,
        "egress": job.egress,
        "account": None,
        "client": job.client or next((said.client for said in seen if said.status == "OK" and said.client), None),
        "proxy": job.proxy,
        "expires_at": min(ends, default=None),
        "warnings": warnings,
        "yt_dlp_version": yt_dlp_version,
    }
    return json.dumps(answer).encode()


def _without_secrets(text: str, job: Job) -> str:
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
