"""Small parts of the ops server: cookies, guard, quality, cursors, versions."""

from __future__ import annotations

import stat
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.ops_server.client import version_mismatch
from include.ytdlp_ops.ops_server.contract import ExtractedInfo
from include.ytdlp_ops.ops_server.cookies import CookieCopies, is_signed_in
from include.ytdlp_ops.ops_server.expanding import Cursor
from include.ytdlp_ops.ops_server.jobs import Job, SiteRefused
from include.ytdlp_ops.ops_server.quality import check
from include.ytdlp_ops.ops_server.readiness import age_in_days
from include.ytdlp_ops.urls import is_public

HEAD = "# Netscape HTTP Cookie File\n"
OTHER = ".youtube.com\tTRUE\t/\tTRUE\t4102444800\tPREF\tx\n"


def login(value: str = "v", expires: str = "4102444800") -> str:
    return f"{HEAD}{OTHER}#HttpOnly_.youtube.com\tTRUE\t/\tTRUE\t{expires}\tLOGIN_INFO\t{value}\n"


# -- cookies ---------------------------------------------------------------------------------------------------


@pytest.fixture
def copies() -> Any:
    copies = CookieCopies()
    yield copies
    copies.close()


def test_rotated_cookies_are_written_back_with_the_file_s_own_mode(copies: CookieCopies, tmp_path: Path) -> None:
    cookies = tmp_path / "c.txt"
    cookies.write_text(login("old"))
    cookies.chmod(0o640)
    copy = copies.lend(cookies)
    copy.write_text(login("new"))

    signed_in = copies.take_back(copy, cookies, ended=True)

    assert signed_in
    assert (cookies.read_text(), stat.S_IMODE(cookies.stat().st_mode)) == (login("new"), 0o640)
    assert not copy.exists()
    assert list(tmp_path.iterdir()) == [cookies]


def test_a_copy_is_its_owner_s_alone(copies: CookieCopies, tmp_path: Path) -> None:
    cookies = tmp_path / "c.txt"
    cookies.write_text(login())

    one, two = copies.lend(cookies), copies.lend(cookies)

    assert one != two
    assert stat.S_IMODE(one.stat().st_mode) == 0o600
    assert stat.S_IMODE(one.parent.stat().st_mode) == 0o700


def test_cookies_of_an_account_that_was_signed_out_are_left_as_they_were(
    copies: CookieCopies, tmp_path: Path
) -> None:
    cookies = tmp_path / "c.txt"
    cookies.write_text(login())
    copy = copies.lend(cookies)
    copy.write_text(HEAD + OTHER)

    assert not copies.take_back(copy, cookies, ended=True)
    assert cookies.read_text() == login()


def test_what_a_killed_run_leaves_is_not_looked_at(copies: CookieCopies, tmp_path: Path) -> None:
    cookies = tmp_path / "c.txt"
    cookies.write_text(login())
    copy = copies.lend(cookies)
    copy.write_text("# Netsc")

    assert copies.take_back(copy, cookies, ended=False)
    assert cookies.read_text() == login()


@pytest.mark.parametrize(
    ("text", "signed_in"),
    [(login(), True), (login(expires="0"), True), (login(expires="1"), False), (HEAD + OTHER, False), ("", False)],
)
def test_a_sign_in_is_a_cookie_that_has_not_expired(text: str, signed_in: bool) -> None:
    assert is_signed_in(text) is signed_in


# -- the guard -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "169.254.169.254", "192.168.0.1", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "::1", "fe80::1%eth0", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "not an address",
    ],
)  # fmt: skip
def test_an_address_that_is_not_the_internet_s_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["142.250.1.1", "2a00:1450::1", "::ffff:142.250.1.1", "64:ff9b::8efa:101"])
def test_the_internet_s_addresses_are_public(address: str) -> None:
    assert is_public(address)


# -- quality ---------------------------------------------------------------------------------------------------


def job(**fields: Any) -> Job:
    given: dict[str, Any] = {
        "url": "https://www.youtube.com/watch?v=x",
        "egress": "a",
        "proxy": None,
        "extractors": [],
    }
    given |= {"extractor_args": {}, "socket_timeout": 1, "allow_private": False, "max_bytes": 1 << 20}
    return Job(**{**given, **fields})


def info(*formats: tuple[str, int]) -> dict[str, Any]:
    listed = [{"format_id": name, "height": height, "vcodec": "a", "acodec": "none"} for name, height in formats]
    return {"id": "x", "formats": listed}


def refused_with(found: dict[str, Any], asked: Job) -> Code | None:
    try:
        check(found, asked, [], None)
    except SiteRefused as refusal:
        return refusal.code
    return None


def test_less_height_than_was_asked_for_is_low_quality() -> None:
    found = info(("18", 360), ("135", 480))

    assert refused_with(found, job(min_height=720)) is Code.LOW_QUALITY
    assert refused_with(found, job(min_height=480)) is None
    assert refused_with(found, job()) is None


def test_format_18_alone_is_low_quality_unless_it_is_what_was_asked_for() -> None:
    found = info(("18", 360))

    assert refused_with(found, job()) is Code.LOW_QUALITY
    assert refused_with(found, job(min_height=360)) is None
    assert refused_with(found, job(url="https://example.org/x")) is None


def test_sound_alone_has_no_height_to_be_too_low() -> None:
    sound = {"id": "x", "formats": [{"format_id": "140", "vcodec": "none", "acodec": "a"}]}

    assert refused_with(sound, job(min_height=720)) is None


# -- cursors and versions --------------------------------------------------------------------------------------


def test_a_cursor_comes_back_as_it_went_out() -> None:
    cursor = Cursor(lists=["https://a", "https://b"], read=7, query={"continuation": "c"}, of_page=2)

    assert Cursor.from_text(cursor.to_text()) == cursor


@pytest.mark.parametrize("text", ["", "x", "e30=", "bnVsbA==", "WzFd", "ü", "eyJsaXN0cyI6W119", "[" * 5000])
def test_what_is_no_cursor_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput, match="leave it out to begin anew"):
        Cursor.from_text(text)


def test_a_yt_dlp_s_age_is_read_from_its_version() -> None:
    assert age_in_days("2026.10.26", date(2026, 12, 26)) == 61
    assert age_in_days("2026.10.26.123456", date(2026, 10, 27)) == 1
    assert age_in_days("unknown", date(2026, 12, 26)) is None


def test_another_yt_dlp_at_the_ops_server_is_a_warning_and_a_leading_zero_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("include.ytdlp_ops.ops_server.client.version", lambda _: "2026.1.5")

    same, other, silent = (
        version_mismatch(ExtractedInfo(info={}, yt_dlp_version=there))
        for there in ("2026.01.05", "2026.10.26", None)
    )

    assert (same, silent) == (None, None)
    assert other == (
        "yt-dlp 2026.10.26 extracted and 2026.1.5 downloads: install the same on the ops server and the workers"
    )
