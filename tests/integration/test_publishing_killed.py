"""Kill -9 at every change that publishing makes, then publish again: the same bytes, once, and nothing left."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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


def killed(work: Path, shapes: Path, destination: str, options: dict[str, str]) -> list[dict[str, Any]]:
    """What came out of a publishing that was killed at each step and done again."""
    command = [
        sys.executable,
        "-m",
        "tests.dying.publishing",
        str(shapes),
        str(work),
        destination,
        json.dumps(options),
    ]

    done = subprocess.run([*command, json.dumps(options)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory.getbasetemp() / "shapes", make_shapes)


def test_killed_at_any_step_publishing_ends_with_the_same_files_when_done_again(
    destination: Path, tmp_path: Path, shapes: Path
) -> None:
    kills = killed(tmp_path, shapes, str(destination), {})

    assert [kill for kill in kills if not kill["same"]] == []
    assert set(kills[0]["there"]) == {"A video/idididididi.mp4", "A video/idididididi.info.json"}
    for boundary in ("subprocess.Popen", "os.rename", "os.mkdir", "os.remove", "sidecar.info.json"):
        assert any(boundary in kill["killed at"] for kill in kills), boundary


def test_killed_at_any_step_publishing_to_s3_ends_with_the_same_objects(tmp_path: Path, shapes: Path) -> None:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        endpoint = "http://{}:{}".format(*server.get_host_and_port())
        options = {"key": "test", "secret": "test", "endpoint_url": endpoint}
        kills = killed(tmp_path, shapes, "s3://archive/videos", options)
    finally:
        server.stop()

    assert [kill for kill in kills if not kill["same"]] == []
    assert set(kills[0]["there"]) == {"A video/idididididi.mp4", "A video/idididididi.info.json"}
    for boundary in ("before put_object", "after put_object", "before head_object"):
        assert any(boundary in kill["killed at"] for kill in kills), boundary
