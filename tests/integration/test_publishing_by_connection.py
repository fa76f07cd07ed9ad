"""Publishing with the credentials of an Airflow connection, to an S3 over loopback that checks them."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.downloading.profiles import Destination
from include.ytdlp_ops.errors import ConfigurationError, Refusal
from include.ytdlp_ops.hooks.destinations import DestinationHook
from include.ytdlp_ops.operators.working import open_place
from include.ytdlp_ops.queues.keys import Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.stages.running import RunningItem
from include.ytdlp_ops.stages.working import Runner, claim_by_hand, work_on
from include.ytdlp_ops.storage.publishing.destinations import Files, publish
from include.ytdlp_ops.storage.publishing.object_places import PART_BYTES
from tests.servers import free_port

BUCKET, SECRET = "connected", "not-for-logs"
STEM = PurePosixPath("Channel", "Title [id]")
ALL = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}


class Store:
    """moto's server, which takes one key and its secret, and no others."""

    def __init__(self, url: str) -> None:
        import boto3  # type: ignore[import-untyped]  # ships no types

        self.url = url
        given = {"endpoint_url": url, "aws_access_key_id": "any", "aws_secret_access_key": "any"}
        iam = boto3.client("iam", "us-east-1", **given)
        iam.create_user(UserName="archive")
        iam.put_user_policy(UserName="archive", PolicyName="all", PolicyDocument=json.dumps(ALL))
        key = iam.create_access_key(UserName="archive")["AccessKey"]
        self.key, self.secret = key["AccessKeyId"], key["SecretAccessKey"]
        given |= {"aws_access_key_id": self.key, "aws_secret_access_key": self.secret}
        self.client = boto3.client("s3", "us-east-1", **given)
        self.client.create_bucket(Bucket=BUCKET)

    def content(self, key: str) -> bytes:
        read: bytes = self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return read


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    store = Store("http://{}:{}".format(*server.get_host_and_port()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("moto.settings.INITIAL_NO_AUTH_ACTION_COUNT", 0)
        yield store
    server.stop()


Connect = Callable[..., None]


@pytest.fixture
def connect(store: Store, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Make the Airflow connection ``archive``."""
    monkeypatch.setattr("s3fs.S3FileSystem.retries", 1)

    def make(**more: Any) -> None:
        quick = {"connect_timeout": 1, "read_timeout": 1, "retries": {"max_attempts": 1}}
        extra = {"endpoint_url": more.pop("url", store.url), "region_name": "us-east-1", "config_kwargs": quick}
        connection = {"conn_type": "aws", "login": store.key, "password": store.secret, "extra": extra, **more}
        monkeypatch.setenv("AIRFLOW_CONN_ARCHIVE", json.dumps(connection))

    return make


def destination(path: str = f"s3://{BUCKET}/videos", **options: str | int | bool) -> Destination:
    return Destination(path=path, conn_id="archive", options=options)


def files(tmp_path: Path, size: int = 10) -> Files:
    path = tmp_path / "merged.mp4"
    path.write_bytes(os.urandom(size))
    return Files(STEM, (".mp4", path), {})


@pytest.mark.parametrize("size", [1000, 2 * PART_BYTES + 5], ids=["in one go", "in parts"])
def test_a_video_arrives_with_the_connections_credentials(
    connect: Connect, store: Store, tmp_path: Path, size: int
) -> None:
    connect()
    given = files(tmp_path, size)
    name = f"of-{size}"

    (made,) = publish(given, open_place(destination(f"s3://{BUCKET}/{name}")))

    content = given.main[1].read_bytes()
    assert made.uri == f"s3://{BUCKET}/{name}/{STEM}.mp4"
    assert (made.bytes, made.sha256) == (size, hashlib.sha256(content).hexdigest())
    assert store.content(f"{name}/{STEM}.mp4") == content


@pytest.mark.parametrize("wrong", [{"password": SECRET}, {"login": "AKIANOBODY"}], ids=["secret", "key"])
def test_credentials_that_are_refused_name_destination_and_connection(
    connect: Connect, tmp_path: Path, wrong: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    connect(**wrong)

    with pytest.raises(Refusal) as refused:
        publish(files(tmp_path), open_place(destination()))

    assert (refused.value.code, refused.value.outcome) == (Code.CONFIGURATION, Outcome.OPERATOR)
    assert f"'s3://{BUCKET}/videos' refuses this host's credentials" in refused.value.message
    assert "mend the connection 'archive'" in refused.value.message
    assert SECRET not in f"{refused.value!r}{caplog.text}"


def test_a_bucket_that_is_not_there_is_named(connect: Connect, tmp_path: Path) -> None:
    connect()

    with pytest.raises(Refusal, match="'s3://nowhere/videos' has no such bucket or container; make it") as refused:
        publish(files(tmp_path), open_place(destination("s3://nowhere/videos")))

    assert (refused.value.code, refused.value.outcome) == (Code.CONFIGURATION, Outcome.OPERATOR)


def test_a_store_that_does_not_answer_is_tried_again(connect: Connect, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # connections wait in its backlog
        connect(url=f"http://127.0.0.1:{silent.getsockname()[1]}")

        with pytest.raises(Refusal) as refused:
            publish(files(tmp_path), open_place(destination()))

    assert (refused.value.code, refused.value.outcome) == (Code.NETWORK, Outcome.RETRY)
    assert f"'s3://{BUCKET}/videos' did not take the file by the connection 'archive'" in refused.value.message


def test_a_store_that_is_down_is_tried_again(connect: Connect, tmp_path: Path) -> None:
    connect(url=f"http://127.0.0.1:{free_port()}")

    with pytest.raises(Refusal, match=r"'archive' .EndpointConnectionError.; it is tried again") as refused:
        publish(files(tmp_path), open_place(destination()))

    assert (refused.value.code, refused.value.outcome) == (Code.NETWORK, Outcome.RETRY)


def test_a_connection_that_is_not_there_is_named_and_nobody_goes_on_without_credentials() -> None:
    with pytest.raises(ConfigurationError) as refused:
        open_place(destination())

    assert f"the destination 's3://{BUCKET}/videos' can't be opened" in str(refused.value)
    assert "there is no Airflow connection 'archive'; make it, or mend the destination's" in str(refused.value)


def test_a_protocol_without_a_provider_names_the_way_out(connect: Connect) -> None:
    connect()

    with pytest.raises(ConfigurationError, match="'gs://bucket' can't be opened by the connection 'archive': its"):
        open_place(destination("gs://bucket"))


def test_options_that_the_provider_does_not_take_are_refused_without_the_connections_fields(
    connect: Connect, tmp_path: Path
) -> None:
    connect(password=SECRET)

    with pytest.raises(Refusal) as refused:
        publish(files(tmp_path), open_place(destination(read_timeouts=3)))

    assert (refused.value.code, refused.value.outcome) == (Code.CONFIGURATION, Outcome.OPERATOR)
    assert "mend its path, its options or the connection 'archive'" in refused.value.message
    assert SECRET not in f"{refused.value!r}"


def test_fields_that_cant_be_used_are_refused_without_their_text(connect: Connect) -> None:
    connect(login=None, password=None, extra={"profile_name": f"none-{SECRET}"})

    with pytest.raises(ConfigurationError) as refused:
        open_place(destination())

    assert "'s3://connected/videos' can't be opened by the connection 'archive' (ProfileNotFound)" in str(refused)
    assert SECRET not in str(refused)


@pytest.mark.parametrize(
    ("url", "wrong", "place", "handed_back"),
    [(None, {"password": SECRET}, None, 1), (f"http://127.0.0.1:{free_port()}", {}, "fail", 0)],
    ids=["operator: handed back", "network: to be tried again"],
)
def test_an_item_ends_as_the_error_says(
    connect: Connect,
    store: Store,
    queue: Queue,
    tmp_path: Path,
    url: str | None,
    wrong: dict[str, str],
    place: str | None,
    handed_back: int,
) -> None:
    connect(url=url or store.url, **wrong)
    v01 = Queue(queue.client, Stage.V01)
    record = claim_by_hand(v01, "https://www.youtube.com/watch?v=dQw4w9WgXcQ")
    assert record is not None

    def work(_: RunningItem) -> Any:
        return publish(files(tmp_path), open_place(destination()))

    ended = work_on(v01, record["id"], record["token"], work, runner=Runner(host="here"))

    assert (ended.place, queue.client.llen(v01.keys.inbox)) == (place, handed_back)
    assert "'archive'" in ended.message
    assert SECRET not in ended.message


def test_the_hook_is_one_of_airflows_kind(connect: Connect, store: Store) -> None:
    connect()

    assert DestinationHook("archive").get_conn().login == store.key
