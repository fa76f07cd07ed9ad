"""Accounts, countries, second opinions and sick egresses: the pool of a real server at the offline YouTube."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import httpx  # noqa: TID253 -- a test's module, no DAG file imports it
import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.ops_server.client import StandingAnswer
from tests.offline_youtube.server import OfflineYouTube
from tests.ops_servers import GOOD, TOKEN, OpsServer, problem, refusal, start, wait_for
from tests.servers import Valkey

ALL = ["us1", "us2", "de1", "botip", "blind"]
MEMBERS_ONLY, FOR_GERMANY, GONE = "members-000", "geo-0000000", "gone-000000"


def cookies(folder: Path, login: str) -> Path:
    """A cookie file as a browser exports it."""
    path = folder / f"{login}.txt"
    names = {"LOGIN_INFO": login, "SAPISID": "s", "__Secure-3PAPISID": "s", "SID": "s"}
    lines = [f".youtube.com\tTRUE\t/\tTRUE\t4102444800\t{name}\t{value}" for name, value in names.items()]
    path.write_text("\n".join(["# Netscape HTTP Cookie File", *lines, ""]))
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfflineYouTube]:
    with OfflineYouTube(tmp_path_factory.getbasetemp() / "offline-youtube") as site:
        yield site


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pool")


@pytest.fixture(scope="module")
def server(site: OfflineYouTube, folder: Path) -> Iterator[OpsServer]:
    """Two egresses in one country, one in another, two sick ones; a member, and one whom the site signs out."""
    accounts = [
        {"name": "member", "cookies": str(cookies(folder, "member"))},
        {"name": "dying", "cookies": str(cookies(folder, "rotated")), "tags": ["dying"]},
    ]
    each = {"us1": {"country": "US"}, "us2": {"country": "US"}, "de1": {"country": "DE"}}
    server = start(site, folder, tuple(ALL), accounts=accounts, each=each)
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def _forgotten(server: OpsServer) -> None:
    server.forget()


def besides(*names: str) -> list[str]:
    """All egresses but these."""
    return [name for name in ALL if name not in names]


def standing(server: OpsServer, name: str) -> StandingAnswer:
    with server.client() as client:
        return next(one for one in [*client.egresses(), *client.accounts()] if one.name == name)


# -- accounts --------------------------------------------------------------------------------------------------


def test_a_video_for_members_comes_with_an_account_after_it_was_refused_without(server: OpsServer) -> None:
    with server.client() as client:
        answer = client.info(MEMBERS_ONLY, exclude_egress=besides("us1"))
        again = client.info(GOOD, exclude_egress=besides("us1"))

    assert (answer.account, answer.egress) == ("member", "us1")
    assert again.account is None
    assert standing(server, "member").last_hour == {"ok": 1}


def test_an_account_whose_session_was_ended_is_set_aside_with_a_notice_and_returns_with_new_cookies(
    server: OpsServer, folder: Path
) -> None:
    before = (folder / "rotated.txt").read_text()
    with server.client() as client:
        client.info(GOOD, account="dying", exclude_egress=besides("us1"))

    aside = standing(server, "dying")
    assert (aside.state, aside.reason) == ("banned", "cookies_rotated")
    assert "account dying is set aside: the site has signed it out" in server.log
    assert "account dying is set aside: cookies_rotated" in server.warnings()
    assert (folder / "rotated.txt").read_text() == before
    met = refusal(server, GOOD, account="dying")
    assert (met.code, met.outcome) == (Code.OPS_SERVER_UNAVAILABLE, Outcome.DEFER)

    os.utime(folder / "rotated.txt", (time.time() + 5, time.time() + 5))
    wait_for(lambda: standing(server, "dying").state == "healthy", "the account's return")


def test_no_cookie_is_shown_by_answer_log_or_metrics(server: OpsServer) -> None:
    with server.client() as client:
        answer = client.info(MEMBERS_ONLY, exclude_egress=besides("us1"))
    page = httpx.get(f"{server.url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).text

    assert "SAPISID" not in f"{answer.info} {server.log} {page}"


# -- countries and second opinions -----------------------------------------------------------------------------


def test_a_geo_locked_video_goes_out_through_its_country(server: OpsServer) -> None:
    with server.client() as client:
        answer = client.info(FOR_GERMANY, exclude_egress=["botip", "blind"])

    assert answer.egress == "de1"


def test_a_tag_sends_an_item_out_through_a_country(server: OpsServer, site: OfflineYouTube) -> None:
    site.reset()

    with server.client() as client:
        client.info(GOOD, tags=["country:DE"])

    assert {entry["egress"] for entry in site.log} == {"de1"}


def test_an_egress_that_calls_everything_unavailable_costs_no_video_and_rests(server: OpsServer) -> None:
    with server.client() as client:
        client.info(GOOD, exclude_egress=besides("us1"))  # the blind one's turn comes first
        answer = client.info(GOOD, exclude_egress=besides("us1", "blind"))

    assert answer.egress == "us1"
    assert standing(server, "blind").state == "cooling"


def test_a_video_that_two_egresses_miss_is_removed(server: OpsServer) -> None:
    met = refusal(server, GONE, exclude_egress=besides("us1", "us2"))

    assert (met.code, met.outcome) == (Code.REMOVED, Outcome.SKIP)
    assert standing(server, "us1").state == "healthy"


# -- sick egresses ---------------------------------------------------------------------------------------------


def test_a_bot_checked_egress_is_asked_once_and_then_rests(server: OpsServer) -> None:
    with server.client() as client:
        used = [client.info(GOOD, exclude_egress=["blind", "de1"]).egress for _ in range(6)]

    sick = standing(server, "botip")
    assert set(used) == {"us1", "us2"}
    assert (sick.state, sick.reason, sick.last_hour) == ("cooling", "bot_check", {"bot_check": 1})
    assert sick.cooling_until
    assert sick.cooling_until == pytest.approx(time.time() + 60, abs=30)


def test_what_a_worker_meets_later_counts_too(server: OpsServer) -> None:
    with server.client() as client:
        client.outcome("us2", Code.HTTP_429, stage="dl")
        client.outcome("us1", None)

    assert (standing(server, "us2").state, standing(server, "us1").last_hour) == ("cooling", {"ok": 1})


def test_a_banned_egress_is_left_out_until_it_is_returned_but_may_be_tried_by_name(server: OpsServer) -> None:
    others = besides("us1")
    with server.client() as client:
        client.ban("us1", reason="burnt")

        met = refusal(server, GOOD, exclude_egress=others)
        tried = client.info(GOOD, egress="us1")
        warned = server.warnings()
        client.unban("us1")
        back = client.info(GOOD, exclude_egress=others)

    assert (met.code, met.outcome) == (Code.OPS_SERVER_UNAVAILABLE, Outcome.DEFER)
    assert "egress us1 is set aside: burnt" in warned
    assert (tried.egress, back.egress) == ("us1", "us1")


@pytest.mark.parametrize("path", ["egresses/mars/ban", "accounts/mars/reset"])
def test_a_name_that_is_not_there_is_404_and_told_the_known_ones(server: OpsServer, path: str) -> None:
    response = httpx.post(f"{server.url}/v1/{path}", headers={"Authorization": f"Bearer {TOKEN}"})

    said = problem(response)
    assert (response.status_code, said["code"]) == (404, "bad_input")
    assert "'mars' is unknown; this server has" in said["detail"]


def test_an_action_that_is_not_there_is_told_the_known_ones(server: OpsServer) -> None:
    response = httpx.post(f"{server.url}/v1/egresses/us1/burn", headers={"Authorization": f"Bearer {TOKEN}"})

    assert response.status_code == 422
    assert "'ban', 'unban' or 'reset'" in problem(response)["detail"]


# -- wanted formats --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("video", "asked", "code", "outcome"),
    [
        ("only18-0000", {}, Code.LOW_QUALITY, Outcome.ROTATE),
        (GOOD, {"min_height": 4000}, Code.LOW_QUALITY, Outcome.ROTATE),
        (GOOD, {"formats": "no-such-format"}, Code.FORMAT_MISSING, Outcome.SKIP),
        (GOOD, {"formats": "best["}, Code.BAD_INPUT, Outcome.RETRY),
    ],
)
def test_an_info_without_what_was_asked_for_is_no_success(
    server: OpsServer, video: str, asked: dict[str, str | int], code: Code, outcome: Outcome
) -> None:
    met = refusal(server, video, egress="us1", **asked)

    assert (met.code, met.outcome) == (code, outcome)


def test_what_was_asked_for_and_is_there_is_a_success(server: OpsServer) -> None:
    with server.client() as client:
        answer = client.info(GOOD, egress="us1", formats="299+140", min_height=1080)

    assert (answer.live_status, answer.chapters, answer.automatic_captions) == ("not_live", (), ())


# -- what it says of itself ------------------------------------------------------------------------------------


def test_metrics_need_the_token_and_tell_of_answers_and_standings(server: OpsServer) -> None:
    with server.client() as client:
        client.info(GOOD, egress="us1")
        client.ban("us2")

    anonymous = httpx.get(f"{server.url}/metrics")
    page = httpx.get(f"{server.url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).text

    assert anonymous.status_code == 401
    assert 'ytdlp_ops_server_answers_total{code="ok",egress="us1"}' in page
    assert 'ytdlp_ops_server_standing{kind="egress",name="us2",state="banned"} 1.0' in page
    assert "ytdlp_ops_server_config_ok 1.0" in page
    assert 'ytdlp_ops_server_requests_total{path="/v1/info",status="200"}' in page


@pytest.mark.slow
def test_a_changed_configuration_holds_without_a_restart_and_a_broken_one_does_not(
    site: OfflineYouTube, tmp_path: Path
) -> None:
    server = start(site, tmp_path, ("us1",))
    try:
        server.config_file.write_text("egresses: [{name: us1}]\nworker: 1\n")
        wait_for(lambda: any("not reloaded" in said for said in server.warnings()), "the warning")
        with server.client() as client:
            assert client.info(GOOD).egress == "us1"
        assert any("ops_server.yaml:2: worker: unknown field" in said for said in server.warnings())

        server.write_config(egresses=[{"name": "us9", "proxy": site.proxy("us9")}])
        wait_for(lambda: not server.warnings(), "the warning's end")
        with server.client() as client:
            assert client.info(GOOD).egress == "us9"
    finally:
        server.stop()


@pytest.mark.slow
def test_two_servers_with_one_redis_share_their_pool(
    site: OfflineYouTube, valkey: Valkey, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with valkey.client() as client:
        client.flushall()
    servers = [
        start(site, tmp_path_factory.mktemp("shared"), ("us1",), workers=1, redis_url=valkey.url) for _ in range(2)
    ]
    try:
        with servers[0].client() as one:
            one.ban("us1", reason="seen by the first")

        assert standing(servers[1], "us1").reason == "seen by the first"
    finally:
        for each in servers:
            each.stop()


def test_a_redis_that_is_gone_is_said_and_ends_with_its_return(
    site: OfflineYouTube, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Valkey(tmp_path_factory.mktemp("own")) as valkey:
        server = start(site, tmp_path_factory.mktemp("server"), ("us1",), workers=1, redis_url=valkey.url)
        try:
            valkey.stop()
            met = refusal(server, GOOD)
            ready = httpx.get(f"{server.url}/readyz")
            valkey.start()

            with server.client() as client:
                back = client.info(GOOD)
        finally:
            server.stop()

    assert (met.code, met.outcome) == (Code.OPS_SERVER_UNAVAILABLE, Outcome.RETRY)
    assert f"Redis at 127.0.0.1:{valkey.port} can't keep the pool's standings" in met.message
    assert (ready.status_code, back.egress) == (503, "us1")
