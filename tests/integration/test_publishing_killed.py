"""Kill -9 at every change that publishing makes, then publish again: the same bytes, once, and nothing left."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.storage.publishing.object_places import PART_BYTES
from tests.media_site import MediaSite
from tests.offline_youtube.media import made_once
from tests.offline_youtube.shapes import make_shapes

pytestmark = pytest.mark.slow  # each kill is two runs of ffmpeg


@pytest.fixture(params=["same file system", "another one"])
def destination(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    if request.param == "same file system":
        yield tmp_path / "destination"
        return
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield folder / "destination"
    shutil.rmtree(folder)


Kills = Callable[..., list[dict[str, Any]]]
EVERYTHING = {
    f"A video/idididididi{ending}" for ending in (".mp4", ".info.json", ".description", ".jpg", ".en.vtt")
}


@pytest.fixture
def killed(tmp_path: Path, shapes: Path) -> Iterator[Kills]:
    """What came out of a publishing that was killed at each step and done again."""

    def kill(destination: str, options: dict[str, str] | None = None, size: int = 0) -> list[dict[str, Any]]:
        about = {"shapes": str(shapes), "work": str(tmp_path), "thumbnail": site.url("cover.jpg"), "bytes": size}
        given = {**about, "destination": destination, "options": options or {}}
        command = [sys.executable, "-m", "tests.dying.publishing", json.dumps(given)]

        done = subprocess.run(command, capture_output=True, text=True, check=False)

        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    with MediaSite(shapes) as site:
        yield kill


@pytest.fixture
def s3() -> Iterator[dict[str, str]]:
    """moto's server, as options of a destination in it."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    yield {"key": "test", "secret": "test", "endpoint_url": endpoint}
    server.stop()


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory.getbasetemp() / "shapes", make_shapes)


def check(kills: list[dict[str, Any]], boundaries: Iterable[str]) -> None:
    """Each ended as without a kill, had its staging until then, and left nothing behind."""
    assert [kill for kill in kills if not kill["same"] or not kill["staged"]] == []
    assert [kill for kill in kills if kill["unfinished"] or kill["left"]] == []
    seen = [kill["killed at"] for kill in kills]
    assert [boundary for boundary in boundaries if not any(boundary in each for each in seen)] == []


def test_killed_at_any_step_publishing_ends_with_the_same_files_when_done_again(
    destination: Path, killed: Kills
) -> None:
    kills = killed(str(destination))

    assert set(kills[0]["there"]) == EVERYTHING
    made = ("sidecar.info.json", "sidecar.description", "thumbnail.jpg", "subtitles-en", "tags.ffmeta")
    check(
        kills, [*made, "subprocess.Popen", "os.rename", "os.mkdir", "os.remove", "in mid copy", "before verifying"]
    )


def test_killed_at_any_step_publishing_to_s3_ends_with_the_same_objects(killed: Kills, s3: dict[str, str]) -> None:
    kills = killed("s3://archive/videos", s3)

    assert set(kills[0]["there"]) == EVERYTHING
    check(kills, ["before put_object", "after put_object", "before head_object", "after head_object"])


def test_killed_in_the_middle_of_a_part_and_between_parts_there_is_one_object_and_no_upload_left(
    killed: Kills, s3: dict[str, str]
) -> None:
    kills = killed("s3://archive/videos", s3, PART_BYTES + (4 << 20))

    assert set(kills[0]["there"]) == {"A video/idididididi.mp4"}
    calls = ("create_multipart_upload", "upload_part", "complete_multipart_upload", "list_multipart_uploads")
    check(kills, [f"{when} {call}" for call in calls for when in ("before", "after")])
    check(kills, [f"in mid part, {sent << 20} bytes" for sent in (3, 6, 9)])
