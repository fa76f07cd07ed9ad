"""The management DAG's task against a real ops server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from airflow.sdk.exceptions import AirflowFailException

from include.ytdlp_ops.operators.managing_ops_server import ManageOpsServerOperator, as_table
from tests.offline_youtube.server import OfflineYouTube
from tests.ops_servers import GOOD, TOKEN, OpsServer, start


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpsServer]:
    with OfflineYouTube(tmp_path_factory.getbasetemp() / "offline-youtube") as site:
        server = start(site, tmp_path_factory.mktemp("server"), ("good", "botip"), workers=1)
        yield server
        server.stop()


@pytest.fixture(autouse=True)
def _connection(server: OpsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.forget()
    monkeypatch.setenv("AIRFLOW_CONN_YTDLP_OPS_SERVER", f"http://:{TOKEN}@{urlsplit(server.url).netloc}")


def manage(**form: str) -> dict[str, Any]:
    """Fill the form in and send it off."""
    context: Any = {}
    given = {"action": "list", "kind": "egress", "name": "", "reason": "", "url": "", **form}
    return ManageOpsServerOperator(task_id="manage_ops_server", **given).execute(context)


def test_a_list_says_how_all_stand(server: OpsServer) -> None:
    with server.client() as client:
        client.ban("good", reason="a reason to read")

        found = manage()
        table = as_table("egresses", client.egresses())

    assert found == {"egresses": {"good": "banned", "botip": "healthy"}, "accounts": {}}
    assert table[1].split() == ["good", "banned", "0/300", "-", "a", "reason", "to", "read"]


def test_a_ban_holds_until_it_is_taken_back() -> None:
    manage(action="ban", name="good", reason="x")
    banned = manage()["egresses"]["good"]

    manage(action="unban", name="good")

    assert (banned, manage()["egresses"]["good"]) == ("banned", "healthy")


def test_a_reset_ends_a_cool_down() -> None:
    with pytest.raises(AirflowFailException, match="bot_check"):
        manage(action="test", name="botip", url=GOOD)
    cooling = manage()["egresses"]["botip"]

    manage(action="reset", name="botip")

    assert (cooling, manage()["egresses"]["botip"]) == ("cooling", "healthy")


def test_a_test_says_what_the_egress_gives() -> None:
    found = manage(action="test", name="good", url=GOOD)

    assert (found["egress"], found["height"]) == ("good", 1080)
    assert found["formats"] > 3


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"action": "burn"}, "action 'burn' is none of list, ban"),
        ({"kind": "proxy"}, "kind 'proxy' is none of egress, account"),
        ({"action": "ban"}, "name: say which egress to ban"),
        ({"action": "test", "name": "good"}, "url: give the video to test with"),
        ({"action": "ban", "name": "mars"}, "'mars' is unknown; this server has botip, good"),
        ({"action": "reset", "kind": "account", "name": "mars"}, "'mars' is unknown; this server has no accounts"),
    ],
)
def test_a_form_that_can_not_be_done_is_told_why(form: dict[str, str], said: str) -> None:
    with pytest.raises(AirflowFailException, match=said):
        manage(**form)
