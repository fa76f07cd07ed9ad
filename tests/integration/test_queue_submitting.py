"""Submit: into the inbox once, whatever happens to the reply."""

from __future__ import annotations

import json

import pytest

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.models import MAX_ELEMENT_BYTES, UrlItem
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.queue import Queue
from tests.queueing import URL, begun, claimed, everything, inbox_of, record_in, url_of, where


def test_nothing_submitted_is_nothing_written(queue: Queue) -> None:
    assert queue.submit([]) == []
    assert everything(queue.client) == {}


def test_items_wait_in_the_order_of_submission(queue: Queue) -> None:
    answers = queue.submit([url_of(1), UrlItem(url=url_of(2)), b'{"url":"%s"}' % url_of(3).encode()])

    assert answers == ["queued"] * 3
    assert [element["url"] for element in inbox_of(queue)] == [url_of(1), url_of(2), url_of(3)]
    assert inbox_of(queue)[0]["submitted_at"].endswith("Z")


def test_an_urgent_item_is_claimed_first(queue: Queue) -> None:
    queue.submit([url_of(1)])
    queue.submit([url_of(2)], urgent=True)

    assert queue.claim(1).records[0]["url"] == url_of(2)


def test_one_request_id_submits_once(queue: Queue) -> None:
    first = queue.submit([url_of(1), url_of(2)], request_id="r")
    again = queue.submit([url_of(1), url_of(2)], request_id="r")

    assert first == again == ["queued", "queued"]
    assert len(inbox_of(queue)) == 2


def test_many_batches_under_one_request_id_go_in_once(queue: Queue) -> None:
    items = [url_of(number) for number in range(1200)]

    queue.submit(items, request_id="r")
    queue.submit(items, request_id="r")

    assert [element["url"] for element in inbox_of(queue)] == items


def test_one_bad_element_keeps_all_out(queue: Queue) -> None:
    with pytest.raises(BadInput, match="neither"):
        queue.submit([url_of(1), "ftp://x"])

    assert everything(queue.client) == {}


def test_an_item_that_would_be_too_long_to_claim_is_refused_at_once(queue: Queue) -> None:
    long = UrlItem.model_validate({"url": URL, "note": "x" * MAX_ELEMENT_BYTES})

    with pytest.raises(BadInput, match="at most 65536"):
        queue.submit([long])


def test_a_copy_of_a_running_item_is_counted_on_it(queue: Queue) -> None:
    begun(queue)

    assert queue.submit([URL, "dQw4w9WgXcQ"]) == ["running", "running"]
    assert where(queue) == ["progress"]
    assert record_in(queue, Place.PROGRESS)["duplicates"] == 2
    assert queue.counters()["copies_dropped"] == 2


def test_what_is_done_is_told_and_counted(queue: Queue) -> None:
    queue.finish(begun(queue), Place.RESULT, {"path": "/x"})

    assert [queue.submit([URL]), queue.submit([URL])] == [["already_done"]] * 2
    assert record_in(queue, Place.RESULT)["submitted_again"] == 2
    assert record_in(queue, Place.RESULT)["path"] == "/x"
    assert where(queue) == ["result"]


@pytest.mark.parametrize("element", [{"url": URL, "force": True}, {"url": URL, "formats": "ba"}])
def test_what_is_done_is_queued_again_by_force_or_for_other_formats(
    queue: Queue, element: dict[str, object]
) -> None:
    queue.finish(begun(queue), Place.RESULT, {})

    assert queue.submit([json.dumps(element)]) == ["queued"]


def test_a_running_item_asked_for_other_formats_is_queued(queue: Queue) -> None:
    claimed(queue)

    assert queue.submit([UrlItem(url=URL, formats="ba")]) == ["queued"]
    assert where(queue) == ["inbox", "progress"]
