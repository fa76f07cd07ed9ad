"""The stage publish: formats become one file, with its sidecars, at the destination."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.directories import component, directory_for, discard
from include.ytdlp_ops.downloading.extras import Extras, ExtrasWanted, fetch_extras
from include.ytdlp_ops.downloading.options import ffmpeg_path
from include.ytdlp_ops.downloading.profiles import DEFAULT_DESTINATION, Destination, Group, Profile, Profiles
from include.ytdlp_ops.downloading.watching import Watch
from include.ytdlp_ops.errors import BadInput, DownloadFailed, Refusal
from include.ytdlp_ops.local_io import local_failure
from include.ytdlp_ops.models import PublishItem, UrlItem
from include.ytdlp_ops.queues import keys
from include.ytdlp_ops.queues.keys import Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.settings import Settings
from include.ytdlp_ops.stages.bandwidth import paces_for
from include.ytdlp_ops.stages.running import Ended, RunningItem
from include.ytdlp_ops.storage.info_store import InfoStore, StoredInfo
from include.ytdlp_ops.storage.publishing.destinations import Files, Place, open_destination, publish
from include.ytdlp_ops.storage.publishing.merging import Merged, merge
from include.ytdlp_ops.storage.publishing.muxing import Embedding, Track
from include.ytdlp_ops.storage.publishing.naming import stem_for
from include.ytdlp_ops.storage.publishing.public_infos import tags_of
from include.ytdlp_ops.storage.publishing.sidecars import write_description, write_info_json

Opener = Callable[[Destination], Place]
Made = dict[str, Any]


def open_without_connection(destination: Destination) -> Place:
    """A destination that needs no credentials of Airflow's."""
    return open_destination(destination.path, destination.options, mounted=destination.mount)


def run_publish(
    running: RunningItem, *, store: InfoStore, settings: Settings, profiles: Profiles, opener: Opener
) -> Ended:
    """
    Merge, write the sidecars, move to the destination, verify there; only then delete staging and the info.

    Formats whose files are gone from staging are asked for again, by way of auth.

    :param opener: makes the path that a destination names.
    :raises Refusal: with the reason.
    """
    item = running.item
    assert isinstance(item, PublishItem)
    profile = profiles.get(item.profile)
    formats, without = _formats(
        item, Queue(running.queue.client, Stage.DL, queue_base=running.queue.keys.queue_base)
    )
    if without and (profile.group is Group.ALL or not formats):
        return running.refused(_incomplete(without), more={"missing": without})
    if lost := [made for made in formats if not Path(made["path"]).is_file()]:
        return _fetched_again(running, item, lost)
    published = publish_files(
        running, formats, stored=_stored(running, item, store), settings=settings, profiles=profiles, opener=opener
    )
    ended = running.done(
        {**published, "missing": without, "jobs": item.jobs},
        summary=told_of(item.item_id, published),
    )
    for made in formats:
        Path(made["path"]).unlink(missing_ok=True)
    if item.info_json_path:
        store.delete(item.info_json_path)
    return ended


def publish_files(
    running: RunningItem,
    formats: Sequence[Made],
    *,
    stored: StoredInfo,
    settings: Settings,
    profiles: Profiles,
    opener: Opener,
) -> Made:
    """
    Make one video's files and put them at the destination its profile and tags choose.

    :param formats: what the records of its formats say.
    :param stored: its public info, with the sources of its extras.
    :returns: what the record says: path, bytes, sha256, codecs, duration, sidecars.
    """
    item = running.item
    profile = profiles.get(item.profile)
    public = {key: value for key, value in stored.info.items() if key != "extras"}
    name, place = destination_of(item.tags, profile, settings, profiles, opener)
    place.check()
    directory = directory_for(settings.work_dir, f"publish {running.record['id']}", running.token)
    extras = _extras(running, profile, stored, directory, settings)
    running.report(step="merge")
    merged = _merged(running, formats, directory, profile, _embedding(profile, public, extras))
    stem = stem_for(profile.output, public, merged.ext)
    files = Files(
        stem=stem,
        main=(f".{merged.ext}", merged.path),
        sidecars=_sidecars(profile, public, extras, directory),
        others_may_have_stem=str(public["id"]) not in str(stem),
    )
    running.report(step="publish")
    running.confirm()
    first, *sidecars = publish(files, place)
    discard(directory)
    return {
        "path": first.uri,
        "bytes": first.bytes,
        "sha256": first.sha256,
        "destination": name,
        "sidecars": [{"path": each.uri, "bytes": each.bytes, "sha256": each.sha256} for each in sidecars],
        "left_out": [*merged.left_out, *extras.missing],
        **_facts(merged, formats),
    }


def destination_of(
    tags: Sequence[str], profile: Profile, settings: Settings, profiles: Profiles, opener: Opener
) -> tuple[str, Place]:
    """
    The name of the destination that an item's tags and profile choose, and the destination.

    Where no profile names one it is this host's output directory, which is made.
    """
    if named := profiles.destination_for(profile, tags):
        name, destination = named
        return name, opener(destination)
    try:
        settings.output_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise local_failure(error, f"{str(settings.output_dir)!r} can't be made") from None
    return DEFAULT_DESTINATION, opener(Destination(path=str(settings.output_dir)))


def told_of(item_id: str, published: Made) -> Made:
    """What others are told of a published video: XCom, and the event that other DAGs run on."""
    told = ("path", "bytes", "sha256", "video_codec", "audio_codec", "duration")
    return {"id": item_id, **{key: published[key] for key in told}}


def _merged(
    running: RunningItem, formats: Sequence[Made], directory: Path, profile: Profile, embedding: Embedding
) -> Merged:
    """The merged file; a picture that ffmpeg can't read is left out: a video without it is still a video."""
    tracks = [Track(Path(made["path"]), made.get("language")) for made in formats]
    work = partial(
        merge, tracks, directory, ffmpeg=_ffmpeg(), container=profile.container, should_stop=running.lost
    )
    try:
        return work(embedding=embedding)
    except DownloadFailed as error:
        if error.code is not Code.BAD_MEDIA or embedding.thumbnail is None:
            raise
        merged = work(embedding=replace(embedding, thumbnail=None))
        return replace(merged, left_out=[*merged.left_out, f"thumbnail: {error.message}"])


def _facts(merged: Merged, formats: Sequence[Made]) -> Made:
    picture = next((made for made in formats if made.get("height")), {})
    lacking = "; ".join(dict.fromkeys(made["partial"] for made in formats if made.get("partial")))
    return {
        **({"partial": lacking} if lacking else {}),
        "container": merged.container,
        "duration": merged.duration,
        "video_codec": next(iter(merged.video_codecs), None),
        "audio_codec": next(iter(merged.audio_codecs), None),
        **{key: picture.get(key) for key in ("width", "height", "fps")},
    }


def _formats(item: PublishItem, dl: Queue) -> tuple[list[Made], list[Made]]:
    """The records of the formats that are there, and of those that are not, with their reasons."""
    there, without = [], []
    for job in item.jobs:
        place, record = dl.find(job) or (None, {})
        if place is keys.Place.RESULT:
            there.append(record)
        else:
            without.append({"job": job, "code": record.get("code"), "message": record.get("message")})
    return there, without


def _incomplete(without: Sequence[Made]) -> Refusal:
    """Why a video is not published: nothing is tried again until a person requeues its formats."""
    listed = "; ".join(
        f"{each['job']}: {each['code'] or 'gone'} {each['message'] or ''}".strip() for each in without
    )
    return Refusal(Code.INCOMPLETE, f"formats are missing, and the profile wants all: {listed}")


def _fetched_again(running: RunningItem, item: PublishItem, lost: Sequence[Made]) -> Ended:
    """Auth makes the group anew, and with its end this record is taken up again."""
    again = UrlItem.from_record(
        {
            **item.model_dump(
                exclude_none=True, exclude={"jobs", "info_json_path", "extractor", "video_id", "formats"}
            ),
            "formats": ",".join(made["format_id"] for made in lost),
            "refresh": [made["id"] for made in lost],
            "wanted": [job.rsplit(":", 1)[1] for job in item.jobs],
            "force": True,
        }
    )
    gone = ", ".join(made["path"] for made in lost)
    refusal = Refusal(Code.INCOMPLETE, f"gone from staging, asked for again: {gone}")
    return running.refused(refusal, push=[(Stage.AUTH, again)])


def _stored(running: RunningItem, item: PublishItem, store: InfoStore) -> StoredInfo:
    """The video's info; one that is gone costs its metadata, not the video, nor the title that auth recorded."""
    with suppress(Refusal, BadInput):
        if item.info_json_path:
            return store.get(item.info_json_path)
    auth = Queue(running.queue.client, Stage.AUTH, queue_base=running.queue.keys.queue_base)
    _, record = auth.find(item.item_id) or (None, {})
    title = record.get("title") or item.video_id
    return StoredInfo({"id": item.video_id, "title": title, "webpage_url": item.url}, None)


def _extras(
    running: RunningItem, profile: Profile, stored: StoredInfo, directory: Path, settings: Settings
) -> Extras:
    subtitles = profile.embed.subtitles or profile.write.subtitles
    wanted = ExtrasWanted(
        thumbnail=profile.embed.thumbnail or profile.write.thumbnail,
        languages=profile.subtitles.languages if subtitles else (),
        automatic=profile.subtitles.automatic,
        proxy=stored.proxy,
        ca_file=settings.ca_file,
        allow_private_targets=settings.allow_private_targets,
    )
    if not (wanted.thumbnail or wanted.languages):
        return Extras()
    watch = Watch(directory, should_stop=running.lost, paces=paces_for(running, settings, None))
    return fetch_extras(stored.info.get("extras") or {}, directory, wanted, watch)


def _embedding(profile: Profile, public: Made, extras: Extras) -> Embedding:
    embed = profile.embed
    return Embedding(
        metadata=tags_of(public) if embed.metadata else {},
        chapters=public.get("chapters") or () if embed.chapters else (),
        thumbnail=extras.thumbnail if embed.thumbnail else None,
        subtitles=[Track(each.path, each.language) for each in extras.subtitles] if embed.subtitles else (),
    )


def _sidecars(profile: Profile, public: Made, extras: Extras, directory: Path) -> dict[str, Path]:
    write = profile.write
    found: dict[str, Path | None] = {}
    if write.description:
        found[".description"] = write_description(public, directory)
    if write.info_json:
        found[".info.json"] = write_info_json(public, directory)
    if write.thumbnail and extras.thumbnail:
        found[extras.thumbnail.suffix] = extras.thumbnail
    if write.subtitles:
        found |= {f".{_in_a_name(each.language)}{each.path.suffix}": each.path for each in extras.subtitles}
    return {ending: path for ending, path in found.items() if path}


def _in_a_name(language: str) -> str:
    """A language as a part of a file's name; one that is no plain word, as in a hostile info, as a hash."""
    return language if re.fullmatch(r"[0-9A-Za-z_-]{1,32}", language) else component(language)[-16:]


def _ffmpeg() -> str:
    if path := ffmpeg_path():
        return path
    raise Refusal(Code.FFMPEG_MISSING, "there is no ffmpeg on this host; install it, or imageio-ffmpeg")
