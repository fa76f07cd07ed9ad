"""The publishing of one video, killed at each step; prints what came out, one JSON object a kill."""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import imageio_ffmpeg  # type: ignore[import-untyped]  # the wheel has no types

from include.ytdlp_ops.downloading.directories import discard
from include.ytdlp_ops.storage.publishing.destinations import Files, open_destination, publish
from include.ytdlp_ops.storage.publishing.merging import merge
from include.ytdlp_ops.storage.publishing.muxing import Embedding, Track
from include.ytdlp_ops.storage.publishing.naming import stem_for
from include.ytdlp_ops.storage.publishing.sidecars import write_info_json
from tests.dying.steps import STEP, run_to_the_end, steps_of

PUBLIC = {"id": "idididididi", "title": "A video"}


def main() -> None:
    """``python -m tests.dying.publishing SHAPES WORK DESTINATION OPTIONS``."""
    shapes, work, path, options = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
    staging = work / "staging" / "item" / "token"
    done = work / "done"

    def fill() -> None:
        done.unlink(missing_ok=True)
        shutil.rmtree(work / "staging", ignore_errors=True)
        staging.mkdir(parents=True)
        for name in ("h264.mp4", "en.m4a"):
            shutil.copy(shapes / name, staging)
        _emptied(path, options)

    def job() -> None:
        if not done.exists():
            work_on_it()
            done.touch()  # stands for the item's end in the queue; staging goes away after it, not before
        discard(staging)

    def work_on_it() -> None:
        tracks = [Track(staging / "h264.mp4"), Track(staging / "en.m4a", "en")]
        embedding = Embedding(metadata={"title": PUBLIC["title"]})
        made = merge(tracks, staging, ffmpeg=imageio_ffmpeg.get_ffmpeg_exe(), embedding=embedding)
        sidecars = {".info.json": write_info_json(PUBLIC, staging)}
        stem = stem_for("%(title)s/%(id)s.%(ext)s", PUBLIC, made.ext)
        publish(Files(stem, (f".{made.ext}", made.path), sidecars), open_destination(path, options))

    for module in ("av", "yt_dlp.utils", *(["s3fs", "upath"] if path.startswith("s3://") else [])):
        importlib.import_module(module)  # once, and not in every fork
    if path.startswith("s3://"):
        _call_s3_in_steps()
    fill()
    run_to_the_end(job)
    wanted = _content(path, options)
    for number, what in steps_of(job, fill):
        run_to_the_end(job)
        found = _content(path, options)
        said = {"step": number, "killed at": what, "same": found == wanted, "there": found}
        sys.stdout.write(f"{json.dumps(said)}\n")
        if staging.exists():
            raise RuntimeError("staging is left")


def _content(path: str, options: dict[str, Any]) -> dict[str, str]:
    """Relative name -> SHA-256 of every file at the destination."""
    if path.startswith("s3://"):
        bucket = _bucket(path, options)
        found = {each.key.partition("/")[2]: each.get()["Body"].read() for each in bucket.objects.all()}
    else:
        root = Path(path)
        files = [file for file in sorted(root.rglob("*")) if file.is_file()]
        found = {str(file.relative_to(root)): file.read_bytes() for file in files}
    # what grew when it was killed is not published; it goes away by its age
    published = {name: content for name, content in found.items() if not name.startswith(".publishing/")}
    return {name: hashlib.sha256(content).hexdigest() for name, content in published.items()}


def _emptied(path: str, options: dict[str, Any]) -> None:
    if path.startswith("s3://"):
        _bucket(path, options).objects.all().delete()
    else:
        shutil.rmtree(path, ignore_errors=True)


def _bucket(path: str, options: dict[str, Any]) -> Any:
    """Not through fsspec: its thread would not live on in forks."""
    import boto3  # type: ignore[import-untyped]  # ships no types

    key, secret, endpoint = (options[name] for name in ("key", "secret", "endpoint_url"))
    store = boto3.resource(
        "s3", "us-east-1", endpoint_url=endpoint, aws_access_key_id=key, aws_secret_access_key=secret
    )
    bucket = store.Bucket(path.removeprefix("s3://").partition("/")[0])
    bucket.create()
    return bucket


def _call_s3_in_steps() -> None:
    from fsspec.asyn import sync_wrapper  # type: ignore[import-untyped]  # ships no types
    from s3fs import S3FileSystem  # type: ignore[import-untyped]  # ships no types

    original = S3FileSystem._call_s3

    async def call(fs: Any, method: str, *args: Any, **more: Any) -> Any:
        sys.audit(STEP, f"before {method}")
        answer = await original(fs, method, *args, **more)
        sys.audit(STEP, f"after {method}")
        return answer

    S3FileSystem._call_s3, S3FileSystem.call_s3 = call, sync_wrapper(call)


main()
