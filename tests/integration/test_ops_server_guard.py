"""Nobody reaches a private address through the ops server: by name, by redirect, or past the proxy."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.urls import is_public
from tests.answering import Answering, answering
from tests.offline_youtube.server import OfflineYouTube
from tests.ops_servers import ROOT, OpsServer, refusal


@pytest.fixture(scope="module")
def inner() -> Iterator[Answering]:
    """What nobody may reach."""
    with answering() as server:
        yield server


@pytest.fixture(scope="module")
def redirecting(inner: Answering) -> Iterator[Answering]:
    """A proxy whose every site leads inside."""
    with answering(f"http://127.0.0.1:{inner.port}/secret") as server:
        yield server


@pytest.fixture(scope="module")
def servers(
    redirecting: Answering, inner: Answering, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[OpsServer, OpsServer]]:
    """One with the guard, one that allows private targets."""
    site = OfflineYouTube(tmp_path_factory.getbasetemp() / "offline-youtube")  # for its certificates
    egresses = {"own": None, "proxied": f"http://127.0.0.1:{redirecting.port}"}
    with ExitStack() as stack:
        stack.callback(site.server_close)
        found = []
        for allowed in (False, True):
            fields: dict[str, Any] = {"extractors": ["generic"], "workers": 1, "allow_private_targets": allowed}
            server = OpsServer(tmp_path_factory.mktemp("guard"), egresses, site.bundle_file, **fields)
            stack.callback(server.stop)
            found.append(server)
        yield found[0], found[1]


def inside_name() -> str:
    """A name that resolves to an address of this machine, and is not spelled as one."""
    name = socket.gethostname()
    assert not is_public(socket.gethostbyname(name)), f"{name} resolves to a public address"
    return name


def test_a_name_that_resolves_to_a_private_address_is_refused_and_not_asked(
    servers: tuple[OpsServer, OpsServer], inner: Answering
) -> None:
    inner.asked.clear()

    met = refusal(servers[0], f"http://{inside_name()}:{inner.port}/secret", egress="own")

    assert (met.code, met.outcome) == (Code.BAD_URL, Outcome.SKIP)
    assert "resolves to the private address" in met.message
    assert inner.asked == []


def test_a_redirect_to_a_private_address_is_refused_and_not_followed(
    servers: tuple[OpsServer, OpsServer], redirecting: Answering, inner: Answering
) -> None:
    inner.asked.clear()
    redirecting.asked.clear()

    met = refusal(servers[0], "http://public.example/video", egress="proxied")

    assert (met.code, met.outcome) == (Code.BAD_URL, Outcome.SKIP)
    assert "'127.0.0.1' is a private address" in met.message
    assert redirecting.asked == ["http://public.example/video"]
    assert inner.asked == []


def test_where_private_targets_are_meant_they_are_reached(
    servers: tuple[OpsServer, OpsServer], inner: Answering
) -> None:
    inner.asked.clear()

    with servers[1].client() as client:
        answer = client.info(f"http://127.0.0.1:{inner.port}/x.mp4", egress="own")

    assert answer.info["url"].endswith("/x.mp4")
    assert inner.asked


def test_past_its_proxy_an_extraction_reaches_services_that_are_named_and_nothing_else(inner: Answering) -> None:
    """In a process of its own, as the guard changes the one it is in."""
    program = f"""
import socket
from include.ytdlp_ops.ops_server.guard import Guard
guard = Guard()
guard.install()
def reaches(port):
    try:
        socket.create_connection(("localhost", port), 5).close()
    except Exception as error:
        return type(error).__name__
    return "reached"
inner, proxy = {inner.port}, "http://127.0.0.1:1"
with guard.during(proxy, allow_private=False, services=[f"localhost:{{inner}}"]):
    print(reaches(inner), reaches(inner + 1))
with guard.during(proxy, allow_private=False):
    print(reaches(inner))
    try:
        socket.socket().connect(("142.250.1.1", 443))
    except OSError as error:
        print(error)
print(reaches(inner))
"""

    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert ran.stdout.splitlines() == [
        "reached BadInput",
        "BadInput",
        "[Errno 101] a connection past the proxy, to 142.250.1.1, was refused",
        "reached",
    ]
