"""Finished records go from Redis to SQL once each, whatever is killed when."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from include.ytdlp_ops.errors import BadInput, ConfigurationError
from include.ytdlp_ops.ledger import connecting
from include.ytdlp_ops.ledger.archiving import LEAST_KEEP_SECONDS, archive, forget
from include.ytdlp_ops.ledger.connecting import VERSION_TABLE, migrate, open_engine
from include.ytdlp_ops.ledger.schema import metadata, outcomes
from include.ytdlp_ops.queues.connecting import address_of, connect
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.recovery import sweep
from include.ytdlp_ops.queues.remembering import keep_what_is_due
from tests.killed import is_killed_at
from tests.queueing import URL, begun, failed, record_in, url_of, where
from tests.servers import Valkey

LONG_AGO = "2024-01-01T00:00:00.000Z"


def finished(queue: Queue, element: str, place: Place = Place.RESULT, **outcome: Any) -> None:
    queue.finish(begun(queue, element), place, outcome)


def aged(queue: Queue, place: Place, many: int, **fields: Any) -> None:
    """Records that ended long ago."""
    queue.client.hset(
        queue.keys.hash_of(place),
        mapping={
            url_of(number): json.dumps(
                {
                    "id": url_of(number),
                    "url": url_of(number),
                    "token": f"t{number}",
                    "finished_at": LONG_AGO,
                    **fields,
                }
            )
            for number in range(many)
        },
    )


def rows_of(ledger: sa.Engine) -> list[Any]:
    with ledger.connect() as connection:
        return list(connection.execute(sa.select(outcomes).order_by(outcomes.c.item_id)).all())


def test_a_row_says_all_of_one_attempt(queue: Queue, ledger: sa.Engine) -> None:
    element = json.dumps({"url": URL, "tags": ["a", "\u00fc"], "profile": "best", "submitted_by": "me"})
    made: dict[str, Any] = {
        "path": "/srv/out/x.mp4",
        "bytes": 12,
        "duration": 1.5,
        "egress": "e1",
        "account": "a1",
        "format_id": "18",
    }
    finished(queue, element, **made)

    archived = archive(queue, ledger)

    (row,) = rows_of(ledger)
    assert (archived.written, archived.shortened) == (1, 0)
    assert (row.stage, row.item_id, row.place, row.url) == ("auth", URL, "result", URL)
    assert (row.path, row.destination, row.bytes, row.duration_seconds) == ("/srv/out/x.mp4", "/srv/out", 12, 1.5)
    assert (row.egress, row.account, row.host, row.dag_id, row.run_id) == ("e1", "a1", "here", "d", "r")
    assert (json.loads(row.tags), row.profile, row.submitted_by, row.attempt) == (["a", "\u00fc"], "best", "me", 1)
    stamps = [record_in(queue, Place.RESULT)[name] for name in ("claimed_at", "started_at", "finished_at")]
    assert [row.claimed_at, row.started_at, row.finished_at] == [datetime.fromisoformat(each) for each in stamps]


def test_every_way_to_end_has_its_row(queue: Queue, ledger: sa.Engine) -> None:
    finished(queue, url_of(1), path="/x")
    finished(queue, url_of(2), Place.SKIPPED, code="private")
    failed(queue, url_of(3), code="bot_check", message="sign in", egress="e")
    queue.finish(begun(queue, url_of(4)), Place.DEFERRED, {"code": "upcoming", "outcome": "defer"}, due_in_ms=1)

    archive(queue, ledger)

    assert [(row.place, row.code) for row in rows_of(ledger)] == [
        ("result", None), ("skipped", "private"), ("fail", "bot_check"), ("deferred", "upcoming"),
    ]  # fmt: skip


def test_archiving_twice_writes_once(queue: Queue, ledger: sa.Engine) -> None:
    finished(queue, URL)

    first = archive(queue, ledger)
    again = archive(queue, ledger)
    everything = archive(queue, ledger, everything=True)

    assert [first.written, again.written, everything.written] == [1, 0, 0]


def test_attempts_that_others_followed_have_their_rows(queue: Queue, ledger: sa.Engine) -> None:
    archive(queue, ledger)
    failed(queue, URL, code="network", due_in_ms=0)
    keep_what_is_due(queue)
    sweep(queue)
    record = queue.claim(1).records[0]
    queue.finish(queue.begin(record["id"], record["token"], host="here"), Place.RESULT, {})

    archive(queue, ledger)

    rows = rows_of(ledger)
    assert sorted((row.attempt, row.place, row.code) for row in rows) == [
        (1, "fail", "network"),
        (2, "result", None),
    ]
    assert queue.client.exists(queue.keys.attempts) == 0


def test_without_a_ledger_nothing_is_kept_for_it(queue: Queue) -> None:
    failed(queue, URL, due_in_ms=0)

    kept = keep_what_is_due(queue)

    assert kept == 0
    assert queue.client.exists(queue.keys.attempts) == 0


def test_an_old_result_is_shortened_and_is_still_known_to_be_done(queue: Queue, ledger: sa.Engine) -> None:
    aged(queue, Place.RESULT, 1, formats="18", profile="p", path="/x", title="x" * 500)

    archived = archive(queue, ledger)

    kept = record_in(queue, Place.RESULT, url_of(0))
    wanted = json.dumps({"url": url_of(0), "formats": "18", "profile": "p"})
    other = json.dumps({"url": url_of(0), "formats": "22", "profile": "p"})
    assert archived.shortened == 1
    assert kept == {
        "id": url_of(0),
        "formats": "18",
        "profile": "p",
        "path": "/x",
        "finished_at": LONG_AGO,
        "archived": True,
    }
    assert queue.submit([wanted, other]) == ["already_done", "queued"]
    assert archive(queue, ledger).written == 0


def test_formats_of_a_video_that_waits_for_others_stay_whole(queue: Queue, ledger: sa.Engine) -> None:
    dl = Queue(queue.client, Stage.DL)
    aged(dl, Place.RESULT, 2, title="whole")
    dl.client.hset(dl.keys.groups, url_of(1), "{}")

    archived = archive(dl, ledger)

    assert (archived.written, archived.shortened) == (2, 1)
    assert record_in(dl, Place.RESULT, url_of(1))["title"] == "whole"


def test_old_skips_are_forgotten_and_failures_wait_for_a_person(queue: Queue, ledger: sa.Engine) -> None:
    aged(queue, Place.SKIPPED, 1, code="private")
    aged(Queue(queue.client, Stage.DL), Place.FAIL, 1, code="network", retryable=False)

    archived = archive(queue, ledger) + archive(Queue(queue.client, Stage.DL), ledger)

    assert archived.forgotten == 1
    assert where(queue, url_of(0)) == []
    assert where(Queue(queue.client, Stage.DL), url_of(0)) == ["fail"]


def test_a_result_that_was_asked_for_again_meanwhile_is_not_overwritten(queue: Queue, ledger: sa.Engine) -> None:
    aged(queue, Place.RESULT, 1, title="long")
    seen = queue.client.hget(queue.keys.result, url_of(0))
    queue.submit([url_of(0)])

    replaced = queue.steps.run("replace", [queue.keys.result], [url_of(0), seen, "{}"])

    assert replaced == 0
    assert record_in(queue, Place.RESULT, url_of(0))["submitted_again"] == 1


@pytest.mark.parametrize(
    "raw",
    [b"\xff\x00", b"not JSON", b"[]", b"{}", b'{"bytes":1e400}', b'{"attempt":99999999999999999999,"tags":"x"}',
     b'{"finished_at":"yesterday","egress":{"a":1},"message":"a\\u0000b","path":7}',
     json.dumps({"code": "x" * 500, "message": "\U0001f600" * 9000, "finished_at": 9e99}).encode()],
)  # fmt: skip
def test_what_older_tools_or_damage_left_has_a_row_too(queue: Queue, ledger: sa.Engine, raw: bytes) -> None:
    queue.client.hset(queue.keys.fail, mapping={b"\xfe\x00id": raw})

    archived = archive(queue, ledger)

    (row,) = rows_of(ledger)
    assert archived.written == 1
    assert row.place == "fail"


def test_an_archiving_killed_at_any_step_and_run_again_loses_and_doubles_nothing(
    queue: Queue, ledger: sa.Engine, ledger_url: str, valkey: Valkey
) -> None:
    many = 40
    expected = {url_of(number) for number in range(many)}

    def again() -> None:
        engine, client = open_engine(ledger_url), connect(address_of(valkey.url))
        archive(Queue(client, "auth"), engine)
        engine.dispose()
        client.close()

    for number in count(1):
        queue.client.flushall()
        with ledger.begin() as connection:
            connection.execute(sa.delete(outcomes))
        aged(queue, Place.RESULT, many, title="long")
        aged(queue, Place.SKIPPED, 3)
        if not is_killed_at(number, again):
            break
        known = {row.item_id for row in rows_of(ledger) if row.place == "result"}
        whole = {key.decode() for key, raw in queue.client.hgetall(queue.keys.result).items() if b"long" in raw}  # type: ignore[union-attr]  # typed as awaitable too
        assert known | whole == expected
        again()
        assert sorted(row.item_id for row in rows_of(ledger) if row.place == "result") == sorted(expected)
        assert queue.depths()["result"] == many
    assert number > 15


def test_archived_records_are_gone_from_sql_only_by_their_age(queue: Queue, ledger: sa.Engine) -> None:
    aged(queue, Place.RESULT, 1200)
    finished(queue, URL)
    archive(queue, ledger)

    forgotten = forget(ledger, older_than=timedelta(days=30))

    assert forgotten == 1200
    assert [row.item_id for row in rows_of(ledger)] == [URL]


def test_a_window_shorter_than_what_runs_needs_is_refused(queue: Queue, ledger: sa.Engine) -> None:
    with pytest.raises(BadInput, match="keep_seconds 60"):
        archive(queue, ledger, keep_seconds=LEAST_KEEP_SECONDS / 60)


def test_the_migrations_make_the_tables_that_the_code_expects(ledger: sa.Engine) -> None:
    scripts = ScriptDirectory(f"{connecting.__file__.rpartition('/')[0]}/migrations")

    with ledger.connect() as connection:
        options = {"compare_type": True, "version_table": VERSION_TABLE}
        context = MigrationContext.configure(connection, opts=options)
        differences = compare_metadata(context, metadata) if ledger.dialect.name != "sqlite" else []

    assert scripts.get_current_head() == connecting.HEAD == connecting.current_version(ledger)
    assert differences == []
    assert migrate(ledger) is False


def test_tables_of_a_later_version_are_refused(ledger: sa.Engine) -> None:
    with ledger.begin() as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))

    try:
        with pytest.raises(ConfigurationError, match="newer"):
            migrate(ledger)
    finally:
        with ledger.begin() as connection:
            connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '{connecting.HEAD}'"))


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("nonsense", "no database URL"),
        ("oracle://x/y", "no database URL|runs on PostgreSQL"),
        ("postgresql+psycopg2://me:secret@127.0.0.1:1/x", r"me:\*\*\*@127.0.0.1:1"),
        ("mysql+pymysql://me:secret@127.0.0.1:1/x", r"me:\*\*\*@127.0.0.1:1"),
    ],
)
def test_a_database_that_can_not_be_used_is_named_without_its_password(url: str, named: str) -> None:
    with pytest.raises(ConfigurationError, match=named) as caught:
        open_engine(url)

    assert "secret" not in str(caught.value)
