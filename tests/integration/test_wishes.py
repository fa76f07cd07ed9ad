"""What a profile wishes of formats and times, through the stages: languages, quality, images, windows, lives."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.profile_files import load_profiles
from include.ytdlp_ops.downloading.profiles import Profiles
from include.ytdlp_ops.queues.keys import Place
from tests.pipeline import Pipeline


def closed_now() -> str:
    """A window that opens in about two hours."""
    opens = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=2)
    return f"{opens:%H:%M}-{opens + datetime.timedelta(hours=1):%H:%M}"


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Profiles:
    languages: dict[str, Any] = {"format_options": {"allow_multiple_audio_streams": True}}
    kinds: dict[str, Any] = {
        "every-language": {"formats": "bv*+mergeall[vcodec=none]", **languages},
        "named-languages": {"formats": "bv*+ba[language^=de]+ba[language^=en]", **languages},
        "sharp": {"formats": "bv*+ba", "min_height": 2160, "low_quality": "fail"},
        "sharp-if-there": {"formats": "bv*+ba", "min_height": 2160, "low_quality": "record"},
        "everything": {"formats": "all"},
        "storyboards": {"formats": "sb0"},
        "at-night": {"formats": "140", "window": closed_now()},
        "record": {"formats": "b", "live": "record"},
    }
    file = tmp_path_factory.mktemp("profiles") / "profiles.yaml"
    file.write_text(json.dumps({"profiles": kinds}))  # JSON is YAML
    return load_profiles(file)


def languages_in(path: str) -> list[str]:
    import av

    with av.open(path) as container:
        return [stream.language or "und" for stream in container.streams.audio]


@pytest.mark.parametrize(
    ("profile", "languages"), [("every-language", {"eng", "deu"}), ("named-languages", {"deu", "eng"})]
)
def test_sound_in_several_languages_is_in_one_file(pipeline: Pipeline, profile: str, languages: set[str]) -> None:
    record = pipeline.archive("langs-00001", profile=profile)

    found = languages_in(record["path"])
    assert record["place"] == Place.RESULT
    assert len(found) >= 2
    assert languages <= {"deu" if language == "ger" else language for language in found}
    if profile == "named-languages":
        assert found[0] in ("deu", "ger"), "the first that is named is the default"


def test_low_quality_is_recorded_where_the_profile_takes_it(pipeline: Pipeline) -> None:
    record = pipeline.extract("ok-00000001", profile="sharp-if-there")

    assert record["place"] == Place.RESULT
    assert "at least 2160 are wanted" in record["low_quality"]


def test_low_quality_goes_to_another_egress_where_the_profile_says_so(pipeline: Pipeline) -> None:
    record = pipeline.extract("ok-00000001", profile="sharp")

    assert (record["place"], record["code"], record["outcome"]) == (Place.FAIL, Code.LOW_QUALITY, "rotate")
    assert pipeline.dl.depths()["inbox"] == 0


def test_storyboards_are_never_among_the_formats(pipeline: Pipeline) -> None:
    everything = pipeline.extract("ok-00000001", profile="everything")
    asked_for = pipeline.extract("ok-00000002", profile="storyboards")

    assert everything["jobs"]
    assert not [job for job in everything["jobs"] if ":sb" in job]
    assert (asked_for["place"], asked_for["code"]) == (Place.SKIPPED, Code.FORMAT_MISSING)
    assert pipeline.dl.depths()["inbox"] == len(everything["jobs"])


def test_a_closed_window_puts_a_download_off_until_it_opens(pipeline: Pipeline) -> None:
    pipeline.extract("ok-00000001", profile="at-night")
    pipeline.site.reset()

    ended = pipeline.download()

    record = pipeline.record(pipeline.dl, "youtube:ok-00000001:140")
    opens = datetime.datetime.fromisoformat(record["retry_at"]) - datetime.datetime.now(datetime.UTC)
    assert (ended.place, ended.code) == (Place.DEFERRED, Code.LIMITED)
    assert datetime.timedelta(hours=1.9) < opens <= datetime.timedelta(hours=2)
    assert pipeline.site.log == []


def test_a_live_of_youtube_is_recorded_from_its_beginning(pipeline: Pipeline) -> None:
    extracted = pipeline.extract("growing-001", profile="record")
    pipeline.site.streams.end("growing-001")

    ended = pipeline.download()

    (job,) = extracted["jobs"]
    record = pipeline.record(pipeline.dl, job)
    assert (ended.place, extracted["live_status"], record.get("partial")) == (Place.RESULT, "is_live", None)
    assert record["duration"] == pytest.approx(8, abs=0.5)
    assert (record["video_codec"], record["audio_codec"]) == ("h264", "aac")
    assert Path(record["path"]).is_file()
