"""The diagnosis against the table of what sites say, and against wordings that nearly are in it."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.diagnosis import Playability, Signal, diagnose
from include.ytdlp_ops.diagnosis.__main__ import main
from include.ytdlp_ops.diagnosis.signals import WarningRecorder, read_signal

ROWS = [json.loads(line) for line in (Path(__file__).parent / "errors.jsonl").read_text().splitlines()]
MEDIA_URL = "https://rr1---sn.googlevideo.com/videoplayback?expire=2000&ip=10.0.0.1&sig=SECRET"


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_row_of_the_table_gets_its_reason_and_outcome(
    row: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    line = json.dumps(row).encode()

    status = main([line])

    assert status == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"id": row["id"], "code": row["reason"], "outcome": row["outcome"]}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        # bare, so a second egress is asked
        ("Video unavailable", Code.UNAVAILABLE_UNEXPLAINED),
        ("ERROR: [youtube] abcdefghijk: Video unavailable", Code.UNAVAILABLE_UNEXPLAINED),
        ("VIDEO UNAVAILABLE.", Code.UNAVAILABLE_UNEXPLAINED),
        ("Video unavailable. This video is not available", Code.UNAVAILABLE_UNEXPLAINED),
        ("Video unavailable. This video isn\u2019t available anymore", Code.UNAVAILABLE_UNEXPLAINED),
        # systemic words that hold words of content
        ("Video unavailable. This content isn\u2019t available, try again later.", Code.RATE_LIMITED_SESSION),
        ("This content is not available, please try again later", Code.RATE_LIMITED_SESSION),
        ("VIDEO UNAVAILABLE. THIS CONTENT ISN'T AVAILABLE.", Code.ACCOUNT_BLOCKED),
        ("Sign in to confirm you're not a bot. This helps protect our community.", Code.BOT_CHECK),
        ("Sign in to confirm you\u2018re not a robot", Code.BOT_CHECK),
        ("Private video. Sign in to confirm you\u2019re not a bot", Code.BOT_CHECK),
        ("Our systems have detected unusual traffic from your computer network.", Code.BOT_CHECK),
        ("Your account has been rate-limited by YouTube for up to an hour.", Code.RATE_LIMITED_SESSION),
        ("Your account has been terminated", Code.ACCOUNT_BLOCKED),
        ("Video unavailable. This video is not available on this app", Code.CLIENT_BROKEN),
        ("Playback on other websites has been disabled by the video owner", Code.CLIENT_BROKEN),
        ("Private video, but something went wrong. Try again later", Code.UNKNOWN),
        ("An error occurred. Please try again later. (Playback ID: x)", Code.UNKNOWN),
        # content, in other dress
        ("Sign in to confirm your age. This video may be inappropriate for some users. Use --cookies-from-browser "
         "or --cookies for the authentication. See  https://github.com/yt-dlp/yt-dlp/wiki/FAQ", Code.AGE),
        ("\x1b[0;31mERROR:\x1b[0m [youtube] abcdefghijk: Private video. Sign in if you\u2019ve been granted "
         "access to this video. Use --cookies", Code.PRIVATE),
        ("YouTube said: This playlist is private.", Code.PRIVATE),
        ("Video unavailable. This video is not available in your country.", Code.GEO),
        ("This video isn\u2019t available in your region", Code.GEO),
        ("Video unavailable. This content is not available on this country domain due to a court order", Code.GEO),
        ("This video is no longer available due to a trademark claim by a third party", Code.COPYRIGHT),
        ("This video requires payment to watch.", Code.PAYMENT),
        ("This video is only available to YouTube Premium members", Code.PAYMENT),
        ("YouTube said: This channel was removed because it violated our Community Guidelines.", Code.REMOVED),
        ("YouTube said: This account has been terminated for violating YouTube's policy.", Code.REMOVED),
        ("The channel/playlist does not exist and the URL redirected to youtube.com home page", Code.NO_SUCH_LIST),
        ("We're processing this video. Check back later.", Code.UPCOMING),
        # the machine, inside a text of yt-dlp
        ("[download] Got error: [Errno 28] No space left on device. Giving up after 10 retries", Code.DISK),
        ("Postprocessing: Error writing trailer: No space left on device", Code.DISK),
        ("unable to open for writing: [Errno 13] Permission denied: 'private video.mp4.part'", Code.LOCAL_IO),
        ("Postprocessing: ffprobe and ffmpeg not found. Please install or provide the path", Code.FFMPEG_MISSING),
        # the way
        ("Failed to establish a new connection: [Errno 13] Permission denied", Code.UNKNOWN),
        ("Unable to download webpage: HTTP Error 503: Service Unavailable", Code.NETWORK),
        ("Unable to download webpage: HTTP Error 402: Payment Required", Code.HTTP_429),
        ("Unable to download API page: HTTP Error 400: Bad Request", Code.CLIENT_BROKEN),
        # new words
        ("", Code.UNKNOWN),
        ("Video unavailable. The moon is in the wrong house", Code.UNKNOWN),
        ("This video is available", Code.UNKNOWN),
        ("This currently happens", Code.UNKNOWN),
    ],
)  # fmt: skip
def test_a_wording_near_to_a_known_one_is_told_apart(text: str, code: Code) -> None:
    signal = Signal(stage="auth", text=text)

    found = diagnose(signal)

    assert (found.code, found.outcome) == (code, code.outcome)


def test_an_unknown_text_is_tried_again_in_either_stage() -> None:
    texts = ("Lorem ipsum", "'NoneType' object is not subscriptable", "Unable to extract yt initial data")

    found = [diagnose(Signal(stage=stage, text=text)) for stage in ("auth", "download") for text in texts]

    assert {(each.code, each.outcome, each.rule) for each in found} == {(Code.UNKNOWN, Outcome.RETRY, "unknown")}


def test_one_client_that_is_asked_whether_it_is_a_bot_keeps_the_video_from_being_skipped() -> None:
    told = (
        Playability(status="UNPLAYABLE", reason="Video unavailable"),
        Playability(status="LOGIN_REQUIRED", reason="Sign in to confirm you\u2019re not a bot"),
    )
    text = "Video unavailable. This video has been removed by the uploader"

    found = diagnose(Signal(stage="auth", text=text, playability=told))

    assert (found.code, found.outcome) == (Code.BOT_CHECK, Outcome.ROTATE)


def test_one_client_that_is_refused_does_not_hide_what_the_video_is() -> None:
    told = (
        Playability(status="LOGIN_REQUIRED", reason="Private video"),
        Playability(status="UNPLAYABLE", reason="Playback on other websites has been disabled by the video owner"),
    )

    found = diagnose(Signal(stage="auth", text="Private video", playability=told))

    assert found.code is Code.PRIVATE


def test_a_login_for_no_known_reason_is_the_bot_check() -> None:
    signal = Signal(stage="auth", text="Please sign in", playability=(Playability(status="LOGIN_REQUIRED"),))

    found = diagnose(signal)

    assert found.code is Code.BOT_CHECK


@pytest.mark.parametrize(
    ("starts", "text", "seconds"),
    [
        ("1970-01-01T01:00:00+00:00", "This live event will begin in 2 hours.", 2600.0),
        ("1970-01-01T00:10:00+00:00", "This live event will begin in a few moments.", 3600.0),
        ("soon", "Premieres in 6 hours", 6 * 3600.0),
        (None, "Premieres in 2 days", 2 * 86400.0),
        (None, "Premiere will begin shortly", 3600.0),
    ],
)
def test_a_live_to_come_is_deferred_until_it_starts(starts: str | None, text: str, seconds: float) -> None:
    told = (Playability(status="LIVE_STREAM_OFFLINE", starts=starts),)

    found = diagnose(Signal(stage="auth", text=text, playability=told), now=1000)

    assert (found.outcome, found.retry_after) == (Outcome.DEFER, seconds)


@pytest.mark.parametrize(
    ("host", "now", "code"),
    [
        ("rr1---sn.googlevideo.com", 1999, Code.MEDIA_403),
        ("rr1---sn.googlevideo.com", 2000, Code.URL_EXPIRED),
        (None, 1999, Code.MEDIA_403),
        ("www.youtube.com", 1999, Code.HTTP_403),
        ("www.youtube.com", 2000, Code.HTTP_403),
    ],
)
def test_a_403_means_what_its_host_and_time_say(host: str | None, now: float, code: Code) -> None:
    text = "unable to download video data: HTTP Error 403: Forbidden"
    signal = Signal(stage="download", text=text, status=403, host=host, media_url=MEDIA_URL)

    found = diagnose(signal, now=now)

    assert found.code is code


def test_the_time_of_an_hls_url_is_read_from_its_path() -> None:
    url = "https://manifest.googlevideo.com/api/manifest/hls_playlist/expire/2000/ei/x/playlist/index.m3u8"
    text = "[download] Got error: HTTP Error 403: Forbidden. Giving up after 10 retries"

    codes = [diagnose(Signal(stage="download", text=text, media_url=url), now=now).code for now in (1999, 2000)]

    assert codes == [Code.MEDIA_403, Code.URL_EXPIRED]


def test_a_404_that_was_handled_on_the_way_skips_nothing() -> None:
    signal = Signal(stage="auth", text="Something new", classes=("DownloadError", "HTTPError"), status=404)

    found = diagnose(signal)

    assert found.outcome is Outcome.RETRY


@pytest.mark.parametrize(
    "text", ["Private video", "YouTube said: The playlist does not exist.", "Join this channel"]
)
def test_with_stale_cookies_the_account_is_at_fault_and_not_the_video(text: str) -> None:
    signal = Signal(stage="auth", text=text, warned=("no longer valid",))

    found = diagnose(signal)

    assert (found.code, found.outcome) == (Code.COOKIES_ROTATED, Outcome.ROTATE)


def test_a_missing_format_is_no_reason_to_skip_when_a_client_had_failed() -> None:
    signal = Signal(stage="download", text="Requested format is not available", warned=("PO Token",))

    found = diagnose(signal)

    assert (found.code, found.outcome) == (Code.NO_USABLE_FORMATS, Outcome.ROTATE)


@pytest.mark.parametrize(
    ("clients", "code"), [(("tv", "tv_simply"), Code.CLIENT_BROKEN), (("tv", "web"), Code.DRM)]
)
def test_drm_that_only_tv_clients_see_is_the_clients(clients: tuple[str, ...], code: Code) -> None:
    told = tuple(Playability(status="OK", client=client) for client in clients)

    found = diagnose(Signal(stage="auth", text="This video is DRM protected", playability=told))

    assert found.code is code


def test_an_errno_of_a_socket_is_the_ways_and_one_of_a_file_is_the_machines() -> None:
    firewall = Signal(stage="download", text="x", classes=("TransportError",), errno=errno.EPERM)
    file = Signal(stage="download", text="x", classes=("PermissionError",), errno=errno.EPERM)

    codes = [diagnose(signal).code for signal in (firewall, file)]

    assert codes == [Code.NETWORK, Code.LOCAL_IO]


def test_a_message_holds_no_query_no_user_and_no_signed_path() -> None:
    text = (
        f"Unable to fetch {MEDIA_URL} and https://manifest.googlevideo.com/api/manifest/sig/SECRET/x.m3u8 through "
        "http://egress1:SECRET@127.0.0.1:8080, url: /watch?v=SECRET&x=1 Cookie: SID=SECRET; HSID=SECRET"
    )

    message = diagnose(Signal(stage="download", text=text)).message

    assert "SECRET" not in message
    assert "127.0.0.1:8080" in message


def test_a_wrapped_error_is_read_through_to_the_innermost() -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    outer = RuntimeError("ERROR: [youtube] abcdefghijk: it broke: No space left on device")
    outer.__context__ = full

    signal = read_signal(outer, stage="download")

    assert signal.classes == ("RuntimeError", "OSError")
    assert (signal.errno, signal.text) == (errno.ENOSPC, "it broke: No space left on device")


def test_a_file_that_was_missed_on_the_way_is_not_taken_for_the_reason() -> None:
    outer = RuntimeError("Private video")
    outer.__context__ = FileNotFoundError(errno.ENOENT, "No such file or directory")

    found = diagnose(read_signal(outer, stage="auth"))

    assert found.code is Code.PRIVATE


def test_warnings_are_kept_to_their_explaining_parts_and_to_a_bound() -> None:
    recorder = WarningRecorder()

    for number in range(1000):
        recorder.warning(f"[youtube] {number}: HTTP Error 429: Too Many Requests. Retrying (1/3)...")

    assert len(recorder.warnings) == 200
    signal = read_signal(RuntimeError("x"), stage="auth", warnings=recorder.warnings)
    assert signal.warned == ("HTTP Error 429",)


def test_a_plain_text_is_taken_as_the_signals_text(capsys: pytest.CaptureFixture[str]) -> None:
    line = b'{"id": 7, "stage": "auth", "signal": "Private video"}\n'

    status = main([line, b"\n"])

    assert status == 0
    assert capsys.readouterr().out == '{"id": 7, "code": "private", "outcome": "skip-content"}\n'


@pytest.mark.parametrize(
    "broken",
    [
        b"{",
        b"[]",
        b"\xff",
        b'{"id": "x", "stage": "auth"}',
        b'{"id": "x", "stage": "a", "signal": ""}',
        b'{"id": "x", "stage": "auth", "signal": {"status": "many"}}',
    ],
)
def test_a_broken_line_is_named_and_nothing_is_printed(broken: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    good = b'{"id": "a", "stage": "auth", "signal": "Private video"}'

    status = main([good, broken, good])

    said = capsys.readouterr()
    assert (status, said.out) == (2, "")
    assert said.err.startswith("line 2: ")
