"""The fleet's limits on bandwidth: one step in Redis, shared by processes, changed while they run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.downloading.directories import directory_for
from include.ytdlp_ops.downloading.extras import ExtrasWanted, fetch_extras
from include.ytdlp_ops.downloading.options import Transfer
from include.ytdlp_ops.downloading.runner import Progress, download_format
from include.ytdlp_ops.downloading.watching import Watch
from include.ytdlp_ops.errors import BadInput, ConfigurationError, LeaseLost, WrongKeyType
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.limits import FLEET_BANDWIDTH, Limits
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.settings import Settings
from include.ytdlp_ops.stages.bandwidth import FleetPace
from tests.media_site import MediaSite
from tests.pipeline import Pipeline
from tests.servers import Valkey

MB = 1 << 20
SIZE = 4 * MB
EGRESS = "bandwidth:egress:berlin"


@pytest.fixture
def limits(queue: Queue) -> Limits:
    return Limits(queue.client, queue.keys, patience_seconds=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("media")
    (folder / "big.mp4").write_bytes(os.urandom(SIZE))
    return folder


@pytest.fixture
def site(folder: Path) -> Iterator[MediaSite]:
    with MediaSite(folder) as site:
        yield site


def info(site: MediaSite) -> dict[str, Any]:
    fmt = {"format_id": "1", "url": site.url("big.mp4"), "ext": "mp4", "protocol": "http", "filesize": SIZE}
    return {"id": "v", "title": "v", "formats": [fmt]}


def wait_of(limits: Limits, count: int, ticket: int = 0) -> float:
    (turn,) = limits.spend({FLEET_BANDWIDTH: ticket}, count)
    return turn.wait_seconds


# -- the step -------------------------------------------------------------------------------------------------


def test_what_has_no_limit_waits_for_nothing_and_writes_nothing(queue: Queue, limits: Limits) -> None:
    turns = limits.spend({FLEET_BANDWIDTH: 0, EGRESS: 0}, 10 * MB)

    assert [(turn.wait_seconds, turn.rate) for turn in turns] == [(0, None), (0, None)]
    assert queue.client.keys("*") == []


def test_readers_go_on_in_the_order_in_which_they_came(limits: Limits) -> None:
    limits.set_bandwidth(FLEET_BANDWIDTH, 1000)

    waits = [wait_of(limits, 5000) for _ in range(3)]

    assert waits == [pytest.approx(wait, abs=0.5) for wait in (5, 10, 15)]


def test_what_others_spend_later_does_not_put_off_who_waits(limits: Limits) -> None:
    limits.set_bandwidth(FLEET_BANDWIDTH, 1000)
    (mine,) = limits.spend({FLEET_BANDWIDTH: 0}, 5000)

    limits.spend({FLEET_BANDWIDTH: 0}, 50_000)

    assert wait_of(limits, 0, mine.ticket) == pytest.approx(5, abs=0.5)


def test_a_limit_that_changes_holds_at_once_for_those_who_wait(limits: Limits) -> None:
    limits.set_bandwidth(FLEET_BANDWIDTH, 1000)
    (mine,) = limits.spend({FLEET_BANDWIDTH: 0}, 20_000)
    waits = list[float]()

    for rate in (4000, 500, None):
        limits.set_bandwidth(FLEET_BANDWIDTH, rate)
        waits.append(wait_of(limits, 0, mine.ticket))

    assert waits == [pytest.approx(wait, abs=1) for wait in (5, 40, 0)]


def test_each_bucket_has_its_own_limit(limits: Limits) -> None:
    limits.set_bandwidth(FLEET_BANDWIDTH, 10_000)
    limits.set_bandwidth(EGRESS, 1000)

    turns = limits.spend({FLEET_BANDWIDTH: 0, EGRESS: 0}, 10_000)

    assert [turn.wait_seconds for turn in turns] == [pytest.approx(1, abs=0.2), pytest.approx(10, abs=0.2)]


def test_a_limit_of_nothing_lets_nothing_through_until_it_is_changed(limits: Limits) -> None:
    limits.set_bandwidth(FLEET_BANDWIDTH, 0)

    assert wait_of(limits, 1) == 60


@pytest.mark.parametrize(("text", "wait"), [("20M", 0.5), ("2.5M", 4), ("10k", 60), ("10485760", 1), ("fast", 0)])
def test_a_limit_is_spelled_as_in_a_profile(queue: Queue, limits: Limits, text: str, wait: float) -> None:
    queue.client.hset(queue.keys.limits, FLEET_BANDWIDTH, text)

    assert wait_of(limits, 10 * MB) == pytest.approx(wait, abs=0.1)


def test_a_bucket_that_was_lost_holds_nobody_up(queue: Queue, limits: Limits) -> None:
    limits.set_bandwidth(FLEET_BANDWIDTH, 1000)
    (mine,) = limits.spend({FLEET_BANDWIDTH: 0}, 50_000)

    queue.client.delete(queue.keys.buckets)

    assert wait_of(limits, 0, mine.ticket) == 0


def test_a_quiet_time_saves_nothing_up(queue: Queue, limits: Limits) -> None:
    limits.set_bandwidth(FLEET_BANDWIDTH, 1000)
    queue.client.hset(queue.keys.buckets, FLEET_BANDWIDTH, "5000 5000.000 1")

    assert wait_of(limits, 5000) == pytest.approx(5, abs=0.5)


def test_a_key_of_another_type_is_named_and_left_alone(queue: Queue, limits: Limits) -> None:
    queue.client.set(queue.keys.buckets, "x")

    with pytest.raises(WrongKeyType, match="buckets"):
        limits.spend({FLEET_BANDWIDTH: 0}, 1)

    assert queue.client.get(queue.keys.buckets) == b"x"


@pytest.mark.parametrize(("bucket", "rate"), [("bandwidth:", 1), ("egress:a", 1), (FLEET_BANDWIDTH, -1)])
def test_a_limit_that_can_not_be_is_refused_by_name(limits: Limits, bucket: str, rate: int) -> None:
    with pytest.raises(BadInput, match=bucket):
        limits.set_bandwidth(bucket, rate)


# -- downloads ------------------------------------------------------------------------------------------------


class Workers:
    """Two downloads in processes of their own."""

    def __init__(self, stack: ExitStack, valkey: Valkey, site: MediaSite, folder: Path) -> None:
        self.targets = [directory_for(folder, "v", token) for token in ("one", "two")]
        self.processes = [
            stack.enter_context(
                subprocess.Popen(
                    [
                        *(sys.executable, "-m", "tests.pacing_worker"),
                        valkey.url,
                        "queue2",
                        json.dumps(info(site)),
                        str(at),
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    cwd=Path.cwd(),
                )
            )
            for at in self.targets
        ]
        for process in self.processes:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"

    def go(self) -> float:
        for process in self.processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        return time.monotonic()

    def end(self) -> None:
        for process in self.processes:
            process.communicate(timeout=60)

    def files(self) -> list[bytes]:
        return [next(at.glob("*.mp4")).read_bytes() for at in self.targets]


def test_two_processes_together_stay_within_the_limit(
    queue: Queue, limits: Limits, valkey: Valkey, site: MediaSite, folder: Path, tmp_path: Path
) -> None:
    limits.set_bandwidth(FLEET_BANDWIDTH, 4 * MB)
    with ExitStack() as stack:
        workers = Workers(stack, valkey, site, tmp_path)
        began = workers.go()

        workers.end()

    took = time.monotonic() - began
    accounted = int(queue.client.hget(queue.keys.buckets, FLEET_BANDWIDTH).split()[0])  # type: ignore[union-attr]  # typed as awaitable too
    assert workers.files() == [(folder / "big.mp4").read_bytes()] * 2
    assert 2 * SIZE - 2 * MB <= accounted <= 2 * SIZE, "all but the last batches"
    assert accounted / took <= 4 * MB * 1.1


@pytest.mark.slow
def test_a_limit_that_is_raised_meanwhile_takes_hold(
    limits: Limits, valkey: Valkey, site: MediaSite, folder: Path, tmp_path: Path
) -> None:
    limits.set_bandwidth(FLEET_BANDWIDTH, 64 << 10)  # two minutes for both files
    with ExitStack() as stack:
        workers = Workers(stack, valkey, site, tmp_path)
        began = workers.go()
        first = workers.processes[0].stdout
        assert first
        next(line for line in first if int(line) > 64 << 10)

        limits.set_bandwidth(FLEET_BANDWIDTH, 100 * MB)
        workers.end()

    assert workers.files() == [(folder / "big.mp4").read_bytes()] * 2
    assert time.monotonic() - began < 40


@pytest.mark.parametrize("connections", [1, 4])
def test_while_redis_is_away_a_download_goes_on_at_its_last_speed(
    site: MediaSite, folder: Path, tmp_path: Path, connections: int
) -> None:
    with Valkey(tmp_path / "valkey") as server:
        from include.ytdlp_ops.queues.connecting import address_of, open_client

        queue = Queue(open_client(address_of(server.url)), "dl", patience_seconds=0)
        limits = Limits(queue.client, queue.keys, patience_seconds=0)
        limits.set_bandwidth(FLEET_BANDWIDTH, 2 * MB)
        away_at = list[float]()

        def away(progress: Progress) -> None:
            if not away_at and (progress.downloaded_bytes or 0) >= MB:
                server.stop()
                away_at.append(time.monotonic())

        made = download_format(
            info(site),
            "1",
            directory=directory_for(tmp_path, "v", "one"),
            proxy=None,
            transfer=Transfer(connections=connections),
            paces=[FleetPace(limits, [FLEET_BANDWIDTH])],
            on_progress=away,
        )
        queue.client.close()

    assert made.path.read_bytes() == (folder / "big.mp4").read_bytes()
    assert time.monotonic() - away_at[0] > 0.4 * (SIZE - 2 * MB) / (2 * MB)


def test_a_stop_is_heard_while_the_limit_lets_one_wait(limits: Limits, site: MediaSite, tmp_path: Path) -> None:
    limits.set_bandwidth(FLEET_BANDWIDTH, 0)
    reason, told = LeaseLost("another worker has it"), list[Progress]()

    with pytest.raises(LeaseLost):
        download_format(
            info(site),
            "1",
            directory=directory_for(tmp_path, "v", "one"),
            proxy=None,
            paces=[FleetPace(limits, [FLEET_BANDWIDTH])],
            on_progress=told.append,
            should_stop=lambda: reason if told else None,
        )


def test_thumbnails_count_too(queue: Queue, limits: Limits, site: MediaSite, tmp_path: Path, folder: Path) -> None:
    limits.set_bandwidth(FLEET_BANDWIDTH, 100 * MB)
    (folder / "cover.jpg").write_bytes(b"\xff\xd8\xff" + bytes(50_000))
    watch = Watch(tmp_path, paces=[FleetPace(limits, [FLEET_BANDWIDTH])])
    wanted = ExtrasWanted(thumbnail=True, allow_private_targets=True)

    made = fetch_extras({"thumbnail": site.url("cover.jpg")}, tmp_path, wanted, watch)

    stored: Any = queue.client.hget(queue.keys.buckets, FLEET_BANDWIDTH)
    assert made.thumbnail
    assert int(stored.split()[0]) > 0


def test_a_stop_ends_the_thumbnail_too(site: MediaSite, tmp_path: Path, folder: Path) -> None:
    (folder / "cover.jpg").write_bytes(b"\xff\xd8\xff" + bytes(50_000))
    reason = LeaseLost("another worker has it")
    wanted = ExtrasWanted(thumbnail=True, allow_private_targets=True)

    with pytest.raises(LeaseLost):
        fetch_extras(
            {"thumbnail": site.url("cover.jpg")}, tmp_path, wanted, Watch(tmp_path, should_stop=lambda: reason)
        )


@pytest.mark.slow
def test_a_stage_keeps_the_limits_of_host_fleet_and_egress(pipeline: Pipeline) -> None:
    limits = Limits(pipeline.dl.client, pipeline.dl.keys)
    for bucket in (FLEET_BANDWIDTH, "bandwidth:egress:good1"):
        limits.set_bandwidth(bucket, 100_000)
    pipeline.settings = pipeline.settings.model_copy(update={"host_rate_limit": 150_000})
    pipeline.extract("ok-00000001", formats="299")
    began = time.monotonic()

    ended = pipeline.download()

    stored: Any = pipeline.dl.client.hgetall(pipeline.dl.keys.buckets)
    counts = {bucket.decode(): int(value.split()[0]) for bucket, value in stored.items()}
    size = pipeline.record(pipeline.dl, "youtube:ok-00000001:299")["bytes"]
    assert ended.place is Place.RESULT
    assert list(counts) == [FLEET_BANDWIDTH, "bandwidth:egress:good1"]
    assert all(0.9 * size < count <= size for count in counts.values())
    assert time.monotonic() - began > 0.8 * size / 100_000
    assert [path.stat().st_size for path in pipeline.settings.work_dir.glob(".bandwidth-*")] == [8]


@pytest.mark.parametrize(("text", "rate"), [("20M", 20 * MB), ("", None)])
def test_a_host_s_limit_is_spelled_as_in_a_profile(text: str, rate: int | None) -> None:
    assert Settings.from_env({"YTDLP_OPS_HOST_RATE_LIMIT": text}).host_rate_limit == rate


@pytest.mark.parametrize("text", ["fast", "1"])
def test_a_host_s_limit_that_can_not_be_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"YTDLP_OPS_HOST_RATE_LIMIT='?{text}"):
        Settings.from_env({"YTDLP_OPS_HOST_RATE_LIMIT": text})
