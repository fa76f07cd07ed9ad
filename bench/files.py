"""Files: a large one and a throttled one beside bare yt-dlp, and what publishing reads."""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.figures import Figure, gives
from include.ytdlp_ops.downloading.options import ffmpeg_path
from include.ytdlp_ops.local.environment import base_environment
from include.ytdlp_ops.local.folder import REPOSITORY

LARGE_BYTES, LARGE_ROUNDS = 1 << 30, 3
THROTTLED_BYTES, BYTES_PER_CONNECTION = 64 << 20, 2_000_000
PAIR_BYTES, S3_BYTES = 1 << 30, 256 << 20

_SERVE = """
import sys
from pathlib import Path
from tests.media_site import MediaSite
with MediaSite(Path(sys.argv[1]), rate=float(sys.argv[2]) or None) as site:
    print(site.url("media.mp4"), flush=True)
    sys.stdin.read()
"""
_SERVE_S3 = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("http://{}:{}".format(*server.get_host_and_port()), flush=True)
sys.stdin.read()
server.stop()
"""
_OURS = """
import json, sys
from pathlib import Path
from include.ytdlp_ops.downloading.profile_files import load_profiles
from include.ytdlp_ops.downloading.runner import download_format
info, directory = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
download_format(info, "1", directory=directory, proxy=None, transfer=load_profiles(None).get(None).transfer)
"""
_PUBLISH = """
import json, re, sys
from pathlib import Path, PurePosixPath
from include.ytdlp_ops.storage.publishing.destinations import Files, open_destination, publish
from include.ytdlp_ops.storage.publishing.merging import merge
from include.ytdlp_ops.storage.publishing.muxing import Track
read = lambda: int(re.search(r"rchar: (\\d+)", Path("/proc/self/io").read_text())[1])
folder, place = Path(sys.argv[1]), open_destination(sys.argv[3], json.loads(sys.argv[4]))
tracks = [Track(Path(path)) for path in sys.argv[5:]]
import av, yt_dlp.utils
place.has(PurePosixPath("nothing"))  # what clients load at their first call is no byte of the video's
before = read()
made = merge(tracks, folder, ffmpeg=sys.argv[2])
publish(Files(PurePosixPath("video"), (".mp4", made.path), {}), place)
print(read() - before)
"""


@gives("large_file_over_ytdlp_wall", "large_file_over_ytdlp_cpu")
def large_file() -> dict[str, Figure]:
    """1 GB over loopback, ours as the worker does it by default, and ``yt-dlp --load-info-json``; in turns."""
    with _site(LARGE_BYTES, 0) as (folder, info):
        pairs = [(_ours(folder, info), _bare(folder, info)) for _ in range(LARGE_ROUNDS)]
    (wall, cpu), (bare_wall, bare_cpu) = (
        [statistics.median(times) for times in zip(*runs, strict=True)] for runs in zip(*pairs, strict=True)
    )
    walls = f"{wall:.2f} s, yt-dlp {bare_wall:.2f} s; medians of {LARGE_ROUNDS}"
    cpus = f"{cpu:.2f} s CPU, yt-dlp {bare_cpu:.2f} s; medians of {LARGE_ROUNDS}"
    return {
        "large_file_over_ytdlp_wall": Figure(value=wall / bare_wall, unit="x", against=walls),
        "large_file_over_ytdlp_cpu": Figure(value=cpu / bare_cpu, unit="x", against=cpus),
    }


@gives("throttled_over_ytdlp_wall")
def throttled() -> dict[str, Figure]:
    """64 MB from a host that gives each connection 2 MB/s, by the default profile; yt-dlp uses one."""
    with _site(THROTTLED_BYTES, BYTES_PER_CONNECTION) as (folder, info):
        (wall, _), (bare, _) = _ours(folder, info), _bare(folder, info)
    against = f"{wall:.2f} s, yt-dlp {bare:.2f} s"
    return {"throttled_over_ytdlp_wall": Figure(value=wall / bare, unit="x", against=against)}


@gives("publish_bytes_read_per_byte", "publish_to_s3_bytes_read_per_byte")
def publish_reads() -> dict[str, Figure]:
    """
    A pair merged and published, in one file system and to S3: what this process and ffmpeg read of files.

    Counted is what they ask for (``rchar``), not what comes from the disk: of a file just written that is nothing.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as name, _s3() as options:
        folder = Path(name)
        (folder / "destination").mkdir()
        return {
            "publish_bytes_read_per_byte": _publish_reads(folder, PAIR_BYTES, str(folder / "destination"), {}),
            "publish_to_s3_bytes_read_per_byte": _publish_reads(folder, S3_BYTES, "s3://bench/videos", options),
        }


def _publish_reads(folder: Path, size: int, destination: str, options: dict[str, Any]) -> Figure:
    tracks = _pair(folder, size)
    came = sum(track.stat().st_size for track in tracks)
    command = [sys.executable, "-c", _PUBLISH, str(folder), _ffmpeg(), destination, json.dumps(options)]
    command += map(str, tracks)
    done = subprocess.run(command, env=base_environment(), cwd=REPOSITORY, check=True, stdout=subprocess.PIPE)
    read = int(done.stdout)
    return Figure(value=read / came, unit="x", against=f"{read / 1e6:.1f} MB read for {came / 1e6:.1f} MB")


@contextmanager
def _s3() -> Iterator[dict[str, str]]:
    """moto's server in a process of its own, with a bucket; options of a destination there."""
    import boto3  # type: ignore[import-untyped]  # ships no types

    with subprocess.Popen(
        [sys.executable, "-c", _SERVE_S3],
        env=base_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # a line for each request
        text=True,
    ) as server:
        assert server.stdout
        url = server.stdout.readline().strip()
        given = {"aws_access_key_id": "bench", "aws_secret_access_key": "bench"}
        boto3.client("s3", "us-east-1", endpoint_url=url, **given).create_bucket(Bucket="bench")
        yield {"key": "bench", "secret": "bench", "endpoint_url": url}
        server.communicate("")


@contextmanager
def _site(size: int, rate: int) -> Iterator[tuple[Path, Path]]:
    """A folder, and the info of a file of that size on a host in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        (folder / "served").mkdir()
        with (folder / "served" / "media.mp4").open("wb") as file:
            file.truncate(size)
        command = [sys.executable, "-c", _SERVE, str(folder / "served"), str(rate)]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, env=base_environment(), cwd=REPOSITORY, stdin=pipe, stdout=pipe, text=True
        ) as server:
            assert server.stdout
            fmt = {"format_id": "1", "url": server.stdout.readline().strip(), "ext": "mp4", "protocol": "http"}
            about: dict[str, Any] = {"id": "v", "title": "v", "extractor": "generic", "extractor_key": "Generic"}
            info = folder / "info.json"
            info.write_text(json.dumps({**about, "formats": [{**fmt, "filesize": size}]}))
            yield folder, info
            server.communicate("")


def _ours(folder: Path, info: Path) -> tuple[float, float]:
    return _timed(folder, [sys.executable, "-c", _OURS, str(info), str(folder / "made")])


def _bare(folder: Path, info: Path) -> tuple[float, float]:
    command = [sys.executable, "-m", "yt_dlp", "--ignore-config", "--quiet", "--no-progress", "--fixup", "never"]
    return _timed(folder, [*command, "--load-info-json", str(info), "-o", str(folder / "made" / "media.mp4")])


def _timed(folder: Path, command: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of a command that fills the folder ``made``, which is emptied."""
    made = folder / "made"
    made.mkdir()
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, env=base_environment(), cwd=REPOSITORY, check=True)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if sum(path.stat().st_size for path in made.glob("*.mp4")) != (folder / "served" / "media.mp4").stat().st_size:
        raise RuntimeError(f"{command[:3]} did not make the file")
    shutil.rmtree(made)
    os.sync()  # what one wrote shall not weigh on the other
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _pair(folder: Path, size: int) -> list[Path]:
    """Picture and sound of that size: a second of noise again and again; fragments and an index, as YouTube's."""
    noise = "nullsrc=size=320x180:rate=30:duration=1,geq=random(1)*255:128:128"  # 1.6 MB, as of 4K
    x264 = ["-c:v", "libx264", "-preset", "ultrafast", "-qp", "10", "-pix_fmt", "yuv420p"]
    second, video, audio = folder / "second.mp4", folder / "video.mp4", folder / "audio.m4a"
    _run_ffmpeg(["-f", "lavfi", "-i", noise, *x264, str(second)])
    seconds = size // second.stat().st_size
    fragmented = ["-movflags", "+dash+global_sidx+skip_trailer", "-frag_duration", "5000000"]
    _run_ffmpeg(["-stream_loop", str(seconds), "-i", str(second), "-c", "copy", *fragmented, str(video)])
    sine = f"sine=sample_rate=48000:duration={seconds + 1}"
    _run_ffmpeg(["-f", "lavfi", "-i", sine, "-c:a", "aac", *fragmented, "-f", "mp4", str(audio)])
    return [video, audio]


def _run_ffmpeg(arguments: list[str]) -> None:
    subprocess.run([_ffmpeg(), "-v", "error", "-nostdin", "-y", *arguments], check=True)


def _ffmpeg() -> str:
    found = ffmpeg_path()
    if not found:
        raise RuntimeError("no ffmpeg: install imageio-ffmpeg")
    return found
