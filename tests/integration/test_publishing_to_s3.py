"""Publishing to an S3 that answers over loopback: whole, verified, exclusive, and every way it can fail."""

from __future__ import annotations

import hashlib
import os
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import Refusal
from include.ytdlp_ops.storage.publishing.destinations import Files, Place, Published, open_destination, publish
from include.ytdlp_ops.storage.publishing.object_places import PART_BYTES

SECRET = "not-for-logs"
STEM = PurePosixPath("Channel", "Title [id]")


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """moto's server; its address."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


Opened = Callable[..., Place]
QUICK = {"connect_timeout": 1, "read_timeout": 1, "retries": {"max_attempts": 1}}


@pytest.fixture
def opened(s3: str) -> Opened:
    """A destination in a bucket of that name."""

    def open_bucket(bucket: str, endpoint: str = s3, **more: Any) -> Place:
        options = {"key": "test", "secret": SECRET, "endpoint_url": endpoint, "config_kwargs": QUICK}
        return open_destination(f"s3://{bucket}/videos", {**options, **more})

    return open_bucket


@pytest.fixture
def store(s3: str) -> Any:
    """What is asked of the store by others than us."""
    import boto3  # type: ignore[import-untyped]  # ships no types

    return boto3.client("s3", "us-east-1", endpoint_url=s3, aws_access_key_id="o", aws_secret_access_key="o")


@pytest.fixture
def bucket(store: Any, request: pytest.FixtureRequest) -> str:
    name = f"b{hashlib.sha256(request.node.name.encode()).hexdigest()[:20]}"
    store.create_bucket(Bucket=name)
    return name


def a_file(tmp_path: Path, size: int, name: str = "merged.mp4") -> Path:
    path = tmp_path / name
    path.write_bytes(os.urandom(size))
    return path


def files(path: Path, **sidecars: Path) -> Files:
    return Files(STEM, (".mp4", path), {f".{ending}": sidecar for ending, sidecar in sidecars.items()})


def object_of(made: Published) -> dict[str, str]:
    bucket, _, key = made.uri.removeprefix("s3://").partition("/")
    return {"Bucket": bucket, "Key": key}


def content(store: Any, made: Published) -> bytes:
    read: bytes = store.get_object(**object_of(made))["Body"].read()
    return read


def objects(store: Any, bucket: str) -> list[str]:
    return [each["Key"] for each in store.list_objects_v2(Bucket=bucket).get("Contents", [])]


def unfinished(store: Any, bucket: str) -> list[str]:
    """Names of uploads in parts that were neither completed nor aborted."""
    return [each["Key"] for each in store.list_multipart_uploads(Bucket=bucket).get("Uploads", [])]


@pytest.mark.parametrize("size", [0, 1000, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES + 5])
def test_a_file_arrives_whole_in_parts_where_it_is_large(
    opened: Opened, bucket: str, store: Any, tmp_path: Path, size: int
) -> None:
    path = a_file(tmp_path, size)

    made = publish(files(path), opened(bucket))

    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert made == [Published(f"s3://{bucket}/videos/Channel/Title [id].mp4", size, digest)]
    assert content(store, made[0]) == path.read_bytes()
    assert path.exists()
    etag = store.head_object(**object_of(made[0]))["ETag"].strip('"')
    assert ("-" in etag) is (size >= PART_BYTES)


Step = Callable[[str, dict[str, Any]], None]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Step], None]:
    """Have something done before each call to S3, of destinations opened afterwards, and freshly."""

    def before_each(step: Step) -> None:
        from fsspec.asyn import sync_wrapper  # type: ignore[import-untyped]  # ships no types
        from s3fs import S3FileSystem  # type: ignore[import-untyped]  # ships no types

        original = S3FileSystem._call_s3

        async def call(fs: Any, method: str, *args: Any, **more: Any) -> Any:
            step(method, more)
            return await original(fs, method, *args, **more)

        monkeypatch.setattr(S3FileSystem, "_call_s3", call)
        monkeypatch.setattr(S3FileSystem, "call_s3", sync_wrapper(call))

    return before_each


def test_the_stores_own_checksum_saves_reading_the_file_back(
    opened: Opened, bucket: str, tmp_path: Path, asked: Callable[[Step], None]
) -> None:
    calls = list[str]()
    asked(lambda method, _: calls.append(method))

    publish(files(a_file(tmp_path, 2 * PART_BYTES + 7)), opened(bucket, skip_instance_cache=True))

    assert calls.count("upload_part") == 3
    assert "get_object" not in calls


def test_publishing_again_changes_nothing(opened: Opened, bucket: str, store: Any, tmp_path: Path) -> None:
    path, sidecar = a_file(tmp_path, PART_BYTES + 9), a_file(tmp_path, 50, "info.json")
    first = publish(files(path, json=sidecar), opened(bucket))
    before = store.head_object(**object_of(first[0]))["LastModified"]

    second = publish(files(path, json=sidecar), opened(bucket))

    assert second == first
    assert store.head_object(**object_of(first[0]))["LastModified"] == before
    assert len(objects(store, bucket)) == 2


def test_another_video_of_that_name_is_numbered_and_its_sidecars_too(
    opened: Opened, bucket: str, tmp_path: Path
) -> None:
    destination = opened(bucket)
    publish(files(a_file(tmp_path, 100, "a"), json=a_file(tmp_path, 10, "aj")), destination)

    made = publish(files(a_file(tmp_path, 100, "b"), json=a_file(tmp_path, 10, "bj")), destination)

    assert [one.uri.rpartition("/")[2] for one in made] == ["Title [id] (2).mp4", "Title [id] (2).json"]


def test_a_bucket_that_is_not_there_is_the_operators_matter(opened: Opened, tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        publish(files(a_file(tmp_path, 10)), opened("no-such-bucket"))

    assert (refused.value.code, refused.value.outcome) == (Code.CONFIGURATION, Outcome.OPERATOR)
    assert "'s3://no-such-bucket/videos' has no such bucket" in refused.value.message


class Answering(socketserver.ThreadingTCPServer):
    """Takes what is sent and answers every request in one way: a refusal, nothing at all, or a cut."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, answer: bytes | None, *, hang: bool = False) -> None:
        self.answer, self.hang = answer, hang
        self.ending = threading.Event()
        super().__init__(("127.0.0.1", 0), AnsweringHandler)

    def __enter__(self) -> Answering:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.ending.set()
        self.shutdown()
        self.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class AnsweringHandler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        server = self.server
        assert isinstance(server, Answering)
        self.request.recv(65536)
        if server.hang:
            server.ending.wait(30)
        if server.answer:
            self.request.sendall(server.answer)
        self.request.shutdown(socket.SHUT_RDWR)


FORBIDDEN = (
    b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/xml\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)


@pytest.mark.parametrize(
    ("answer", "hang", "code", "outcome"),
    [
        (FORBIDDEN, False, Code.CONFIGURATION, Outcome.OPERATOR),
        (None, True, Code.NETWORK, Outcome.RETRY),
        (None, False, Code.NETWORK, Outcome.RETRY),
    ],
    ids=["wrong credentials", "slow", "cut"],
)
def test_a_store_that_fails_is_named_with_the_outcome_and_without_secrets(
    opened: Opened,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: bytes | None,
    hang: bool,
    code: Code,
    outcome: Outcome,
) -> None:
    monkeypatch.setattr("s3fs.S3FileSystem.retries", 1)
    with Answering(answer, hang=hang) as server, pytest.raises(Refusal) as refused:
        publish(files(a_file(tmp_path, 10)), opened("bucket", server.url))

    assert (refused.value.code, refused.value.outcome) == (code, outcome)
    assert "s3://bucket/videos" in refused.value.message
    assert SECRET not in f"{refused.value!r} {refused.value.__cause__!r}"


def test_a_file_that_breaks_off_in_mid_upload_does_not_appear(
    opened: Opened, bucket: str, store: Any, tmp_path: Path, asked: Callable[[Step], None]
) -> None:
    calls = list[str]()

    def break_off(method: str, _: dict[str, Any]) -> None:
        calls.append(method)
        if method == "upload_part" and calls.count(method) == 2:
            raise ConnectionResetError

    asked(break_off)

    with pytest.raises(Refusal) as refused:
        publish(files(a_file(tmp_path, 3 * PART_BYTES)), opened(bucket, skip_instance_cache=True))

    assert refused.value.code is Code.NETWORK
    assert objects(store, bucket) == []
    assert unfinished(store, bucket) == []


def test_what_arrives_damaged_is_not_taken_for_published(
    opened: Opened, bucket: str, tmp_path: Path, asked: Callable[[Step], None]
) -> None:
    def damage(method: str, given: dict[str, Any]) -> None:
        if method == "put_object":
            given["Body"] = b"x" * 3000

    asked(damage)

    with pytest.raises(Refusal) as refused:
        publish(files(a_file(tmp_path, 3000)), opened(bucket, skip_instance_cache=True))

    assert (refused.value.code, refused.value.outcome) == (Code.NETWORK, Outcome.RETRY)
    assert "holds 3000 bytes that are not the 3000 bytes that were sent" in refused.value.message


@pytest.mark.parametrize("size", [3000, PART_BYTES + 7], ids=["in one go", "in parts"])
def test_a_name_taken_while_ours_is_being_sent_is_left_to_the_other(
    opened: Opened, bucket: str, store: Any, tmp_path: Path, asked: Callable[[Step], None], size: int
) -> None:
    path, calls = a_file(tmp_path, size), list[str]()
    key = {"Bucket": bucket, "Key": "videos/Channel/Title [id].mp4"}

    def take_the_name(method: str, _: dict[str, Any]) -> None:
        calls.append(method)
        if method in ("put_object", "complete_multipart_upload") and calls.count(method) == 1:
            store.put_object(**key, Body=b"another video")

    asked(take_the_name)

    made = publish(files(path), opened(bucket, skip_instance_cache=True))

    assert made[0].uri.endswith("Title [id] (2).mp4")
    assert content(store, made[0]) == path.read_bytes()
    assert store.get_object(**key)["Body"].read() == b"another video"
    assert unfinished(store, bucket) == []


def begun_upload(store: Any, bucket: str, key: str) -> None:
    """What a killed attempt leaves."""
    begun = store.create_multipart_upload(Bucket=bucket, Key=key)
    store.upload_part(Bucket=bucket, Key=key, UploadId=begun["UploadId"], PartNumber=1, Body=b"x" * 1000)


@pytest.mark.parametrize(("idle_seconds", "left"), [(0.0, []), (3600.0, ["videos/Channel/Title [id].mp4"])])
def test_what_a_killed_attempt_sent_of_the_object_is_aborted_and_not_what_may_live(
    opened: Opened,
    bucket: str,
    store: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    idle_seconds: float,
    left: list[str],
) -> None:
    monkeypatch.setattr("include.ytdlp_ops.storage.publishing.object_places.DEAD_UPLOAD_SECONDS", idle_seconds)
    for key in ("videos/Channel/Title [id].mp4", "videos/Channel/Title [id].mp4.other"):
        begun_upload(store, bucket, key)

    publish(files(a_file(tmp_path, PART_BYTES + 1)), opened(bucket))

    assert unfinished(store, bucket) == [*left, "videos/Channel/Title [id].mp4.other"]
    assert objects(store, bucket) == ["videos/Channel/Title [id].mp4"]


def test_an_upload_that_another_has_aborted_is_sent_again(
    opened: Opened, bucket: str, tmp_path: Path, asked: Callable[[Step], None]
) -> None:
    from botocore.exceptions import ClientError  # type: ignore[import-untyped]  # ships no types
    from s3fs.errors import translate_boto_error  # type: ignore[import-untyped]  # ships no types

    def as_s3_says_it(method: str, _: dict[str, Any]) -> None:
        if method == "upload_part":  # moto would fail by itself, with 500
            said = {"Error": {"Code": "NoSuchUpload", "Message": "The specified upload does not exist."}}
            raise translate_boto_error(ClientError(said, "UploadPart"))

    asked(as_s3_says_it)

    with pytest.raises(Refusal) as refused:
        publish(files(a_file(tmp_path, PART_BYTES + 1)), opened(bucket, skip_instance_cache=True))

    assert (refused.value.code, refused.value.outcome) == (Code.NETWORK, Outcome.RETRY)
    assert "(NoSuchUpload); it is tried again" in refused.value.message


def test_a_source_that_is_gone_is_this_hosts_trouble(opened: Opened, bucket: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        publish(files(tmp_path / "gone"), opened(bucket))

    assert refused.value.code is Code.LOCAL_IO


def test_a_name_that_no_bucket_has_is_the_operators_matter(opened: Opened, tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        publish(files(a_file(tmp_path, 10)), opened("no bucket"))

    assert (refused.value.code, refused.value.outcome) == (Code.CONFIGURATION, Outcome.OPERATOR)
    assert "'s3://no bucket/videos' can't be used (ParamValidationError)" in refused.value.message
