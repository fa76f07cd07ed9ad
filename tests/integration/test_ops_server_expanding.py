"""Lists of the offline YouTube, page by page through a real server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.ops_server.client import ExpandedPage
from include.ytdlp_ops.ops_server.expanding import Cursor
from tests.answering import answering
from tests.offline_youtube.server import OfflineYouTube
from tests.ops_servers import GOOD, OpsServer, problem, start

LIST = "https://www.youtube.com/playlist?list=PLofflineofflineofflineoffline-{}"
CHANNEL = "https://www.youtube.com/@offline-7"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfflineYouTube]:
    with OfflineYouTube(tmp_path_factory.getbasetemp() / "offline-youtube") as site:
        yield site


@pytest.fixture(scope="module")
def server(site: OfflineYouTube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpsServer]:
    server = start(site, tmp_path_factory.mktemp("server"), ("good1", "good2"))
    yield server
    server.stop()


def pages(server: OpsServer, url: str, limit: int) -> list[ExpandedPage]:
    found, cursor = list[ExpandedPage](), None
    with server.client() as client:
        while not found or cursor:
            found.append(client.expand(url, cursor=cursor, limit=limit))
            cursor = found[-1].cursor
            assert len(found) < 30, "it does not end"
    return found


def ids(found: list[ExpandedPage]) -> list[str | None]:
    return [entry.id for page in found for entry in page.entries]


def numbered(many: int) -> list[str]:
    return [f"ok-{number:08d}" for number in range(1, many + 1)]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 200])
def test_a_playlist_comes_whole_and_in_order_whatever_the_pages(server: OpsServer, limit: int) -> None:
    found = pages(server, LIST.format(7), limit)

    assert ids(found) == numbered(7)
    assert all(len(page.entries) <= limit for page in found)


def test_an_entry_is_a_url_that_can_be_submitted(server: OpsServer) -> None:
    (page,) = pages(server, LIST.format(2), 10)

    assert page.entries[0].url == GOOD
    assert page.entries[0].title == "Offline video ok-00000001"
    assert page.title == "Offline playlist PLofflineofflineofflineoffline-2"
    assert page.egress in ("good1", "good2")


@pytest.mark.parametrize("url", [CHANNEL, f"{CHANNEL}/videos"])
def test_a_handle_gives_the_videos_of_its_channel(server: OpsServer, url: str) -> None:
    found = pages(server, url, 3)

    assert ids(found) == numbered(7)


def test_a_video_is_a_list_of_itself(server: OpsServer) -> None:
    found = pages(server, GOOD, 10)

    assert [entry.url for page in found for entry in page.entries] == [GOOD]


def test_going_on_costs_as_little_at_the_end_of_fifty_thousand_as_at_the_beginning(
    server: OpsServer, site: OfflineYouTube
) -> None:
    name = "PLofflineofflineofflineoffline-50000"
    url = LIST.format(50000)
    far = Cursor(lists=[url], read=49_996, query={"continuation": f"playlist:{name}:16665"}, of_page=1)
    site.reset()

    with server.client() as client:
        page = client.expand(url, cursor=far.to_text(), limit=3)
        last = client.expand(url, cursor=page.cursor, limit=3)

    assert [entry.id for entry in page.entries] == ["ok-00049997", "ok-00049998", "ok-00049999"]
    assert ([entry.id for entry in last.entries], last.cursor) == (["ok-00050000"], None)
    assert len(site.log) <= 8


def test_what_another_extractor_calls_a_list_comes_page_by_page_too(
    site: OfflineYouTube, tmp_path_factory: pytest.TempPathFactory
) -> None:
    items = "".join(f"<item><title>t{n}</title><link>https://a.example/{n}</link></item>" for n in range(1, 6))
    feed = f"<rss version='2.0'><channel><title>A feed</title>{items}</channel></rss>".encode()
    fields: dict[str, Any] = {"workers": 1, "extractors": ["generic"], "allow_private_targets": True}
    server = OpsServer(tmp_path_factory.mktemp("generic"), {"own": None}, site.bundle_file, **fields)
    try:
        with answering(content=feed, kind="application/rss+xml") as origin:
            found = pages(server, f"http://127.0.0.1:{origin.port}/feed", 2)
    finally:
        server.stop()

    assert [entry.url for page in found for entry in page.entries] == [
        f"https://a.example/{n}" for n in range(1, 6)
    ]
    assert [len(page.entries) for page in found] == [2, 2, 1]
    assert found[0].title == "A feed"


def test_any_server_goes_on_from_a_cursor(
    server: OpsServer, site: OfflineYouTube, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with server.client() as client:
        first = client.expand(LIST.format(5), limit=2)
    other = start(site, tmp_path_factory.mktemp("other"), ("good1",), workers=1)
    try:
        with other.client() as client:
            second = client.expand(LIST.format(5), cursor=first.cursor, limit=10)
    finally:
        other.stop()

    assert ids([first, second]) == numbered(5)


@pytest.mark.parametrize(
    ("url", "code"),
    [("https://www.youtube.com/playlist?list=PLmissing", Code.NO_SUCH_LIST), ("https://a.b/", Code.BAD_URL)],
)
def test_a_list_that_is_not_there_is_a_problem(server: OpsServer, url: str, code: Code) -> None:
    response = server.post({"url": url}, path="/v1/expand")

    said = problem(response)
    assert (said["code"], said["outcome"]) == (code, Outcome.SKIP)


@pytest.mark.parametrize(
    ("cursor", "code"),
    [
        ("bad", "bad_input"),
        (Cursor(lists=["http://169.254.169.254/"]).to_text(), "bad_url"),
        (Cursor(lists=["file:///etc/passwd"]).to_text(), "bad_url"),
        (Cursor(lists=[GOOD, "http://10.0.0.1/"]).to_text(), "bad_url"),
    ],
)
def test_a_cursor_from_elsewhere_gets_nobody_further(server: OpsServer, cursor: str, code: str) -> None:
    response = server.post({"url": GOOD, "cursor": cursor}, path="/v1/expand")

    assert (response.status_code, problem(response)["code"]) == (422, code)
