"""Rows of `pending_jobs` reach the queue once each, and hear what became of them, whatever is killed when."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
import sqlalchemy as sa

from include.ytdlp_ops.ledger import intake
from include.ytdlp_ops.ledger.answering import Queues, write_back
from include.ytdlp_ops.ledger.connecting import open_engine
from include.ytdlp_ops.ledger.intake import take_in
from include.ytdlp_ops.ledger.schema import pending_jobs
from include.ytdlp_ops.models import PublishItem
from include.ytdlp_ops.queues.connecting import address_of, connect
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.queue import Queue
from tests.killed import is_killed_at
from tests.queueing import URL, begun, failed, format_job, inbox_of, url_of
from tests.servers import Valkey


def insert(ledger: sa.Engine, *urls: str, **columns: Any) -> None:
    """As a producer does, in plain SQL."""
    with ledger.begin() as connection:
        for start in range(0, len(urls), 500):
            part = [{"url": url, **columns} for url in urls[start : start + 500]]
            connection.execute(sa.insert(pending_jobs), part)


def rows_of(ledger: sa.Engine) -> list[Any]:
    with ledger.connect() as connection:
        return list(connection.execute(sa.select(pending_jobs).order_by(pending_jobs.c.id)).all())


def left_locked(ledger: sa.Engine, seconds: float) -> None:
    """Let the locks be so old."""
    with ledger.begin() as connection:
        locked = sa.update(pending_jobs).where(pending_jobs.c.status == "locked")
        connection.execute(locked.values(locked_time=datetime.now(UTC) - timedelta(seconds=seconds)))


def test_a_row_of_plain_sql_becomes_an_item(queue: Queue, ledger: sa.Engine) -> None:
    with ledger.begin() as connection:
        connection.execute(sa.text("INSERT INTO pending_jobs (url) VALUES ('dQw4w9WgXcQ')"))

    taken = take_in(queue, ledger)

    (item,) = inbox_of(queue)
    (row,) = rows_of(ledger)
    assert (taken.submitted, taken.refused) == (1, 0)
    assert (item["id"], item["submitted_by"], item["source"]) == (URL, "pending_jobs", f"pending_jobs:{row.id}")
    assert (row.status, row.item_id, row.completed_time) == ("working", URL, None)
    assert abs(datetime.now(UTC) - row.pending_time) < timedelta(minutes=1)
    assert row.pending_time <= row.locked_time <= row.working_time


def test_tags_and_extra_data_go_along(queue: Queue, ledger: sa.Engine) -> None:
    extra = {"formats": "18", "profile": "best", "mine": {"deep": 1}, "submitted_by": "me"}
    insert(ledger, URL, tags='["a", "\u00fc"]', extra=json.dumps(extra))

    take_in(queue, ledger)

    (item,) = inbox_of(queue)
    assert {name: item[name] for name in ("tags", *extra)} == {"tags": ["a", "\u00fc"], **extra}


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"url": "not a URL"}, "holds blanks"),
        ({"url": ""}, "the URL is empty"),
        ({"url": URL, "tags": "a,b"}, "tags is no JSON"),
        ({"url": URL, "tags": '{"a": 1}'}, "tags is a JSON dict, not a list"),
        ({"url": URL, "extra": '{"formats": 7}'}, "formats"),
        ({"url": URL, "extra": json.dumps({"x": ["y" * 8000] * 9})}, "at most 65536"),
    ],
)
def test_a_row_that_is_no_item_says_why_and_the_rest_goes_on(
    queue: Queue, ledger: sa.Engine, columns: dict[str, Any], named: str
) -> None:
    insert(ledger, "", **columns)
    insert(ledger, url_of(1))

    taken = take_in(queue, ledger)

    bad, good = rows_of(ledger)
    assert (taken.submitted, taken.refused) == (1, 1)
    assert (bad.status, json.loads(bad.result)["code"], good.status) == ("fail", "bad_input", "working")
    assert named in json.loads(bad.result)["message"]


def test_no_more_rows_are_taken_than_asked_for(queue: Queue, ledger: sa.Engine) -> None:
    insert(ledger, *[url_of(number) for number in range(1100)])

    first, rest = take_in(queue, ledger, most=700), take_in(queue, ledger, most=5000)

    assert (first.submitted, rest.submitted) == (700, 400)
    assert [item["id"] for item in inbox_of(queue)] == [url_of(number) for number in range(1100)]


def test_an_intake_killed_at_any_step_takes_each_row_once(
    queue: Queue, ledger: sa.Engine, ledger_url: str, valkey: Valkey
) -> None:
    urls = [url_of(number) for number in range(40)]

    def again() -> None:
        engine, client = open_engine(ledger_url), connect(address_of(valkey.url))
        take_in(Queue(client, "auth"), engine)
        engine.dispose()
        client.close()

    for number in count(1):
        queue.client.flushall()
        with ledger.begin() as connection:
            connection.execute(sa.delete(pending_jobs))
        insert(ledger, *urls)
        if not is_killed_at(number, again):
            break
        left_locked(ledger, 61)
        again()
        assert [item["id"] for item in inbox_of(queue)] == urls
        assert {row.status for row in rows_of(ledger)} == {"working"}
    assert number > 8


def test_a_request_that_the_queue_has_forgotten_is_not_made_again_for_what_came(
    queue: Queue, ledger: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(ledger, url_of(1), url_of(2))
    with monkeypatch.context() as patched:
        patched.setattr(intake, "_submit", lambda *_: None)  # dies before it
        take_in(queue, ledger)
    first = rows_of(ledger)[0]
    failed(queue, json.dumps({"url": first.url, "source": f"pending_jobs:{first.id}"}), retryable=False)
    left_locked(ledger, 7200)

    take_in(queue, ledger)

    assert [item["id"] for item in inbox_of(queue)] == [url_of(2)]
    assert [row.status for row in rows_of(ledger)] == ["working", "working"]


def test_several_intakes_at_once_never_take_one_row_twice(
    queue: Queue, ledger: sa.Engine, ledger_url: str, valkey: Valkey
) -> None:
    urls = [url_of(number) for number in range(3000)]
    insert(ledger, *urls)
    ledger.dispose()  # no connection is shared with the children

    children = []
    for _ in range(4):
        if not (child := os.fork()):
            try:
                engine, client = open_engine(ledger_url), connect(address_of(valkey.url))
                take_in(Queue(client, "auth"), engine, most=10_000)
            finally:
                os._exit(0)
        children.append(child)
    codes = [os.waitpid(child, 0)[1] for child in children]

    assert codes == [0, 0, 0, 0]
    assert sorted(item["id"] for item in inbox_of(queue)) == urls
    assert {row.status for row in rows_of(ledger)} == {"working"}
    assert len({row.request_id for row in rows_of(ledger)}) >= 6


# -- what became of them ---------------------------------------------------------------------------------------
def v02(queue: Queue, until: str = "dl") -> Queues:
    return Queues.of(queue, until=until)


def finish(queue: Queue, place: Place, **outcome: Any) -> None:
    (record,) = queue.claim(1).records
    queue.finish(queue.begin(record["id"], record["token"], host="here"), place, outcome)


def auth_done(queue: Queue, *formats: str) -> Queue:
    """The URL became format jobs; the queue of those."""
    jobs = [format_job(format_id) for format_id in formats]
    (record,) = queue.claim(1).records
    begun_record = queue.begin(record["id"], record["token"], host="here")
    result = {"jobs": [job.item_id for job in jobs]}
    queue.finish(begun_record, Place.RESULT, result, push=[(Stage.DL, job) for job in jobs])
    return Queue(queue.client, Stage.DL)


def test_a_row_hears_of_its_files_when_all_formats_are_done(queue: Queue, ledger: sa.Engine) -> None:
    insert(ledger, URL)
    take_in(queue, ledger)
    dl = auth_done(queue, "140", "299")
    finish(dl, Place.RESULT, path="/x.m4a", bytes=5)

    early = write_back(v02(queue), ledger)
    finish(dl, Place.RESULT, path="/x.mp4", bytes=7)
    completed = write_back(v02(queue), ledger)

    (row,) = rows_of(ledger)
    assert (early, completed) == (0, 1)
    assert (row.status, json.loads(row.output)) == ("result", ["/x.m4a", "/x.mp4"])
    assert [file["bytes"] for file in json.loads(row.result)["files"]] == [5, 7]
    assert row.completed_time >= row.working_time >= row.pending_time


def test_a_row_of_v01_hears_of_all_its_files(queue: Queue, ledger: sa.Engine) -> None:
    v01 = Queue(queue.client, Stage.V01)
    insert(ledger, URL)
    take_in(v01, ledger)
    finish(v01, Place.RESULT, files=[{"path": "/a", "bytes": 1}, {"path": "/b", "bytes": 2}])

    write_back(Queues.of(v01, until="dl"), ledger)

    (row,) = rows_of(ledger)
    assert json.loads(row.output) == ["/a", "/b"]


@pytest.mark.parametrize(
    ("place", "outcome", "status"),
    [
        (Place.SKIPPED, {"code": "private", "message": "sign in"}, "skipped"),
        (Place.FAIL, {"code": "network", "retryable": False}, "fail"),
        (Place.FAIL, {"code": "network", "retryable": True}, "working"),
    ],
)
def test_a_row_hears_why_not_once_that_is_final(
    queue: Queue, ledger: sa.Engine, place: Place, outcome: dict[str, Any], status: str
) -> None:
    insert(ledger, URL)
    take_in(queue, ledger)
    finish(queue, place, **outcome)

    write_back(v02(queue), ledger)

    (row,) = rows_of(ledger)
    assert row.status == status
    assert row.result is None or json.loads(row.result)["code"] == outcome["code"]


def test_a_format_that_went_back_to_auth_is_still_waited_for(queue: Queue, ledger: sa.Engine) -> None:
    from include.ytdlp_ops.queues.recovery import sweep

    insert(ledger, URL)
    take_in(queue, ledger)
    dl = auth_done(queue, "140", "299")
    finish(dl, Place.RESULT, path="/x.m4a")
    write_back(v02(queue), ledger)
    (record,) = dl.claim(1).records
    again = dl.begin(record["id"], record["token"], host="here")
    dl.finish(again, Place.FAIL, {"code": "url_expired", "retryable": True}, due_in_ms=0)
    sweep(dl)
    auth_done(queue, "299")

    early = write_back(v02(queue), ledger)
    finish(dl, Place.RESULT, path="/x.mp4")
    write_back(v02(queue), ledger)

    (row,) = rows_of(ledger)
    assert early == 0
    assert json.loads(row.output) == ["/x.m4a", "/x.mp4"]


def test_where_publish_is_the_last_stage_its_word_counts(queue: Queue, ledger: sa.Engine) -> None:
    insert(ledger, URL)
    take_in(queue, ledger)
    dl = auth_done(queue, "299")
    finish(dl, Place.RESULT, path="/staging/x")
    early = write_back(v02(queue, "publish"), ledger)
    publish = Queue(queue.client, Stage.PUBLISH)
    publish.submit([PublishItem(url=URL, jobs=["youtube:x:299"], extractor="youtube", video_id="x")])
    finish(publish, Place.RESULT, path="s3://b/x.mp4")

    write_back(v02(queue, "publish"), ledger)

    (row,) = rows_of(ledger)
    assert early == 0
    assert json.loads(row.output) == ["s3://b/x.mp4"]


def test_the_end_of_an_earlier_request_is_not_taken_for_a_rows_own(queue: Queue, ledger: sa.Engine) -> None:
    failed(queue, URL, retryable=False)
    insert(ledger, URL)
    take_in(queue, ledger)

    completed = write_back(v02(queue), ledger)

    assert completed == 0


def test_a_row_for_what_is_done_already_hears_so_at_once(queue: Queue, ledger: sa.Engine) -> None:
    v01 = Queue(queue.client, Stage.V01)
    v01.finish(begun(v01), Place.RESULT, {"files": [{"path": "/a"}]})
    insert(ledger, URL, URL)
    take_in(v01, ledger)

    completed = write_back(Queues.of(v01, until="dl"), ledger)

    assert completed == 2
    assert inbox_of(v01) == []


def test_rows_that_were_not_looked_for_longest_come_first(queue: Queue, ledger: sa.Engine) -> None:
    insert(ledger, *[url_of(number) for number in range(30)])
    take_in(queue, ledger)
    with ledger.begin() as connection:
        old = sa.update(pending_jobs).where(pending_jobs.c.url == url_of(29))
        connection.execute(old.values(looked_time=datetime.now(UTC) - timedelta(days=1)))
    for record in queue.claim(30).records:
        begun_record = queue.begin(record["id"], record["token"], host="here")
        queue.finish(begun_record, Place.SKIPPED, {"code": "private"})

    write_back(v02(queue), ledger, most=1)

    assert [row.url for row in rows_of(ledger) if row.status == "skipped"] == [url_of(29)]
