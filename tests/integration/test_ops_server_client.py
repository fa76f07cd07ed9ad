"""The ops server's client against servers that are down, slow, or somebody else's."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import ConfigurationError, ExtractionRefused, OpsServerUnavailable
from include.ytdlp_ops.ops_server.client import OpsServerClient
from tests.ops_servers import GOOD, START_SECONDS, TOKEN


@contextmanager
def answering(reply: bytes, *, stay: bool = False) -> Iterator[str]:
    """A server that answers its only request with these bytes, and then closes or stays silent."""
    done = threading.Event()

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            received = b""
            while b"\r\n\r\n" not in received or not received.endswith(b"}"):
                received += connection.recv(65536)
            connection.sendall(reply)
            if stay:
                done.wait(START_SECONDS)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            done.set()
            thread.join()


def http(body: bytes, status: str = "200 OK", kind: str = "application/json", length: int | None = None) -> bytes:
    length = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (b"", "can't be asked: RemoteProtocolError"),
        (b"220 mail ready\r\n", "can't be asked: RemoteProtocolError"),
        (http(b"<html>hello</html>", kind="text/html"), "answers 200 with what is not JSON (text/html, 18 bytes)"),
        (http(b'{"info": {"id"', length=500), "can't be asked: RemoteProtocolError"),
        (http(b'{"info": {"id"'), "answers 200 with what is not JSON"),
        (http(b"[]"), "answers JSON of another shape: the answer"),
        (http(b"{}"), "answers JSON of another shape: info: Field required"),
        (http(b'{"info": "x"}'), "answers JSON of another shape: info: "),
        (http(b'{"info": {}, "expires_at": "soon"}'), "answers JSON of another shape: expires_at: "),
        (http(b"<html>", "502 Bad Gateway", "text/html"), "answers 502 without a problem's JSON"),
        (http(b"{}", "401 Unauthorized"), "check the password of connection ytdlp_ops_server"),
        (http(b"{", "502 Bad Gateway", "application/problem+json"), "answers 502 with what is not JSON"),
        (
            http(b"[]", "502 Bad Gateway", "application/problem+json"),
            "answers 502 with a problem that has no code",
        ),
        (http(b"", "302 Found\r\nLocation: http://127.0.0.1:1/"), "answers 302 without a problem's JSON"),
    ],
)
def test_an_answer_that_is_none_of_the_contract_s_names_the_server_and_what_came(reply: bytes, said: str) -> None:
    with (
        answering(reply) as url,
        OpsServerClient(url, TOKEN) as client,
        pytest.raises(OpsServerUnavailable) as caught,
    ):
        client.info(GOOD)

    assert said in str(caught.value)
    assert url.removeprefix("http://") in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_server_that_is_down_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    with (
        OpsServerClient(f"http://127.0.0.1:{port}", None) as client,
        pytest.raises(OpsServerUnavailable, match=f"127.0.0.1:{port} can't be asked: ConnectError"),
    ):
        client.info(GOOD)


@pytest.mark.parametrize(
    ("base_url", "token", "said"),
    [
        ("http://host:port", TOKEN, "'http://host:port' is not a URL"),
        ("http://host", f"{TOKEN}\n", "the token of host"),
        ("http://host", f"{TOKEN}é", "the token of host"),
    ],
)
def test_a_client_that_could_not_ask_is_refused_without_showing_its_token(
    base_url: str, token: str, said: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        OpsServerClient(base_url, token)

    assert said in str(caught.value)
    assert "connection ytdlp_ops_server" in str(caught.value)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("sent", [b"", http(b"{", length=100)])
def test_a_server_that_hangs_is_left_in_time(sent: bytes) -> None:
    with (
        answering(sent, stay=True) as url,
        OpsServerClient(url, TOKEN, timeout_seconds=0.3) as client,
        pytest.raises(OpsServerUnavailable, match="did not answer in time"),
    ):
        client.info(GOOD)


def test_another_server_s_answer_may_hold_more_and_less() -> None:
    with answering(http(b'{"info": {"id": "x"}, "colour": "red"}')) as url, OpsServerClient(url, None) as client:
        answer = client.info(GOOD)

    assert answer.info == {"id": "x"}
    assert (answer.egress, answer.proxy, answer.expires_at, answer.warnings) == (None, None, None, ())


@pytest.mark.parametrize(
    ("body", "code", "outcome", "message"),
    [
        ({"code": "geo", "detail": "not here"}, Code.GEO, Outcome.SKIP, "not here"),
        ({"code": "geo", "outcome": "rotate", "title": "t"}, Code.GEO, Outcome.ROTATE, "t"),
        ({"code": "weather", "detail": "rain"}, Code.UNKNOWN, Outcome.RETRY, "weather: rain"),
        ({"code": "weather", "outcome": "defer"}, Code.UNKNOWN, Outcome.DEFER, "weather: status 418"),
        ({"code": "geo", "outcome": ["?"], "retry_after": "x"}, Code.GEO, Outcome.SKIP, "status 418"),
    ],
)
def test_a_problem_is_read_from_its_body_whatever_the_status(
    body: dict[str, Any], code: Code, outcome: Outcome, message: str
) -> None:
    reply = http(json.dumps(body).encode(), "418 I'm a teapot", "application/problem+json")

    with (
        answering(reply) as url,
        OpsServerClient(url, TOKEN) as client,
        pytest.raises(ExtractionRefused) as caught,
    ):
        client.info(GOOD)

    assert (caught.value.code, caught.value.outcome, caught.value.message) == (code, outcome, message)
    assert caught.value.retry_after is None
