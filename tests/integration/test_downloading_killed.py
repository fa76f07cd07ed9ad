"""Kill -9 at every change that a download makes, then a next attempt: the same bytes, whatever was left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.downloading.ranges import RANGE_BYTES
from tests.media_site import MediaSite
from tests.offline_youtube.media import made_once
from tests.offline_youtube.shapes import make_segments

pytestmark = pytest.mark.slow  # each kill is two downloads


def killed(info: dict[str, Any], tmp_path: Path, connections: int) -> list[dict[str, Any]]:
    """What came out of a download that was killed at each step and taken over."""
    (tmp_path / "info.json").write_text(json.dumps(info))
    command = [sys.executable, "-m", "tests.dying.downloading", str(tmp_path / "info.json"), "1"]

    done = subprocess.run(
        [*command, str(tmp_path / "work"), str(connections)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_fragments_killed_at_any_step_arrive_byte_for_byte_with_the_next_attempt(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    segments = made_once(tmp_path_factory.getbasetemp() / "segments", make_segments)
    names = ["init.m4s", "chunk-1.m4s", "chunk-2.m4s"]
    with MediaSite(segments) as site:
        fragments = [{"url": site.url(name), "duration": 1.0} for name in names]
        fmt = {"format_id": "1", "protocol": "http_dash_segments", "url": site.url("x.mpd"), "ext": "mp4"}

        kills = killed({"id": "v", "formats": [{**fmt, "fragments": fragments}]}, tmp_path, 1)

    assert [kill for kill in kills if not kill["same"]] == []
    assert kills[0]["bytes"] == sum((segments / name).stat().st_size for name in names)
    for boundary in (".ytdl", ".ledger-new", ".part", "Frag", "os.rename", "os.remove"):
        assert any(boundary in kill["killed at"] for kill in kills), boundary


@pytest.mark.parametrize("connections", [0, 1, 3])
def test_a_file_killed_at_any_step_arrives_byte_for_byte_with_the_next_attempt(
    tmp_path: Path, connections: int
) -> None:
    size = 2 * RANGE_BYTES + 99
    (tmp_path / "media.mp4").write_bytes(os.urandom(size))
    with MediaSite(tmp_path) as site:
        fmt = {"format_id": "1", "protocol": "http", "url": site.url("media.mp4"), "ext": "mp4", "filesize": size}

        kills = killed({"id": "v", "formats": [fmt]}, tmp_path, connections)

    assert [kill for kill in kills if not kill["same"]] == []
    assert kills[0]["bytes"] == size
    for boundary in ("version.json", ".part", "os.rename"):
        assert any(boundary in kill["killed at"] for kill in kills), boundary
