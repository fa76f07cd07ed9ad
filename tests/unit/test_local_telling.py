"""What people are shown of an item, and what a report says of a URL."""

from __future__ import annotations

import time

import pytest

from include.ytdlp_ops.local.telling import Screen, as_report, file_line, reason_of, rows, state_of, summary
from include.ytdlp_ops.local.watching import Seen, SeenUrl
from include.ytdlp_ops.queues.keys import Place, Stage

URL = "https://www.youtube.com/watch?v=ok-00000001"
FILE = {
    "path": "/out/a.mp4",
    "bytes": 3 << 20,
    "sha256": "ab",
    "duration": 4.0,
    "video_codec": "h264",
    "audio_codec": None,
}


def _auth(place: Place | None, **record: object) -> Seen:
    return Seen(stage=Stage.AUTH, item_id=URL, place=place, record=record)


def _job(place: Place | None, **record: object) -> Seen:
    return Seen(stage=Stage.DL, item_id="youtube:ok-00000001:299", place=place, record=record)


def _published(place: Place | None, **record: object) -> Seen:
    return Seen(stage=Stage.PUBLISH, item_id=URL, place=place, record=record)


def _url(auth: Seen, *jobs: Seen, answer: str = "queued", publish: Seen | None = None) -> SeenUrl:
    return SeenUrl(url=URL, answer=answer, auth=auth, jobs=jobs, publish=publish)


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        (_auth(None), "waiting"),
        (_auth(Place.PROGRESS, state="claimed"), "claimed"),
        (_auth(Place.PROGRESS, state="running"), "running"),
        (
            _job(
                Place.PROGRESS,
                state="running",
                progress={"downloaded_bytes": 45, "total_bytes": 100, "speed": 3.25 * (1 << 20)},
            ),
            "running 45 % at 3.2 MiB/s",
        ),
        (_job(Place.PROGRESS, state="running", progress={"downloaded_bytes": 45, "total_bytes": None}), "running"),
        (_auth(Place.RESULT), "done"),
        (_auth(Place.SKIPPED, code="private"), "skipped"),
        (_auth(Place.FAIL, code="bot_check"), "failed"),
    ],
)
def test_a_state_in_words(seen: Seen, state: str) -> None:
    assert state_of(seen) == state


def test_a_failure_that_will_be_tried_again_says_when() -> None:
    seen = _auth(Place.FAIL, code="bot_check", retry_at="2030-01-01T12:00:00.000Z")

    assert state_of(seen).startswith("failed, again at ")


def test_a_reason_is_the_code_and_what_it_means() -> None:
    assert reason_of(_auth(Place.SKIPPED, code="private", message="the video is private")) == (
        "private: the video is private"
    )


def test_a_file_is_told_by_path_size_codecs_and_duration() -> None:
    assert file_line(FILE) == "/out/a.mp4, 3.00 MiB, h264, 4.0 s"


def test_a_url_whose_formats_are_on_their_way_has_not_ended() -> None:
    assert not _url(_auth(Place.RESULT), _job(Place.RESULT), _job(None), publish=_published(None)).ended


def test_a_url_ends_with_its_publication() -> None:
    jobs = (_job(Place.RESULT), _job(Place.RESULT))

    assert not _url(_auth(Place.RESULT), *jobs, publish=_published(None)).ended
    assert _url(_auth(Place.RESULT), *jobs, publish=_published(Place.RESULT)).ended


def test_a_url_whose_format_is_tried_again_has_ended_for_this_run() -> None:
    again = _job(Place.FAIL, retry_at="2026-11-30T08:00:00.000Z")

    assert _url(_auth(Place.RESULT), _job(Place.RESULT), again, publish=_published(None)).ended


def test_one_failed_format_decides_what_became_of_the_url() -> None:
    failed = _job(Place.FAIL, code="media_403", message="no")
    url = _url(_auth(Place.RESULT), _job(Place.RESULT), failed, publish=_published(Place.SKIPPED))

    (report,) = as_report([url])

    assert (report["outcome"], report["code"], report["files"]) == ("fail", "media_403", [])


def test_a_done_url_reports_its_file_and_no_code() -> None:
    (report,) = as_report(
        [_url(_auth(Place.RESULT), _job(Place.RESULT), publish=_published(Place.RESULT, **FILE))]
    )

    assert (report["outcome"], report["code"]) == ("result", None)
    assert report["files"] == [
        {"path": "/out/a.mp4", "bytes": 3 << 20, "sha256": "ab", "codecs": ["h264"], "duration": 4.0}
    ]


def test_a_url_that_has_not_ended_has_no_outcome() -> None:
    (report,) = as_report([_url(_auth(Place.PROGRESS))])

    assert report["outcome"] is None


def test_a_url_that_was_done_before_is_told_so() -> None:
    url = _url(_auth(Place.RESULT, title="A title"), answer="already_done")

    assert next(rows([url])) == (URL, "auth", "already done", "A title")


def test_the_summary_lists_files_and_the_reasons_of_what_gave_none() -> None:
    done = _url(_auth(Place.RESULT), _job(Place.RESULT), publish=_published(Place.RESULT, **FILE))
    skipped = _url(_auth(Place.SKIPPED, code="private", message="the video is private"))

    assert summary([done, skipped]) == [
        "  /out/a.mp4, 3.00 MiB, h264, 4.0 s",
        f"  {URL}: skipped, private: the video is private",
    ]


def test_plain_lines_come_for_changes_of_state_only(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(time.monotonic())
    running = [
        _url(_job(Place.PROGRESS, state="running", progress={"speed": speed * (1 << 20)})) for speed in (1, 2)
    ]

    for url in (*running, _url(_job(Place.RESULT, **FILE))):
        screen.show([url])

    assert [line.split("  ")[-1] for line in capsys.readouterr().out.splitlines()] == [
        "running at 1.0 MiB/s",
        "/out/a.mp4, 3.00 MiB, h264, 4.0 s",
    ]
