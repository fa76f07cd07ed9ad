"""Where the stage puts a video: destinations that are there, that are not, and that hold another of its name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.downloading.profile_files import load_profiles
from include.ytdlp_ops.downloading.profiles import Destination, Embed, Profile, Profiles, Write
from include.ytdlp_ops.models import PublishItem
from include.ytdlp_ops.queues.keys import QueueKeys, Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.settings import Settings
from include.ytdlp_ops.stages.publish import open_without_connection, publish_files, run_publish
from include.ytdlp_ops.stages.running import Ended, RunningItem
from include.ytdlp_ops.stages.working import Runner, claim_by_hand, work_on
from include.ytdlp_ops.storage.info_store import StoredInfo, open_info_store
from tests.offline_youtube.media import made_once
from tests.offline_youtube.shapes import make_shapes

URL = "https://www.youtube.com/watch?v={}"
Publish = Callable[..., Ended]


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory.getbasetemp() / "shapes", make_shapes)


@pytest.fixture
def v01(queue: Queue) -> Queue:
    return Queue(queue.client, Stage.V01)


@pytest.fixture
def published(v01: Queue, shapes: Path, tmp_path: Path) -> Publish:
    """Publish a format of `SHAPES` as a video, by the stage's own code."""
    settings = Settings(output_dir=tmp_path / "output", work_dir=tmp_path / "work")

    def work(running: RunningItem, video_id: str, shape: str, destination: Destination | None) -> Ended:
        profile = Profile(formats="b", output="%(title)s.%(ext)s", embed=Embed(), write=Write(description=True))
        profiles = Profiles(
            profiles={"best": profile}, destinations={"default": destination} if destination else {}
        )
        info = {"id": video_id, "title": "The same title", "description": f"of {video_id}"}
        staged = tmp_path / "staging" / f"{video_id}-{shape}"
        staged.parent.mkdir(exist_ok=True)
        shutil.copy(shapes / shape, staged)
        made = publish_files(
            running,
            [{"path": str(staged)}],
            stored=StoredInfo(info, None),
            settings=settings,
            profiles=profiles,
            opener=open_without_connection,
        )
        return running.done(made)

    def publish(video_id: str, shape: str, destination: Destination | None = None, **more: Any) -> Ended:
        record = claim_by_hand(v01, URL.format(video_id))
        assert record is not None
        return work_on(
            v01,
            record["id"],
            record["token"],
            lambda running: work(running, video_id, shape, destination),
            runner=Runner(host="here", **more),
        )

    return publish


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("*.description")}


def test_an_item_whose_destination_is_not_mounted_goes_back_before_any_work(
    published: Publish, v01: Queue, tmp_path: Path
) -> None:
    ended = published("aaaaaaaaaaa", "h264.mp4", Destination(path=f"{tmp_path}/nas/videos"))

    assert ended.place is None
    assert f"{tmp_path}/nas/videos' is not there; mount it" in ended.message
    assert v01.client.llen(v01.keys.inbox) == 1
    assert not (tmp_path / "nas").exists()
    assert not (tmp_path / "work").exists()
    assert (tmp_path / "staging" / "aaaaaaaaaaa-h264.mp4").exists()


def test_once_it_is_mounted_the_item_arrives(published: Publish, tmp_path: Path) -> None:
    destination = Destination(path=f"{tmp_path}/nas/videos")
    published("aaaaaaaaaaa", "h264.mp4", destination)
    (tmp_path / "nas" / "videos").mkdir(parents=True)

    ended = published("aaaaaaaaaaa", "h264.mp4", destination)

    assert ended.place == "result"
    assert (tmp_path / "nas" / "videos" / "The same title.mp4").exists()


def test_without_a_destination_the_hosts_output_directory_is_made(published: Publish, tmp_path: Path) -> None:
    ended = published("aaaaaaaaaaa", "h264.mp4")

    assert ended.place == "result"
    assert (tmp_path / "output" / "The same title.mp4").exists()


def test_videos_of_one_title_and_a_template_without_id_keep_their_files_and_sidecars_apart(
    published: Publish, tmp_path: Path
) -> None:
    for video_id, shape in (
        ("aaaaaaaaaaa", "h264.mp4"),
        ("bbbbbbbbbbb", "vp9.webm"),
        ("ccccccccccc", "still.mp4"),
    ):
        assert published(video_id, shape).place == "result"

    assert {path.name for path in (tmp_path / "output").glob("*.[mw]*")} == {
        "The same title.mp4",
        "The same title (2).webm",
        "The same title (3).mp4",
    }
    assert texts(tmp_path / "output") == {
        "The same title.description": "of aaaaaaaaaaa",
        "The same title (2).description": "of bbbbbbbbbbb",
        "The same title (3).description": "of ccccccccccc",
    }


def test_a_video_whose_info_is_gone_keeps_its_title(queue: Queue, shapes: Path, tmp_path: Path) -> None:
    url, job = URL.format("aaaaaaaaaaa"), "youtube:aaaaaaaaaaa:1"
    shutil.copy(shapes / "h264.mp4", tmp_path / "staged.mp4")
    for stage, item_id, made in (
        (Stage.AUTH, url, {"title": "Its title"}),
        (Stage.DL, job, {"path": f"{tmp_path}/staged.mp4"}),
    ):
        queue.client.hset(QueueKeys.of(stage).result, item_id, json.dumps({"id": item_id, **made}))
    settings = Settings(output_dir=tmp_path / "output", work_dir=tmp_path / "work")
    store = open_info_store(f"file://{tmp_path}/infos")
    publish = Queue(queue.client, Stage.PUBLISH)
    item = PublishItem(
        url=url,
        jobs=[job],
        extractor="youtube",
        video_id="aaaaaaaaaaa",
        info_json_path=f"file://{tmp_path}/infos/{'0' * 32}.json",
    )
    record = publish.take(item)
    assert record is not None

    def work(running: RunningItem) -> Ended:
        profiles = load_profiles(None)
        return run_publish(
            running, store=store, settings=settings, profiles=profiles, opener=open_without_connection
        )

    ended = work_on(publish, record["id"], record["token"], work, runner=Runner(host="here"))

    assert ended.place == "result"
    assert (tmp_path / "output" / "Its title [aaaaaaaaaaa].mp4").exists()
    assert not (tmp_path / "staged.mp4").exists()
