"""Every way in which the offline YouTube spoils media, through auth and dl: the end that each must have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.profile_files import load_profiles
from include.ytdlp_ops.downloading.profiles import Profiles
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.recovery import sweep
from tests.offline_youtube import SCENARIOS
from tests.pipeline import Pipeline, files_in
from tests.queueing import make_due


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Profiles:
    file = tmp_path_factory.mktemp("profiles") / "profiles.yaml"
    hasty = {"formats": "299", "download_options": {"retries": 1, "socket_timeout": 5}}
    file.write_text(json.dumps({"profiles": {"hasty": hasty}}))  # JSON is YAML
    return load_profiles(file)


class End(NamedTuple):
    """
    How a format job ends.

    :param asked: how often the media were asked for.
    :param kept: bytes that the next attempt goes on from.
    :param of: the format; 299 has 268 kB, 140 has 67.
    """

    place: Place
    code: Code | None
    retried: bool
    asked: int
    kept: int = 0
    of: str = "299"


# with one retry of a connection; a cut answer brings half of what is asked for
ENDS = {
    "m403": End(Place.SKIPPED, Code.MEDIA_403, retried=False, asked=1),
    "m404": End(Place.SKIPPED, Code.MEDIA_GONE, retried=False, asked=1),
    "m410": End(Place.SKIPPED, Code.MEDIA_GONE, retried=False, asked=1),
    "m429": End(Place.FAIL, Code.HTTP_429, retried=True, asked=1),
    "m503": End(Place.FAIL, Code.NETWORK, retried=True, asked=2),
    "m503x2": End(Place.FAIL, Code.NETWORK, retried=True, asked=2),
    "mcut": End(Place.FAIL, Code.NETWORK, retried=True, asked=2, kept=150_000),
    "mcut1": End(Place.RESULT, None, retried=False, asked=2),
    "mreset": End(Place.FAIL, Code.PROXY, retried=True, asked=0),
    "mempty": End(Place.FAIL, Code.NETWORK, retried=True, asked=1),
    "mtrunc": End(Place.FAIL, Code.BAD_MEDIA, retried=True, asked=1),
    "mhtml": End(Place.FAIL, Code.BAD_MEDIA, retried=True, asked=1),
    "mslow": End(Place.RESULT, None, retried=False, asked=1, of="140"),
    "expired": End(Place.FAIL, Code.URL_EXPIRED, retried=True, asked=0),
}


def test_the_table_has_every_scenario_of_media() -> None:
    spoilt = {prefix for prefix, scenario in SCENARIOS.items() if scenario.media or scenario.ttl}

    assert set(ENDS) == spoilt


@pytest.mark.parametrize("prefix", ENDS)
def test_spoilt_media_end_as_they_must(pipeline: Pipeline, prefix: str) -> None:
    end, video_id = ENDS[prefix], f"{prefix}-".ljust(11, "0")
    pipeline.extract(video_id, profile="hasty", formats=end.of)

    pipeline.download()

    record = pipeline.record(pipeline.dl, f"youtube:{video_id}:{end.of}")
    assert (record["place"], record.get("code")) == (end.place, end.code)
    assert (record.get("retryable", False), "retry_at" in record) == (end.retried, end.retried)
    assert len(asked_for(pipeline)) == end.asked
    assert kept(pipeline) >= end.kept
    assert (kept(pipeline) > 0) is (end.kept > 0)
    assert len(files_in(pipeline.settings.staging_dir)) == (end.place is Place.RESULT)
    assert files_in(pipeline.settings.output_dir) == []
    assert "videoplayback" not in json.dumps(record)


@pytest.mark.parametrize("prefix", ["mcut", "m503x2"])
def test_the_next_attempt_extracts_anew_and_goes_on_where_the_bytes_ended(pipeline: Pipeline, prefix: str) -> None:
    video_id = f"{prefix}-".ljust(11, "0")
    pipeline.extract(video_id, profile="hasty")
    pipeline.download()
    there, before = kept(pipeline), len(asked_for(pipeline))

    make_due(pipeline.dl)
    sweep(pipeline.dl)
    record = pipeline.archive_next()

    made = pipeline.record(pipeline.dl, f"youtube:{video_id}:299")
    assert (record["place"], made["attempt"]) == (Place.RESULT, 2)
    assert asked_for(pipeline)[before].startswith(f"bytes={there}-")
    assert Path(record["path"]).is_file()
    assert files_in(pipeline.settings.staging_dir) == []


def asked_for(pipeline: Pipeline) -> list[str]:
    """The ranges that the site was asked for."""
    return [entry["range"] for entry in pipeline.site.log if "media" in entry]


def kept(pipeline: Pipeline) -> int:
    """Bytes that a next attempt may take over: those beside a version file, which says what they belong to."""
    folders = [path.parent for path in pipeline.settings.work_dir.rglob("version.json")]
    return sum(path.stat().st_size for folder in folders for path in folder.glob("*.part"))
