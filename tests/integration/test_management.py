"""What an operator does with the queues by hand, on a real Valkey."""

from __future__ import annotations

import csv
import io
import json
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from include.ytdlp_ops.errors import BadInput, WrongKeyType
from include.ytdlp_ops.models import PublishItem
from include.ytdlp_ops.queues.asking import LocalFiles, Request
from include.ytdlp_ops.queues.connecting import address_of, connect
from include.ytdlp_ops.queues.filtering import Filter
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.listing import first_page
from include.ytdlp_ops.queues.managing import ACTIONS, perform
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.remembering import set_archived_until
from tests.killed import is_killed_at
from tests.queueing import URL, begun, claimed, everything, failed, format_job, inbox_of, record_in, url_of, where
from tests.servers import Valkey

if TYPE_CHECKING:
    from redis import Redis

CHANGING = ["requeue", "cancel", "move", "clear", "import", "pause", "resume", "doctor"]


class Desk:
    """A person at the form."""

    def __init__(self, client: Redis, directory: Path) -> None:
        self.client = client
        self.files = LocalFiles(directory)
        self.directory = directory

    def does(self, action: str, **fields: Any) -> dict[str, Any]:
        return self.told(action, **fields)[0]

    def told(self, action: str, **fields: Any) -> tuple[dict[str, Any], list[str]]:
        given = {"stage": "auth", "dry_run": False, **fields}
        done = perform(self.client, Request.of({"action": action, **given}), self.files)
        return done.summary, done.lines


@pytest.fixture
def desk(redis_client: Redis, tmp_path: Path) -> Desk:
    return Desk(redis_client, tmp_path / "exchange")


def many_failed(queue: Queue, many: int, **fields: Any) -> None:
    record = {"token": "t", "attempt": 5, "code": "network", "retryable": False, **fields}
    queue.client.hset(
        queue.keys.fail,
        mapping={
            url_of(number): json.dumps({**record, "id": url_of(number), "url": url_of(number)})
            for number in range(many)
        },
    )


# -- looking ---------------------------------------------------------------------------------------------------
def test_inspect_tells_depth_age_rate_and_reasons(queue: Queue, desk: Desk) -> None:
    failed(queue, url_of(1), code="bot_check")
    failed(queue, url_of(2), code="bot_check")
    failed(queue, url_of(3), code="network")
    queue.submit([url_of(4)])

    summary, lines = desk.told("inspect", stage="all")

    fail = summary["auth"]["places"]["fail"]
    assert (fail["depth"], fail["last_hour"]) == (3, 3)
    assert fail["reasons"] == {"bot_check": pytest.approx(2 / 3), "network": pytest.approx(1 / 3)}
    assert fail["oldest_seconds"] < 60
    assert summary["auth"]["places"]["inbox"]["depth"] == 1
    assert any("queue2_auth_fail" in line and "bot_check 67%" in line for line in lines)
    assert len(json.dumps(summary)) < 20_000


def test_inspect_says_why_nothing_is_claimed(queue: Queue, desk: Desk) -> None:
    queue.pause("disks are full")

    _, lines = desk.told("inspect")

    assert any("disks are full" in line for line in lines)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"code": "bot_check"}, {1}),
        ({"reason": "sign in"}, {1}),
        ({"egress": "egress 2"}, {2}),
        ({"host": "here"}, {1, 2, 3}),
        ({"host": "her"}, set()),
        ({"tag": "b\u00fccher"}, {3}),
        ({"url_pattern": "0000[23]$"}, {2, 3}),
        ({"older_than_hours": 1}, set()),
        ({"newer_than_hours": 1}, {1, 2, 3}),
        ({"code": "network", "egress": "egress 2"}, {2}),
    ],
)
def test_list_filters(queue: Queue, desk: Desk, wanted: dict[str, Any], found: set[int]) -> None:
    failed(queue, url_of(1), code="bot_check", message="please sign in")
    failed(queue, url_of(2), egress="egress 2")
    failed(queue, json.dumps({"url": url_of(3), "tags": ["b\u00fccher"]}))

    _, lines = desk.told("list", **wanted)

    assert {json.loads(line)["id"] for line in lines[:-1]} == {url_of(number) for number in found}


def test_list_ends_a_page_with_the_cursor_of_the_next(queue: Queue, desk: Desk) -> None:
    many_failed(queue, 1200)
    seen, cursors = list[str](), ["0"]

    while len(cursors) == 1 or cursors[-1] != "0":
        summary, lines = desk.told("list", limit=100, cursor=cursors[-1])
        seen += [json.loads(line)["id"] for line in lines[:-1]]
        cursors.append(summary["cursor"])

    assert len(cursors) > 2
    assert set(seen) == {url_of(number) for number in range(1200)}


def test_a_look_that_takes_long_ends_with_the_cursor_to_go_on(queue: Queue) -> None:
    many_failed(queue, 3000)
    rare = Filter(code="none such")

    page = first_page(queue, "fail", rare, limit=10, longest_seconds=0)
    rest = first_page(queue, "fail", rare, limit=10, cursor=page.cursor)

    assert 0 < page.looked_at < 3000
    assert page.looked_at + rest.looked_at >= 3000
    assert rest.cursor == "0"


def test_list_writes_a_csv_file_that_runs_no_formula(queue: Queue, desk: Desk) -> None:
    failed(queue, URL, message="=HYPERLINK(1)", tags=["a", "b"])

    summary = desk.does("list", file="fails.csv", file_format="csv")

    (row,) = csv.DictReader(io.StringIO((desk.directory / "fails.csv").read_text()))
    assert summary["listed"] == 1
    assert (row["id"], row["code"], row["message"]) == (URL, "network", "'=HYPERLINK(1)")


def test_list_shows_an_element_of_the_inbox_that_is_none(queue: Queue, desk: Desk) -> None:
    queue.client.rpush(queue.keys.inbox, b"\xff", URL)

    _, lines = desk.told("list", source="inbox")

    assert [json.loads(line)["id"] for line in lines[:-1]] == ["", URL]
    assert json.loads(lines[0])["raw"] == "\\xff"


def test_show_finds_formats_of_a_url_the_url_of_a_format_and_what_came_before(queue: Queue, desk: Desk) -> None:
    failed(queue)
    dl = Queue(queue.client, Stage.DL)
    queue.submit([URL])
    (record,) = queue.claim(1).records
    job = format_job()
    queue.finish(record, Place.RESULT, {"jobs": [job.item_id]}, push=[(Stage.DL, job)])
    failed(dl, dl.client.lpop(dl.keys.inbox))  # type: ignore[arg-type]  # typed as awaitable too
    queue.client.rpush(queue.keys.inbox, "https://youtu.be/dQw4w9WgXcQ?x=1")
    everywhere = [("auth", "result", URL), ("dl", "fail", job.item_id), ("auth", "inbox", URL)]

    summary, lines = desk.told("show", item="dQw4w9WgXcQ", stage="all")
    of_format = desk.does("show", item=job.item_id, stage="all")

    assert [(each["stage"], each["where"], each["id"]) for each in summary["found"]] == everywhere
    assert {tuple(each.values()) for each in of_format["found"]} == set(everywhere)
    assert any('"previous"' in line for line in lines)


# -- bringing back ---------------------------------------------------------------------------------------------
def test_requeue_takes_what_the_filter_means_and_no_more_than_the_limit(queue: Queue, desk: Desk) -> None:
    many_failed(queue, 300)
    failed(queue, URL, code="bot_check")

    by_code = desk.does("requeue", code="bot_check")
    by_limit = desk.does("requeue", limit=7)

    assert by_code["requeue"] == 1
    assert by_limit["requeue"] == 7
    assert (queue.depths()["inbox"], queue.depths()["fail"]) == (8, 293)
    assert inbox_of(queue)[0]["id"] == URL


def test_requeued_formats_of_one_video_go_to_auth_together(queue: Queue, desk: Desk) -> None:
    dl = Queue(queue.client, Stage.DL)
    for format_id in ("299", "140"):
        failed(dl, format_job(format_id).to_inbox())

    desk.does("requeue", stage="dl")

    (item,) = inbox_of(queue)
    assert sorted(item["formats"].split(",")) == ["140", "299"]
    assert dl.depths()["fail"] == 0


def test_an_item_that_ended_again_meanwhile_is_not_requeued(queue: Queue, desk: Desk) -> None:
    from include.ytdlp_ops.queues.requeueing import _move

    many_failed(queue, 2)
    seen = [(url_of(0), b"{}"), (url_of(1), queue.client.hget(queue.keys.fail, url_of(1)))]

    moved = _move(queue, Place.FAIL, seen)  # type: ignore[arg-type]  # typed as awaitable too

    assert moved == 1
    assert where(queue, url_of(0)) == ["fail"]


def test_a_requeue_keeps_the_failed_attempt_for_a_ledger_that_is_at_work(queue: Queue, desk: Desk) -> None:
    many_failed(queue, 1)
    desk.does("requeue")
    assert queue.client.hlen(queue.keys.attempts) == 0

    set_archived_until(queue, 1)
    many_failed(queue, 1)
    desk.does("requeue")

    (raw,) = queue.client.hvals(queue.keys.attempts)  # type: ignore[misc]  # typed as awaitable too
    assert json.loads(raw)["code"] == "network"


def test_a_requeue_killed_at_any_step_and_run_again_loses_and_doubles_nothing(
    queue: Queue, desk: Desk, valkey: Valkey
) -> None:
    def again() -> None:
        with_own_client(valkey, desk, lambda mine: mine.does("requeue", limit=1000))

    for number in count(1):
        queue.client.flushall()
        many_failed(queue, 230)
        if not is_killed_at(number, again):
            break
        again()
        assert sorted(item["id"] for item in inbox_of(queue)) == [url_of(each) for each in range(230)]
        assert queue.depths()["fail"] == 0
    assert number > 8


def with_own_client(valkey: Valkey, desk: Desk, action: Any) -> None:
    client = connect(address_of(valkey.url))
    action(Desk(client, desk.directory))
    client.close()


# -- ending ----------------------------------------------------------------------------------------------------
def test_cancel_skips_what_waits_and_tells_what_runs(queue: Queue, desk: Desk) -> None:
    begun(queue, url_of(1))
    failed(queue, url_of(2), due_in_ms=1000)
    queue.client.rpush(queue.keys.inbox, url_of(3), url_of(4))

    counted = [
        desk.does("cancel", source=source, because="wrong list", url_pattern="[123]$")["cancel"]
        for source in ("inbox", "progress", "fail")
    ]

    assert counted == [1, 1, 1]
    assert where(queue, url_of(3)) == where(queue, url_of(2)) == ["skipped"]
    assert record_in(queue, Place.PROGRESS, url_of(1))["cancel_requested"] == "wrong list"
    assert inbox_of(queue) == [url_of(4)]


def test_cancel_finds_one_item_wherever_it_is(queue: Queue, desk: Desk) -> None:
    queue.client.rpush(queue.keys.inbox, "dQw4w9WgXcQ")

    desk.does("cancel", item=URL)

    assert where(queue) == ["skipped"]


def test_a_moved_item_is_not_taken_up_again(queue: Queue, desk: Desk) -> None:
    failed(queue, due_in_ms=0)

    desk.does("move", source="fail", target="skipped", because="not worth it")

    record = record_in(queue, Place.SKIPPED)
    assert (record["moved_from"], record["moved_because"], record["retryable"]) == ("fail", "not worth it", False)
    assert queue.client.zcard(queue.keys.due) == 0


def test_the_last_format_that_is_moved_lets_its_video_go_on_to_publish(queue: Queue, desk: Desk) -> None:
    dl, job = Queue(queue.client, Stage.DL), format_job()
    video = PublishItem(url=URL, jobs=[job.item_id], extractor="youtube", video_id="dQw4w9WgXcQ")
    queue.client.hset(queue.keys.groups, URL, video.to_inbox())
    failed(dl, job.to_inbox(), retryable=False)

    desk.does("move", stage="dl", source="fail", target="skipped")

    assert [item["id"] for item in inbox_of(Queue(queue.client, Stage.PUBLISH))] == [URL]


@pytest.mark.parametrize("name", ["inbox", "fail", "progress"])
def test_a_cleared_key_comes_back_from_its_backup_byte_for_byte(queue: Queue, desk: Desk, name: str) -> None:
    begun(queue, url_of(1))
    failed(queue, url_of(2), due_in_ms=60_000)
    queue.client.rpush(queue.keys.inbox, URL, URL, b"\xff\x00", '{"url": "x"}')
    queue.client.hset(queue.keys.fail, mapping={b"\xfe": b"\xfd", "y": "not JSON"})
    key = getattr(queue.keys, name)
    before = everything(queue.client)[key.encode()]

    cleared = desk.does("clear", source=name, confirm=key)
    gone = not queue.client.exists(key)
    desk.does("import", file=Path(cleared["backup"]).name)

    assert gone
    assert everything(queue.client)[key.encode()] == before


def test_what_comes_in_while_a_key_is_cleared_stays(queue: Queue, desk: Desk) -> None:
    from include.ytdlp_ops.queues.clearing import drop_saved
    from include.ytdlp_ops.queues.exporting import lines_of

    queue.client.rpush(queue.keys.inbox, url_of(1), url_of(2))
    with desk.files.create("backup") as stream:
        stream.writelines(lines_of([queue], ["inbox"]))
    claim = queue.claim(1)
    queue.client.rpush(queue.keys.inbox, url_of(3))

    dropped = drop_saved(queue, "inbox", lambda: desk.files.open("backup"))

    assert claim.records
    assert dropped == 1
    assert inbox_of(queue) == [url_of(3)]


def test_clear_refuses_without_the_name_of_the_key(queue: Queue, desk: Desk) -> None:
    failed(queue)
    before = everything(queue.client)

    with pytest.raises(BadInput, match="'queue2_auth_fail'"):
        desk.does("clear", source="fail", confirm="queue2_dl_fail")

    assert everything(queue.client) == before
    assert not desk.directory.exists()


def test_clear_deletes_nothing_where_the_backup_can_not_be_written(queue: Queue, desk: Desk) -> None:
    failed(queue)
    desk.directory.write_text("in the way")

    with pytest.raises(BadInput, match="exchange"):
        desk.does("clear", source="fail", confirm=queue.keys.fail)

    assert where(queue) == ["fail"]


# -- whole queues ----------------------------------------------------------------------------------------------
def filled(queue: Queue) -> None:
    queue.submit([url_of(number) for number in range(700)])
    failed(queue, url_of(1000), due_in_ms=60_000)
    queue.pause("moving")
    dl = Queue(queue.client, Stage.DL)
    claimed(dl, format_job().to_inbox())
    queue.client.hset(queue.keys.result, mapping={b"\xff": b"\x00\xfe", "x": "y"})


def of_queues(client: Redis) -> dict[bytes, Any]:
    """All that an export is made of; answers to requests and the circuit are of the moment."""
    keys: list[bytes] = list(client.scan_iter(count=1000))
    return {key: content(client, key) for key in keys if b":" not in key and not key.endswith(b"_circuit")}


def content(client: Redis, key: bytes) -> Any:
    kind: Any = client.type(key)
    if kind == b"list":
        return client.lrange(key.decode(), 0, -1)
    return client.hgetall(key.decode()) if kind == b"hash" else client.zrange(key, 0, -1, withscores=True)


def test_an_exported_queue_comes_back_byte_for_byte(queue: Queue, desk: Desk) -> None:
    filled(queue)
    before = of_queues(queue.client)

    exported = desk.does("export", stage="all", file="all.jsonl")
    queue.client.flushall()
    imported = desk.does("import", stage="all", file="all.jsonl")

    assert of_queues(queue.client) == before
    assert exported["entries"] == imported["import"]
    assert exported["moved_meanwhile"] == []


def test_an_import_into_another_base_makes_a_second_installation(queue: Queue, desk: Desk) -> None:
    filled(queue)
    desk.does("export", file="auth.jsonl")
    before = everything(queue.client)

    desk.does("import", stage="all", file="auth.jsonl", queue_base="other")

    other = Queue(queue.client, "auth", queue_base="other")
    assert other.depths() == queue.depths()
    assert {key: dump for key, dump in everything(queue.client).items() if not key.startswith(b"other")} == before


def test_an_import_of_one_stage_takes_no_other(queue: Queue, desk: Desk) -> None:
    filled(queue)
    desk.does("export", stage="all", file="all.jsonl")
    queue.client.flushall()

    with pytest.raises(BadInput, match="holds stage dl too"):
        desk.does("import", stage="auth", file="all.jsonl")

    assert everything(queue.client) == {}


def test_an_import_never_mixes_with_what_is_there(queue: Queue, desk: Desk) -> None:
    filled(queue)
    desk.does("export", stage="all", file="all.jsonl")
    before = everything(queue.client)

    with pytest.raises(BadInput, match="is not empty"):
        desk.does("import", stage="all", file="all.jsonl")

    assert everything(queue.client) == before


@pytest.mark.parametrize(
    ("line", "becomes", "named"),
    [
        (3, b"{", "line 3 is no JSON"),
        (2, b'{"stage":"auth","key":"nonsense","value":"x"}', "line 2 names key 'nonsense'"),
        (2, b'{"stage":"no","key":"inbox","value":"x"}', "line 2 names stage 'no'"),
        (2, b'{"stage":"auth","key":"inbox"}', "line 2 has no 'value'"),
        (2, b'{"stage":"auth","key":"due","name":"x","score":"soon"}', "line 2 has the score 'soon'"),
        (1, b"{}", "line 1 is no head"),
        (4, b'{"lines":3}', "line 4 is the end, after 2 entries"),
        (4, b"", "line 3 is the end"),
        (4, b'{"lines":2}\n{"lines":2}', "line 5 comes after the last line"),
    ],
)
def test_a_broken_file_is_named_by_its_line_and_imports_nothing(
    queue: Queue, desk: Desk, line: int, becomes: bytes, named: str
) -> None:
    queue.submit([url_of(1), url_of(2)])
    desk.does("export", file="good")
    queue.client.delete(queue.keys.inbox, queue.keys.counters)
    lines = [each for each in (desk.directory / "good").read_bytes().splitlines() if b"counters" not in each]
    lines[-1] = b'{"lines":2}'
    lines[line - 1] = becomes
    (desk.directory / "broken").write_bytes(b"\n".join(filter(None, lines)) + b"\n")
    before = everything(queue.client)

    with pytest.raises(BadInput, match=named):
        desk.does("import", file="broken")

    assert everything(queue.client) == before


@pytest.mark.slow
def test_an_import_killed_at_any_step_and_run_again_is_byte_for_byte(
    queue: Queue, desk: Desk, valkey: Valkey
) -> None:
    filled(queue)
    before = of_queues(queue.client)
    desk.does("export", stage="all", file="all.jsonl")

    def again() -> None:
        with_own_client(valkey, desk, lambda mine: mine.does("import", stage="all", file="all.jsonl"))

    for number in count(1):
        queue.client.flushall()
        if not is_killed_at(number, again):
            break
        if of_queues(queue.client) != before or markers(queue):
            again()
        assert not markers(queue)
        assert of_queues(queue.client) == before
    assert number > 20


def markers(queue: Queue) -> list[bytes]:
    """What says how far an import is."""
    return [key for key in everything(queue.client) if b"_load:" in key]


# -- stopping, mending -----------------------------------------------------------------------------------------
def test_pause_stops_every_stage_and_resume_lets_them_go_on(queue: Queue, desk: Desk) -> None:
    queue.submit([URL])

    desk.does("pause", stage="all", because="maintenance")
    paused = queue.claim(1)
    desk.does("resume", stage="all")

    assert "maintenance" in paused.closed
    assert queue.claim(1).records


def test_the_doctor_names_and_mends(queue: Queue, desk: Desk) -> None:
    begun(queue)
    queue.client.delete(queue.keys.leases)

    named, lines = desk.told("doctor", dry_run=True)
    mended = desk.does("doctor")
    well = desk.does("doctor", stage="all")

    assert named == {"findings": 1, "mended": 0}
    assert URL in lines[0]
    assert mended == {"findings": 1, "mended": 1}
    assert well["findings"] == 0


# -- every action ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("action", CHANGING)
def test_a_dry_run_says_what_it_would_do_and_writes_nothing(queue: Queue, desk: Desk, action: str) -> None:
    failed(queue, due_in_ms=1000)
    desk.does("export", file="saved", stage="auth")
    before = everything(queue.client)

    _, lines = desk.told(action, dry_run=True, source="fail", target="skipped", file="saved")

    assert lines[0].startswith("dry run: would " if action != "doctor" else "the queues keep")
    assert everything(queue.client) == before


@pytest.mark.parametrize(
    ("action", "fields", "named"),
    [
        ("nonsense", {}, "action 'nonsense' is none of inspect, list"),
        ("requeue", {"stage": "nowhere"}, "stage 'nowhere' is none of v01"),
        ("requeue", {"stage": "all"}, "needs one stage"),
        ("requeue", {"source": "progress"}, "source .*progress.* is none of fail"),
        ("requeue", {"source": "nowhere"}, "source 'nowhere' is none of inbox"),
        ("requeue", {"url_pattern": "("}, "url_pattern '\\(' is no regular expression"),
        ("requeue", {"limit": 0}, "limit 0"),
        ("requeue", {"older_than_hours": -1}, "older_than_hours -1"),
        ("requeue", {"queue_base": "no such/base"}, "queue_base 'no such/base'"),
        ("requeue", {"queue_base": "qeue2"}, "queue_base 'qeue2' has no key"),
        ("inspect", {"queue_base": "qeue2"}, "queue_base 'qeue2' has no key"),
        ("list", {"cursor": "next"}, "cursor 'next' is none"),
        ("list", {"file": "../x"}, "file '../x' must be a bare name"),
        ("list", {"file_format": "xlsx"}, "file_format 'xlsx'"),
        ("move", {"source": "result"}, "nothing is moved from"),
        ("move", {"source": "fail", "target": "progress"}, "nothing is moved from"),
        ("cancel", {"source": "result"}, "source 'result' is none of inbox"),
        ("import", {}, "needs a file"),
        ("import", {"file": "gone"}, "file 'gone'"),
        ("show", {}, "needs an item"),
        ("inspect", {"colour": "red"}, "colour"),
    ],
)
def test_what_is_wrong_is_named_before_anything_changes(
    queue: Queue, desk: Desk, action: str, fields: dict[str, Any], named: str
) -> None:
    failed(queue)
    before = everything(queue.client)

    with pytest.raises(BadInput, match=named):
        desk.does(action, **fields)

    assert everything(queue.client) == before


@pytest.mark.parametrize("action", ["list", "requeue"])
def test_a_key_of_another_type_is_named(queue: Queue, desk: Desk, action: str) -> None:
    queue.client.set(queue.keys.fail, "x")

    with pytest.raises(WrongKeyType, match="queue2_auth_fail is a string"):
        desk.does(action)


def test_every_action_is_tested_as_a_dry_run_or_changes_nothing() -> None:
    assert set(ACTIONS) == {*CHANGING, "inspect", "list", "show", "export"}
