"""The publishing of one video, killed at each step; prints what came out, one JSON object a kill."""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import imageio_ffmpeg  # type: ignore[import-untyped]  # the wheel has no types

from include.ytdlp_ops.downloading.directories import discard
from include.ytdlp_ops.downloading.extras import ExtrasWanted, fetch_extras
from include.ytdlp_ops.storage.publishing import local_places, object_places, places
from include.ytdlp_ops.storage.publishing.destinations import Files, open_destination, publish
from include.ytdlp_ops.storage.publishing.merging import merge
from include.ytdlp_ops.storage.publishing.muxing import Embedding, Track
from include.ytdlp_ops.storage.publishing.naming import stem_for
from include.ytdlp_ops.storage.publishing.sidecars import write_description, write_info_json
from tests.dying.steps import STEP, run_to_the_end, steps_of

PUBLIC = {"id": "idididididi", "title": "A video", "description": "What it is."}
FORMATS = ("h264.mp4", "en.m4a")
SENT_STEP = 3 << 20


class Publishing:
    """
    One video's job, as the stage does it, without its queue.

    :param given: ``shapes``, ``work``, ``destination``, ``options`` of it, ``thumbnail`` (a URL), ``bytes`` (if
        not 0: a file of that size is published, and nothing merged).
    """

    def __init__(self, given: dict[str, Any]) -> None:
        self.shapes, self.path, self.options = Path(given["shapes"]), given["destination"], given["options"]
        self.thumbnail, self.bytes = given["thumbnail"], given["bytes"]
        self.staging = Path(given["work"]) / "staging" / "item" / "token"
        self.done = Path(given["work"]) / "done"
        self.is_s3 = self.path.startswith("s3://")

    def afresh(self) -> None:
        self.done.unlink(missing_ok=True)
        shutil.rmtree(self.staging.parent, ignore_errors=True)
        self.staging.mkdir(parents=True)
        for name in FORMATS:
            shutil.copy(self.shapes / name, self.staging)
        if self.bytes:
            (self.staging / "large").write_bytes(bytes(range(256)) * (self.bytes // 256))
        if self.is_s3:
            self.bucket.objects.all().delete()
        else:
            shutil.rmtree(self.path, ignore_errors=True)
            Path(self.path).mkdir()

    def work(self) -> None:
        if not self.done.exists():
            publish(self.files(), open_destination(self.path, self.options))
            self.done.touch()  # stands for the item's end in the queue; staging goes away after it, not before
        discard(self.staging)

    def files(self) -> Files:
        stem = stem_for("%(title)s/%(id)s.%(ext)s", PUBLIC, "mp4")
        if self.bytes:
            return Files(stem, (".mp4", self.staging / "large"), {})
        tracks = [Track(self.staging / FORMATS[0]), Track(self.staging / FORMATS[1], "en")]
        extras = fetch_extras(
            {
                "thumbnails": [{"url": self.thumbnail}],
                "subtitles": {"en": [{"ext": "vtt", "data": "WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n"}]},
            },
            self.staging,
            ExtrasWanted(thumbnail=True, languages=["en"], allow_private_targets=True),
        )
        assert extras.thumbnail
        embedding = Embedding(metadata={"title": PUBLIC["title"]}, thumbnail=extras.thumbnail)
        made = merge(tracks, self.staging, ffmpeg=imageio_ffmpeg.get_ffmpeg_exe(), embedding=embedding)
        description = write_description(PUBLIC, self.staging)
        assert description
        sidecars = {
            ".description": description,
            ".info.json": write_info_json(PUBLIC, self.staging),
            ".jpg": extras.thumbnail,
            ".en.vtt": extras.subtitles[0].path,
        }
        return Files(stem, (f".{made.ext}", made.path), sidecars)

    def content(self) -> dict[str, str]:
        """Relative name -> SHA-256 of every file at the destination."""
        if self.is_s3:
            objects = self.bucket.objects.all()
            found = {each.key.partition("/")[2]: each.get()["Body"].read() for each in objects}
        else:
            root = Path(self.path)
            files = [file for file in sorted(root.rglob("*")) if file.is_file()]
            found = {str(file.relative_to(root)): file.read_bytes() for file in files}
        # what grew when it was killed is not published; it goes away by its age
        published = {name: content for name, content in found.items() if not name.startswith(".publishing/")}
        return {name: hashlib.sha256(content).hexdigest() for name, content in published.items()}

    def unfinished(self) -> list[str]:
        """Keys of uploads that the store keeps the parts of."""
        return [each.object_key for each in self.bucket.multipart_uploads.all()] if self.is_s3 else []

    def is_staged(self) -> bool:
        """Whether another attempt has what it needs."""
        return self.done.exists() or all((self.staging / name).is_file() for name in FORMATS)

    @functools.cached_property
    def bucket(self) -> Any:
        """Not through fsspec: its thread would not live on in forks."""
        import boto3  # type: ignore[import-untyped]  # ships no types

        key, secret, endpoint = (self.options[name] for name in ("key", "secret", "endpoint_url"))
        store = boto3.resource(
            "s3", "us-east-1", endpoint_url=endpoint, aws_access_key_id=key, aws_secret_access_key=secret
        )
        bucket = store.Bucket(self.path.removeprefix("s3://").partition("/")[0])
        bucket.create()
        return bucket


def main() -> None:
    """``python -m tests.dying.publishing GIVEN``, which is JSON."""
    job = Publishing(json.loads(sys.argv[1]))
    for module in ("av", "yt_dlp", "yt_dlp.networking", *(["s3fs"] if job.is_s3 else [])):
        importlib.import_module(module)  # once, and not in every fork
    _copy_and_verify_in_steps()
    if job.is_s3:
        _call_s3_in_steps()
        _send_in_steps()
        object_places.DEAD_UPLOAD_SECONDS = 0.0  # the next attempt comes at once here
    job.afresh()
    run_to_the_end(job.work)
    wanted = job.content()
    for number, what in steps_of(job.work, job.afresh):
        staged = job.is_staged()
        run_to_the_end(job.work)
        found = job.content()
        said = {"step": number, "killed at": what, "same": found == wanted, "there": found, "staged": staged}
        said |= {"unfinished": job.unfinished(), "left": [str(each) for each in job.staging.parent.rglob("*")]}
        sys.stdout.write(f"{json.dumps(said)}\n")


def _copy_and_verify_in_steps() -> None:
    def blocks(path: Path) -> Iterator[bytes]:
        for block in places.blocks_of(path, 64 << 10):
            yield block
            sys.audit(STEP, "in mid copy")

    def verify(path: Path) -> str:
        sys.audit(STEP, "before verifying")
        digest = places.digest_of(path)
        sys.audit(STEP, "after verifying")
        return digest

    vars(local_places).update(blocks_of=blocks, digest_of=verify)


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


def _send_in_steps() -> None:
    """A step whenever so many bytes more have been handed to a socket: inside of parts."""
    from asyncio.selector_events import _SelectorSocketTransport as Transport  # type: ignore[attr-defined]  # private

    sent = 0

    def count(size: int) -> None:
        nonlocal sent
        before, sent = sent, sent + size
        if before // SENT_STEP != sent // SENT_STEP:
            sys.audit(STEP, f"in mid part, {sent // SENT_STEP * SENT_STEP} bytes sent")

    write, writelines = Transport.write, Transport.writelines

    @functools.wraps(write)
    def counted_write(transport: Any, data: Any) -> None:
        write(transport, data)
        count(len(data))

    @functools.wraps(writelines)
    def counted_writelines(transport: Any, lines: Any) -> None:
        given = list(lines)
        writelines(transport, given)
        count(sum(map(len, given)))

    Transport.write, Transport.writelines = counted_write, counted_writelines


main()
