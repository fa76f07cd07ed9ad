"""The ops server over real HTTP, with the real yt-dlp, against the offline YouTube."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx  # noqa: TID253 -- a test's module, no DAG file imports it
import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.ops_server.gate import MAX_BODY_BYTES
from tests.offline_youtube.server import OfflineYouTube
from tests.ops_servers import GOOD, TOKEN, OpsServer, problem, refusal, start, wait_for


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfflineYouTube]:
    with OfflineYouTube(tmp_path_factory.getbasetemp() / "offline-youtube") as site:
        yield site


@pytest.fixture(scope="module")
def server(site: OfflineYouTube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpsServer]:
    """Has two good egresses, and one for each way to fail."""
    names = ("good1", "good2", "botip", "ip429", "p407", "hang")
    server = start(site, tmp_path_factory.mktemp("server"), names, deadline_seconds=8)
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def _forgotten(server: OpsServer) -> None:
    """No test sees what another one made the server think of an egress."""
    server.forget()


# -- an info ---------------------------------------------------------------------------------------------------


def test_a_good_video_has_an_info_bound_to_its_egress(server: OpsServer, site: OfflineYouTube) -> None:
    before = time.time()

    with server.client() as client:
        answer = client.info("ok-00000001", egress="good1", tags=["x"])

    assert answer.info["id"] == "ok-00000001"
    assert {found["format_id"] for found in answer.info["formats"]} >= {"299", "140", "18"}
    assert (answer.egress, answer.proxy, answer.account) == ("good1", site.proxy("good1"), None)
    assert answer.expires_at is not None
    assert 21000 < answer.expires_at - before < 22000
    assert answer.client
    assert answer.yt_dlp_version


def test_an_answer_shows_neither_info_nor_proxy_when_printed(server: OpsServer, site: OfflineYouTube) -> None:
    with server.client() as client:
        answer = client.info(GOOD, egress="good1")

    assert "googlevideo" not in repr(answer)
    assert site.proxy("good1") not in repr(answer)


def test_the_client_that_was_asked_for_is_the_one_that_is_asked(server: OpsServer) -> None:
    with server.client() as client:
        answer = client.info(GOOD, egress="good1", client="visionos")

    assert answer.client == "visionos"


def test_a_live_has_an_info_and_the_worker_decides(server: OpsServer) -> None:
    with server.client() as client:
        answer = client.info("live-000000", egress="good1")

    assert answer.info["live_status"] == "is_live"


def test_egresses_are_used_in_turn(server: OpsServer) -> None:
    bad = ["botip", "ip429", "p407", "hang"]

    with server.client() as client:
        used = [client.info(GOOD, exclude_egress=bad).egress for _ in range(4)]

    assert set(used[:2]) == {"good1", "good2"}
    assert used[2:] == used[:2]


def test_eight_callers_at_once_all_get_the_video_they_asked_for(server: OpsServer) -> None:
    ids = [f"ok-{number:08d}" for number in range(16)]

    with server.client() as client, ThreadPoolExecutor(8) as callers:
        answers = list(callers.map(lambda video: client.info(video, egress="good1").info["id"], ids))

    assert answers == ids


# -- a refusal of the site -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("video", "status", "code", "outcome"),
    [
        ("private-000", 422, Code.PRIVATE, Outcome.SKIP),
        ("deleted-000", 422, Code.REMOVED, Outcome.SKIP),
        ("upcoming-00", 422, Code.UPCOMING, Outcome.DEFER),
        ("bot-0000000", 502, Code.BOT_CHECK, Outcome.ROTATE),
        ("limit-00000", 502, Code.RATE_LIMITED_SESSION, Outcome.ROTATE),
        ("h429-000000", 502, Code.HTTP_429, Outcome.ROTATE),
        ("gone-000000", 502, Code.UNAVAILABLE_UNEXPLAINED, Outcome.ROTATE),
    ],
)
def test_a_refusal_is_a_problem_with_code_and_outcome(
    server: OpsServer, video: str, status: int, code: Code, outcome: Outcome
) -> None:
    response = server.post({"url": video, "egress": "good1"})

    said = problem(response)
    assert (response.status_code, said["code"], said["outcome"]) == (status, code, outcome)
    assert said["egress"] == "good1"


def test_an_upcoming_video_says_when_to_come_again(server: OpsServer) -> None:
    met = refusal(server, "upcoming-00", egress="good1")

    assert met.retry_after is not None
    assert 6000 < met.retry_after < 8000


def test_a_proxy_that_refuses_is_the_egress_s_fault_and_its_password_is_not_shown(
    server: OpsServer, site: OfflineYouTube
) -> None:
    met = refusal(server, GOOD, egress="p407")

    assert (met.code, met.outcome, met.egress) == (Code.PROXY, Outcome.ROTATE, "p407")
    assert "p407:x" not in met.message + server.log


def test_a_list_is_no_video(server: OpsServer) -> None:
    met = refusal(
        server, "https://www.youtube.com/playlist?list=PLofflineofflineofflineofflineoff1", egress="good1"
    )

    assert (met.code, met.outcome) == (Code.BAD_URL, Outcome.SKIP)
    assert "POST /v1/expand gives its videos" in met.message


def test_storyboards_alone_are_no_usable_formats(server: OpsServer) -> None:
    met = refusal(server, "empty-00000", egress="good1")

    assert (met.code, met.outcome) == (Code.NO_USABLE_FORMATS, Outcome.ROTATE)


@pytest.mark.parametrize(
    "url",
    ["ftp://example.org/x", "http://127.0.0.1/x", "http://[::1]/x", "http://user:pw@example.org/", "no url"],
)
def test_a_url_that_must_not_be_asked_is_a_bad_url(server: OpsServer, url: str) -> None:
    response = server.post({"url": url})

    assert (response.status_code, problem(response)["code"]) == (422, "bad_url")


def test_a_site_that_is_not_allowed_is_a_bad_url(server: OpsServer) -> None:
    met = refusal(server, "https://example.org/video", egress="good1")

    assert (met.code, met.outcome) == (Code.BAD_URL, Outcome.SKIP)
    assert "extractors are youtube.*" in met.message


# -- rotation --------------------------------------------------------------------------------------------------


def test_a_bad_egress_gives_way_to_a_good_one(server: OpsServer, site: OfflineYouTube) -> None:
    with server.client() as client:
        client.info(GOOD, egress="good1")  # the others' turn comes before its next
        site.reset()

        answer = client.info(GOOD, exclude_egress=["good2", "hang"])

    assert answer.egress == "good1"
    assert site.log[-1]["egress"] == "good1"
    assert {entry["egress"] for entry in site.log} == {"botip", "ip429", "p407", "good1"}
    assert "egress=botip account=None code=bot_check" in server.log


def test_where_all_egresses_fail_the_last_one_answers(server: OpsServer) -> None:
    met = refusal(server, GOOD, exclude_egress=["good1", "good2", "hang", "p407"])

    assert (met.code, met.egress) in [(Code.BOT_CHECK, "botip"), (Code.HTTP_429, "ip429")]


def test_two_egresses_that_say_unavailable_are_believed(server: OpsServer) -> None:
    met = refusal(server, "gone-000000", exclude_egress=["botip", "ip429", "p407", "hang"])

    assert (met.code, met.outcome) == (Code.REMOVED, Outcome.SKIP)


def test_a_named_egress_is_not_left_for_another(server: OpsServer, site: OfflineYouTube) -> None:
    site.reset()

    met = refusal(server, GOOD, egress="botip")

    assert met.egress == "botip"
    assert {entry["egress"] for entry in site.log} == {"botip"}


def test_an_unknown_egress_is_told_the_known_ones(server: OpsServer) -> None:
    response = server.post({"url": GOOD, "egress": "mars"})

    said = problem(response)
    assert (response.status_code, said["code"]) == (422, "bad_input")
    assert "'mars' is unknown; this server has botip, good1, good2" in said["detail"]


def test_an_account_is_refused_where_there_are_none(server: OpsServer) -> None:
    met = refusal(server, GOOD, account="anna")

    assert "'anna' is unknown; this server has no accounts" in met.message


def test_nothing_is_left_where_every_egress_is_excluded(server: OpsServer) -> None:
    response = server.post({"url": GOOD, "egress": "good1", "exclude_egress": ["good1"]})

    said = problem(response)
    assert (response.status_code, said["code"], said["outcome"]) == (503, "ops_server_unavailable", "retry")


# -- what is no request ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}])
@pytest.mark.parametrize("path", ["/v1/info", "/v1/nowhere"])
def test_nothing_is_told_without_the_token(server: OpsServer, headers: dict[str, str], path: str) -> None:
    response = httpx.post(f"{server.url}{path}", content=b"{", headers=headers)

    assert response.status_code == 401
    assert problem(response)["outcome"] == "operator"
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"content": b"{"}, "the body is not JSON"),
        ({"content": b""}, "the body"),
        ({"content": b"\xff\xfe"}, "the body is not"),
        ({"json": []}, "the body"),
        ({"json": {}}, "url: Field required"),
        ({"json": {"url": 5}}, "url: Input should be a valid string, not 5"),
        ({"json": {"url": GOOD, "proxy": "http://x"}}, "proxy: unknown field"),
        ({"json": {"url": GOOD, "client": "web; rm"}}, "client: String should match"),
        ({"json": {"url": GOOD, "exclude_egress": "good1"}}, "exclude_egress: Input should be a valid list"),
    ],
)
def test_a_wrong_body_is_told_the_field_and_the_remedy(server: OpsServer, how: dict[str, Any], said: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}

    response = httpx.post(f"{server.url}/v1/info", headers=headers, **how)

    found = problem(response)
    assert (response.status_code, found["code"]) == (422, "bad_input")
    assert said in found["detail"]
    assert "Send a JSON object as application/json with: url, tags, client" in found["detail"]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_another_method_is_a_problem(server: OpsServer, method: str) -> None:
    response = httpx.request(method, f"{server.url}/v1/info", headers={"Authorization": f"Bearer {TOKEN}"})

    assert (response.status_code, problem(response)["code"]) == (405, "configuration")
    assert response.headers["allow"] == "POST"


def test_another_path_is_a_problem(server: OpsServer) -> None:
    response = httpx.get(f"{server.url}/nowhere%0aforged")

    assert (response.status_code, problem(response)["code"]) == (404, "configuration")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_long_is_refused_whatever_its_header_says(server: OpsServer, chunked: bool) -> None:
    content = b'{"url": "' + b"x" * MAX_BODY_BYTES + b'"}'

    response = server.post(content=iter([content]) if chunked else content)

    assert (response.status_code, problem(response)["code"]) == (413, "bad_input")


# -- what it says of itself ------------------------------------------------------------------------------------


def test_health_needs_no_token_and_readiness_says_what_was_loaded(server: OpsServer) -> None:
    health, ready = httpx.get(f"{server.url}/healthz"), httpx.get(f"{server.url}/readyz")

    assert (health.status_code, ready.status_code) == (200, 200)
    assert ready.json()["yt_dlp_version"]
    assert ready.json()["warnings"] == []


def test_openapi_tells_of_the_token_and_of_problems(server: OpsServer) -> None:
    described = httpx.get(f"{server.url}/openapi.json").json()

    operation = described["paths"]["/v1/info"]["post"]
    assert operation["security"] == [{"HTTPBearer": []}]
    assert set(operation["responses"]) == {"200", "401", "413", "422", "502", "503"}
    code = operation["responses"]["422"]["content"]["application/problem+json"]["schema"]["properties"]["code"]
    assert "bot_check" in code["enum"]


def test_the_log_has_a_line_a_request_without_query_body_or_secret(server: OpsServer) -> None:
    httpx.get(f"{server.url}/healthz?secret=one")
    httpx.get(f"{server.url}/forged%0aline")
    server.post({"url": GOOD, "egress": "good1", "tags": ["secret-tag"]})

    # the line comes after the answer
    for line in ("GET /healthz 200", "GET /forged%0aline 404", "POST /v1/info 200"):
        wait_for(lambda line=line: line in server.log, line)
    for secret in ("secret=one", "secret-tag", TOKEN, "good1:x", "googlevideo"):
        assert secret not in server.log
