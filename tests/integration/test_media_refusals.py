"""A 403 of media, told apart: the URL's end, another address, a broken client, and what is really forbidden."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.media_refusals import MediaRefusals
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.records import Record
from include.ytdlp_ops.queues.recovery import sweep
from tests.pipeline import Pipeline
from tests.queueing import make_due
from tests.servers import Valkey


def downloaded(pipeline: Pipeline, video_id: str) -> Record:
    """The record in dl of one format of a video, after its first download."""
    pipeline.extract(video_id, formats="140")
    pipeline.download()
    return pipeline.record(pipeline.dl, f"youtube:{video_id}:140")


def told(record: Record) -> tuple[Any, Any, Any]:
    return record["place"], record["code"], record["retryable"]


def test_a_url_that_has_ended_gets_a_fresh_one(pipeline: Pipeline) -> None:
    record = downloaded(pipeline, "expired-001")

    assert told(record) == (Place.FAIL, Code.URL_EXPIRED, True)


def test_what_is_really_forbidden_is_skipped(pipeline: Pipeline) -> None:
    record = downloaded(pipeline, "m403-000001")

    assert told(record) == (Place.SKIPPED, Code.MEDIA_403, False)


def test_a_url_that_is_bound_to_another_address_gets_a_fresh_one(pipeline: Pipeline) -> None:
    pipeline.extract("ok-00000001", formats="140")
    _lies_at_another_exit(pipeline, "good2")
    pipeline.extract("ok-00000002", formats="140")
    _is_bound_to(pipeline, "10.9.9.9")  # what the site saw of the egress's new exit

    pipeline.download()

    record = pipeline.record(pipeline.dl, "youtube:ok-00000001:140")
    assert told(record) == (Place.FAIL, Code.HTTP_403, True)
    assert "'good1' has another address now" in record["message"]
    assert "10.9.9.9" not in json.dumps(record)


def test_the_fresh_url_serves_the_address_that_the_egress_has_now(pipeline: Pipeline) -> None:
    pipeline.extract("ok-00000001", formats="140")
    _lies_at_another_exit(pipeline, "good2")
    _is_bound_to(pipeline, "10.9.9.9")
    pipeline.download()
    make_due(pipeline.dl)
    sweep(pipeline.dl)

    pipeline.extract_next()
    pipeline.download()

    assert pipeline.record(pipeline.dl, "youtube:ok-00000001:140")["place"] == Place.RESULT


def test_a_client_that_is_refused_one_video_after_another_is_broken(pipeline: Pipeline) -> None:
    records = [downloaded(pipeline, f"m403-00000{number}") for number in range(1, 4)]

    assert [told(record)[:2] for record in records] == [
        (Place.SKIPPED, Code.MEDIA_403),
        (Place.SKIPPED, Code.MEDIA_403),
        (Place.FAIL, Code.CLIENT_BROKEN),
    ]
    assert records[2]["retryable"] is True
    assert "3 videos in a row" in records[2]["message"]


def test_a_video_that_is_served_speaks_for_its_client(pipeline: Pipeline) -> None:
    for video_id in ("m403-000001", "m403-000002", "ok-00000001"):
        downloaded(pipeline, video_id) if video_id.startswith("m") else _had(pipeline, video_id)

    record = downloaded(pipeline, "m403-000003")

    assert told(record)[:2] == (Place.SKIPPED, Code.MEDIA_403)


def test_several_formats_of_one_video_count_once(queue: Queue) -> None:
    refusals = MediaRefusals(queue.client, queue.keys)

    counts = [refusals.refused("web", video) for video in ("one", "one", "two", "two")]

    assert counts == [1, 1, 2, 2]


def test_without_redis_nothing_is_remembered_and_nothing_fails(tmp_path: Path) -> None:
    from include.ytdlp_ops.queues.connecting import address_of, open_client

    with Valkey(tmp_path) as server:
        queue = Queue(open_client(address_of(server.url)), "dl")
    refusals = MediaRefusals(queue.client, queue.keys)

    refusals.extracted("good1", "10.0.0.1")
    refusals.served("web")

    assert (refusals.address_of("good1"), refusals.refused("web", "one")) == (None, 1)
    queue.client.close()


def _had(pipeline: Pipeline, video_id: str) -> None:
    pipeline.extract(video_id, formats="140")
    assert pipeline.download().place is Place.RESULT


def _lies_at_another_exit(pipeline: Pipeline, egress: str) -> None:
    """As a rotating proxy does it: what one exit extracted is asked for through another."""
    for path in (pipeline.home / "infos").glob("*.json"):
        stored = json.loads(path.read_text())
        stored["ytdlp_ops"]["proxy"] = pipeline.site.proxy(egress)
        path.write_text(json.dumps(stored))


def _is_bound_to(pipeline: Pipeline, address: str) -> None:
    """What the newest extraction would have found; the offline site gives one egress one address for good."""
    MediaRefusals(pipeline.dl.client, pipeline.dl.keys).extracted("good1", address)


@pytest.mark.parametrize("video_id", ["ok-00000001"])
def test_each_extraction_tells_the_address_of_its_egress(pipeline: Pipeline, video_id: str) -> None:
    pipeline.extract(video_id, formats="140")

    address = MediaRefusals(pipeline.dl.client, pipeline.dl.keys).address_of("good1")

    assert address is not None
    assert address.startswith("10.")
