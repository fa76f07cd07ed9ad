"""Media of every shape from the offline YouTube through all stages: real extractor, real queue, real files."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.downloading.profile_files import load_profiles
from include.ytdlp_ops.downloading.profiles import Profiles
from include.ytdlp_ops.downloading.verifying import sha256
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.records import Record
from include.ytdlp_ops.queues.recovery import sweep
from tests.offline_youtube import SHAPES
from tests.offline_youtube.offers import SPARSE_BYTES
from tests.offline_youtube.streams import SEGMENTS
from tests.pipeline import Pipeline, files_in
from tests.queueing import make_due

PROFILES: dict[str, Any] = {
    "everything": {
        "formats": "bv*+ba/b",
        "embed": {"metadata": True, "chapters": True, "thumbnail": True, "subtitles": True},
        "write": {"thumbnail": True, "subtitles": True, "description": True, "info_json": True},
        "subtitles": {"languages": ["all"]},
    },
    "captions": {
        "formats": "299+140",
        "container": "mkv",
        "embed": {"subtitles": True},
        "subtitles": {"languages": ["en", "fr"], "automatic": True},
    },
    "shapes": {
        "formats": "bv*+ba/b",
        "embed": {"metadata": True, "chapters": True},
        "format_options": {"allow_multiple_audio_streams": True},
    },
    "named": {
        "formats": "140",
        "output": "%(title)s/%(uploader)s/%(title)s.%(ext)s",
        "embed": {"metadata": True},
        "write": {"info_json": True, "description": True},
    },
}


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Profiles:
    file = tmp_path_factory.mktemp("profiles") / "profiles.yaml"
    file.write_text(json.dumps({"profiles": PROFILES}))  # JSON is YAML
    return load_profiles(file)


@dataclass(frozen=True)
class Looked:
    """What a published file holds."""

    container: str
    streams: list[tuple[str, str | None]]
    seconds: float
    size: tuple[int, int] | None = None
    pixels: str | None = None
    chapters: list[str] = field(default_factory=list)


def look(path: Path) -> Looked:
    import av
    from av.stream import Disposition

    with av.open(str(path)) as media:
        covers = [stream for stream in media.streams.video if stream.disposition & Disposition.attached_pic]
        video = next((stream for stream in media.streams.video if stream not in covers), None)
        streams = [
            ("cover" if stream in covers else stream.codec_context.name, stream.metadata.get("language"))
            for stream in media.streams
            if stream.codec_context
        ]
        return Looked(
            container=media.format.name.split(",")[0],
            streams=[(codec, language) for codec, language in streams],
            seconds=(media.duration or 0) / 1_000_000,
            size=(video.width, video.height) if video else None,
            pixels=video.codec_context.pix_fmt if video else None,
            chapters=[chapter["metadata"]["title"] for chapter in media.chapters()],
        )


def published(pipeline: Pipeline, record: Record) -> Path:
    """The media file of a published video, of which nothing else is left."""
    assert record["place"] == Place.RESULT, (record["code"], record["message"])
    path, output = Path(record["path"]), pipeline.settings.output_dir
    there = {Path(each["path"]): each["sha256"] for each in [record, *record["sidecars"]]}
    assert {each: sha256(each) for each in files_in(output)} == there
    assert {each for each in files_in(pipeline.home) if output not in each.parents} == set()
    return path


H264, AAC, DUBBED = ("h264", "und"), ("aac", "und"), ("aac", "deu")
CHAPTERS = ["Intro", "Middle = part; #2", "End"]


@pytest.mark.parametrize(
    ("video_id", "asked", "looks"),
    [
        ("ok-00000001", "299+140", Looked("mov", [H264, AAC], 4, (1920, 1080), "yuv420p")),
        (
            "ok-00000001",
            "bv*+ba",
            Looked("matroska", [("h264", None), ("opus", None)], 4, (1920, 1080), "yuv420p"),
        ),
        ("hls-0000001", None, Looked("mov", [H264, AAC], SEGMENTS, (640, 360), "yuv420p")),
        ("hlsaes-0001", "92", Looked("mov", [H264, AAC], SEGMENTS, (320, 180), "yuv420p")),
        ("dash-000001", None, Looked("mov", [H264, AAC], SEGMENTS, (320, 180), "yuv420p")),
        ("manifests-1", "136+140", Looked("mov", [H264, AAC], SEGMENTS, (320, 180), "yuv420p")),
        ("postlive-01", None, Looked("mov", [H264, AAC], SEGMENTS, (320, 180), "yuv420p")),
        ("vertical-01", None, Looked("mov", [H264, AAC], 4, (360, 640), "yuv420p")),
        ("tenbit-0001", None, Looked("matroska", [("vp9", None), ("opus", None)], 4, (320, 180), "yuv420p10le")),
        ("still-00001", None, Looked("mov", [H264], 0, (320, 180), "yuv420p")),
        (
            "langs-00001",
            "bv*+mergeall[vcodec=none]",
            Looked("mov", [H264, ("aac", "eng"), DUBBED, ("aac", "eng")], 4, (1280, 720), "yuv420p"),
        ),
        ("langs-00001", "bv*+ba", Looked("mov", [H264, ("aac", "eng")], 4, (1280, 720), "yuv420p")),
        ("langs-00001", "ba[language=de]", Looked("mov", [DUBBED], 4)),
        ("chapters-01", "140", Looked("mov", [AAC], 4, chapters=CHAPTERS)),
        ("chaptext-01", "251", Looked("matroska", [("opus", None)], 4, chapters=CHAPTERS)),
    ],
)
def test_a_shape_is_published_as_it_is(
    pipeline: Pipeline, video_id: str, asked: str | None, looks: Looked
) -> None:
    record = pipeline.archive(video_id, profile="shapes", **({"formats": asked} if asked else {}))

    found = look(published(pipeline, record))
    assert found == Looked(**{**vars(looks), "seconds": pytest.approx(looks.seconds, abs=0.2)})


def test_the_sound_of_the_original_is_the_default_of_several(pipeline: Pipeline) -> None:
    import av
    from av.stream import Disposition

    record = pipeline.archive("langs-00001", formats="bv*+ba+ba[language=de]", profile="shapes")

    with av.open(str(published(pipeline, record))) as media:
        said = [
            (each.metadata["language"], bool(each.disposition & Disposition.default))
            for each in media.streams.audio
        ]
    assert said == [("eng", True), ("deu", False)]


def test_subtitles_thumbnail_and_description_are_embedded_and_written_beside(pipeline: Pipeline) -> None:
    record = pipeline.archive("subs-000001", profile="everything", formats="299+140")

    path = published(pipeline, record)
    beside = {Path(each["path"]).name.removeprefix(path.stem): Path(each["path"]) for each in record["sidecars"]}
    assert record["left_out"] == []
    assert look(path).streams == [H264, ("aac", "eng"), ("mov_text", "eng"), ("mov_text", "deu"), ("cover", None)]
    assert sorted(beside) == [".de.vtt", ".description", ".en.vtt", ".info.json", ".webp"]
    assert "Hallo" in beside[".de.vtt"].read_text()
    assert beside[".webp"].read_bytes() == pipeline.site.stock.thumbnail("webp")
    assert "googlevideo" not in beside[".info.json"].read_text()


def test_captions_made_by_machine_stand_in_where_nobody_wrote_any(pipeline: Pipeline) -> None:
    record = pipeline.archive("subs-000001", profile="captions")

    content = published(pipeline, record).read_bytes()
    assert [language for codec, language in look(Path(record["path"])).streams if codec == "webvtt"] == [
        "eng",
        "fra",
    ]
    assert (b"Hello" in content, b"ahem" in content) == (True, True)


def test_the_best_thumbnail_that_the_site_really_has_is_taken(pipeline: Pipeline) -> None:
    record = pipeline.archive("smallpic-01", profile="everything", formats="140")

    (picture,) = [Path(each["path"]) for each in record["sidecars"] if each["path"].endswith(".jpg")]
    assert picture.read_bytes() == pipeline.site.stock.thumbnail("jpg")
    assert ("cover", None) in look(published(pipeline, record)).streams


@pytest.mark.parametrize("prefix", [prefix for prefix, each in SHAPES.items() if each.title is not None])
def test_a_hostile_title_names_one_plain_file_below_the_destination(pipeline: Pipeline, prefix: str) -> None:
    record = pipeline.archive(f"{prefix}-".ljust(11, "0"), profile="named")

    inside = published(pipeline, record).relative_to(pipeline.settings.output_dir)
    assert len(inside.parts) <= 3
    for part in inside.parts:
        assert part.isprintable()
        assert len(part.encode()) <= 255
        assert not set(part) & set('/\\:*?"<>|')
        assert part[0] not in "-. "
        assert part[-1] not in ". "
        assert part.split(".")[0].upper() not in {"CON", "NUL"}


def test_a_live_is_put_off_and_when_it_has_ended_archived_as_a_video(pipeline: Pipeline) -> None:
    live = pipeline.extract("growing-001", profile="shapes")
    pipeline.site.streams.end("growing-001")

    make_due(pipeline.auth)
    sweep(pipeline.auth)
    record = pipeline.archive_next()

    assert live["place"] == Place.DEFERRED
    looks = look(published(pipeline, record))
    assert looks.streams == [H264, AAC]
    assert looks.seconds == pytest.approx(SEGMENTS, abs=0.2)


@pytest.mark.slow  # 2 GB come, are read twice and written twice
def test_two_gigabytes_are_published(pipeline: Pipeline) -> None:
    record = pipeline.archive("sparse-0001", profile="shapes")

    found = look(published(pipeline, record))
    assert found.streams == [("pcm_s16le", None)]
    assert found.seconds == pytest.approx(SHAPES["sparse"].seconds, abs=2)
    assert record["bytes"] > SPARSE_BYTES
