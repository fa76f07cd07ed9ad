"""One format from its info to a verified file in staging: shared by dl and v01."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from include.ytdlp_ops.downloading.directories import check_space, directory_for, discard, distrust, take_over
from include.ytdlp_ops.downloading.infos import cut_to_format
from include.ytdlp_ops.downloading.profiles import Profile
from include.ytdlp_ops.downloading.runner import Downloaded, Progress, download_format
from include.ytdlp_ops.downloading.verifying import MediaFacts, sha256, verify
from include.ytdlp_ops.errors import DownloadFailed
from include.ytdlp_ops.settings import Settings
from include.ytdlp_ops.stages.bandwidth import paces_for
from include.ytdlp_ops.stages.running import RunningItem
from include.ytdlp_ops.storage.placing import place, safe_name
from include.ytdlp_ops.urls import refuse_private_target


def fetch(
    running: RunningItem,
    info: dict[str, Any],
    format_id: str,
    *,
    proxy: str | None,
    egress: str | None,
    expected_bytes: int | None,
    settings: Settings,
    profile: Profile,
) -> dict[str, Any]:
    """
    Download, verify and place one format; record it, where it is live.

    :param info: a loaded info that holds the format.
    :param proxy: the egress that extracted.
    :param egress: its name.
    :param expected_bytes: exact size, if one was promised.
    :param profile: how to download.
    :returns: what the record says of the file: path, bytes, sha256, codecs, duration; of a live, what isn't there.
    :raises DownloadFailed: with the reason.
    :raises LeaseLost: if another worker has the item now; no file was moved then.
    """
    cut = cut_to_format(info, format_id)
    wanted = cut["formats"][0]
    if not settings.allow_private_targets:
        refuse_private_target(wanted["url"])
    job_id = f"{running.record['id']} {format_id}"
    directory = directory_for(settings.work_dir, job_id, running.token)
    check_space(directory, expected_bytes or 0, settings.reserve_bytes)
    take_over(settings.work_dir, job_id, running.token, wanted)
    downloaded = download_format(
        cut,
        format_id,
        directory=directory,
        proxy=proxy,
        ca_file=settings.ca_file,
        transfer=profile.transfer,
        paces=paces_for(running, settings, egress),
        reserve_bytes=settings.reserve_bytes,
        allow_private_targets=settings.allow_private_targets,
        on_progress=partial(_report, running, format_id),
        should_stop=running.lost,
    )
    facts = _verified(downloaded, cut, expected_bytes)
    digest = sha256(downloaded.path)
    ending = downloaded.path.suffix.lstrip(".")
    name = safe_name(str(cut.get("title") or cut["id"]), str(cut["id"]), format_id, ending)
    running.confirm()
    placed = place(downloaded.path, settings.staging_dir, name)
    discard(directory)
    made = {"format_id": format_id, "path": str(placed), "sha256": digest, "language": wanted.get("language")}
    return {**made, **_facts(facts), **({"partial": downloaded.partial} if downloaded.partial else {})}


def _report(running: RunningItem, format_id: str, progress: Progress) -> None:
    running.report(format_id=format_id, **asdict(progress))


def _verified(downloaded: Downloaded, cut: dict[str, Any], expected_bytes: int | None) -> MediaFacts:
    wanted = cut["formats"][0]
    try:
        return verify(
            downloaded.path,
            expected_bytes=expected_bytes,
            expected_duration=None if downloaded.live else cut.get("duration"),
            expect_video=wanted.get("vcodec") not in (None, "none"),
            expect_audio=wanted.get("acodec") not in (None, "none"),
        )
    except DownloadFailed:
        distrust(downloaded.path.parent)  # or the next attempt would take the bad bytes over
        raise


def _facts(facts: MediaFacts) -> dict[str, Any]:
    video = next((stream for stream in facts.streams if stream.kind == "video"), None)
    return {
        "bytes": facts.bytes,
        "container": facts.container,
        "duration": facts.duration,
        "video_codec": facts.video_codec,
        "audio_codec": facts.audio_codec,
        "width": video.width if video else None,
        "height": video.height if video else None,
        "fps": video.fps if video else None,
    }
