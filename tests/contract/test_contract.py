"""What docs/ops-server.md promises of any ops server, asked over plain HTTP."""

from __future__ import annotations

import time
from typing import Any

import httpx  # noqa: TID253 -- a test's module, no DAG file imports it
import pytest

from include.ytdlp_ops.codes import Outcome
from tests.contract.conftest import Target

STATES = {"healthy", "cooling", "banned"}


def problem(response: httpx.Response) -> dict[str, Any]:
    assert response.headers["content-type"].startswith("application/problem+json")
    said: dict[str, Any] = response.json()
    assert said["status"] == response.status_code
    assert isinstance(said["code"], str)
    assert said["outcome"] in set(Outcome)
    assert said["detail"]
    return said


def test_it_is_alive_and_describes_itself_without_a_token(target: Target) -> None:
    health = httpx.get(f"{target.url}/healthz")
    described = httpx.get(f"{target.url}/openapi.json").json()

    assert health.status_code == 200
    paths = {"/v1/info", "/v1/expand", "/v1/outcomes", "/v1/egresses", "/v1/accounts"}
    assert paths <= described["paths"].keys()


def test_it_is_ready_and_says_which_yt_dlp_it_has(target: Target) -> None:
    ready = httpx.get(f"{target.url}/readyz")

    assert ready.status_code == 200
    assert ready.json()["yt_dlp_version"]
    assert isinstance(ready.json()["warnings"], list)


@pytest.mark.parametrize("path", ["/v1/info", "/v1/expand", "/v1/outcomes"])
def test_nothing_is_told_without_the_token(target: Target, path: str) -> None:
    response = httpx.post(f"{target.url}{path}", json={"url": target.video})

    assert response.status_code == 401
    problem(response)


def test_a_video_has_an_info_with_formats_that_can_be_downloaded(target: Target) -> None:
    response = target.ask("POST", "/v1/info", {"url": target.video})

    assert response.status_code == 200, response.text[:500]
    answer = response.json()
    assert answer["info"]["id"]
    assert all(each["url"] and each["format_id"] for each in answer["info"]["formats"])
    assert answer["egress"]
    assert answer["expires_at"] is None or answer["expires_at"] > time.time()


def test_a_named_egress_is_the_one_that_answers(target: Target) -> None:
    name = target.ask("GET", "/v1/egresses").json()[0]["name"]

    answer = target.ask("POST", "/v1/info", {"url": target.video, "egress": name}).json()

    assert answer["egress"] == name


@pytest.mark.parametrize(
    "body",
    [
        {"url": "no url"},
        {"url": "ftp://example.org/x"},
        {"url": "http://127.0.0.1/x"},
        {"url": "http://169.254.169.254/latest"},
        {"url": 5},
        {},
        [],
        {"url": "https://www.youtube.com/watch?v=jNQXAC9IVRw", "egress": "no-such-egress"},
        {"url": "https://www.youtube.com/watch?v=jNQXAC9IVRw", "account": "no-such-account"},
    ],
)
def test_what_must_not_be_asked_is_a_problem_of_the_caller_s(target: Target, body: Any) -> None:
    response = target.ask("POST", "/v1/info", body)

    assert 400 <= response.status_code < 500
    problem(response)


def test_a_body_of_a_megabyte_is_refused(target: Target) -> None:
    response = target.ask("POST", "/v1/info", {"url": "x" * (1 << 20)})

    assert 400 <= response.status_code < 500


def test_a_list_comes_page_by_page_without_doubles(target: Target) -> None:
    first = target.ask("POST", "/v1/expand", {"url": target.list_url, "limit": 1}).json()
    second = target.ask(
        "POST", "/v1/expand", {"url": target.list_url, "limit": 2, "cursor": first["cursor"]}
    ).json()

    urls = [entry["url"] for page in (first, second) for entry in page["entries"]]
    assert len(urls) == len(set(urls)) == 3


def test_outcomes_are_taken_and_of_an_unknown_egress_refused(target: Target) -> None:
    name = target.ask("GET", "/v1/egresses").json()[0]["name"]

    taken = target.ask("POST", "/v1/outcomes", {"egress": name, "code": "ok", "stage": "dl"})
    refused = target.ask("POST", "/v1/outcomes", {"egress": "no-such-egress", "code": "ok"})

    assert taken.is_success
    assert 400 <= refused.status_code < 500
    problem(refused)


def test_egresses_and_accounts_have_a_name_and_a_state(target: Target) -> None:
    egresses, accounts = (target.ask("GET", f"/v1/{kind}").json() for kind in ("egresses", "accounts"))

    assert egresses
    assert all(one["name"] and one["state"] in STATES for one in [*egresses, *accounts])


def test_a_ban_holds_until_it_is_taken_back(target: Target) -> None:
    def state(name: str) -> str:
        return next(str(one["state"]) for one in target.ask("GET", "/v1/egresses").json() if one["name"] == name)

    name = target.ask("GET", "/v1/egresses").json()[-1]["name"]

    banned = target.ask("POST", f"/v1/egresses/{name}/ban")
    between = state(name)
    returned = target.ask("POST", f"/v1/egresses/{name}/unban")

    assert banned.is_success
    assert returned.is_success
    assert (between, state(name)) == ("banned", "healthy")


def test_an_egress_that_is_not_there_can_not_be_banned(target: Target) -> None:
    response = target.ask("POST", "/v1/egresses/no-such-egress/ban")

    assert response.status_code == 404
    problem(response)
