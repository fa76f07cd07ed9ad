"""The ffmpeg that yt-dlp starts for what it can't fetch itself ends with its download, however that one ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.media_site import MediaSite
from tests.ops_servers import all_gone

CHILD = """
import json, sys, threading
from pathlib import Path
from include.ytdlp_ops.downloading.runner import download_format
from include.ytdlp_ops.errors import LeaseLost
told = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), told.set()), daemon=True).start()
try:
    download_format(
        json.loads(sys.argv[1]), "1", directory=Path(sys.argv[2]), proxy=None,
        should_stop=lambda: LeaseLost("another worker has it") if told.is_set() else None,
    )
except LeaseLost:
    print("lost", flush=True)
"""


@dataclass
class Downloading:
    """A download in a process of its own, and the ffmpeg that it waits for."""

    process: subprocess.Popen[str]
    children: list[int]


@pytest.fixture
def downloading(tmp_path: Path) -> Iterator[Downloading]:
    with MediaSite(tmp_path) as site, started(site, tmp_path) as downloading:
        yield downloading


@contextmanager
def started(site: MediaSite, directory: Path) -> Iterator[Downloading]:
    asked = threading.Event()

    def never_ready() -> str:
        asked.set()
        site.stopping.wait()
        return ""

    locked = '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-KEY:METHOD=SAMPLE-AES,URI="key"\n'
    site.made |= {
        "locked.m3u8": lambda: f"{locked}#EXTINF:1,\nslow.ts\n#EXT-X-ENDLIST\n",
        "key": lambda: "0123456789abcdef",
        "slow.ts": never_ready,
    }
    fmt = {"format_id": "1", "protocol": "m3u8_native", "url": site.url("locked.m3u8"), "ext": "mp4"}
    command = [sys.executable, "-c", CHILD, json.dumps({"id": "v", "formats": [fmt]}), str(directory)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=Path.cwd()) as process:
        try:
            assert asked.wait(30), "ffmpeg did not ask for the segment"
            listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            names = {int(pid): Path(f"/proc/{pid}/comm").read_text() for pid in listed}
            yield Downloading(process, [pid for pid, name in names.items() if name.startswith("ffmpeg")])
        finally:
            site.stopping.set()
            process.kill()


def test_no_ffmpeg_is_left_when_its_worker_is_killed(downloading: Downloading) -> None:
    with all_gone(downloading.children):
        downloading.process.send_signal(signal.SIGKILL)

    assert len(downloading.children) == 1


def test_a_stop_ends_the_ffmpeg_that_is_waited_for(downloading: Downloading) -> None:
    with all_gone(downloading.children):
        said, _ = downloading.process.communicate("stop\n", timeout=20)

    assert said == "lost\n"
