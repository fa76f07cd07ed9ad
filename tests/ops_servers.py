"""An ops server of its own process, and what tests ask of one."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx  # noqa: TID253 -- a test's module, no DAG file imports it
import pytest

from include.ytdlp_ops.errors import ExtractionRefused
from include.ytdlp_ops.ops_server.client import OpsServerClient
from tests.offline_youtube.server import OfflineYouTube

ROOT = Path(__file__).parents[1]
TOKEN = "a-token-of-the-tests"
GOOD = "https://www.youtube.com/watch?v=ok-00000001"
START_SECONDS = 30
COMMAND = [sys.executable, "-m", "include.ytdlp_ops.ops_server"]


class OpsServer:
    """One server process; its log is kept. `each` gives further fields of an egress by its name."""

    def __init__(self, folder: Path, egresses: dict[str, str | None], bundle: Path, **fields: Any) -> None:
        self.config_file, ready = folder / "ops_server.yaml", folder / "ready.json"
        more: dict[str, Any] = fields.pop("each", {})
        listed = [{"name": name, "proxy": proxy, **more.get(name, {})} for name, proxy in egresses.items()]
        self.fields = {"egresses": listed, "workers": 2, **fields}
        self.write_config()
        self.log_file = folder / "log"
        environ = {**os.environ, "YTDLP_OPS_SERVER_TOKEN": TOKEN, "YTDLP_OPS_CA_FILE": str(bundle)}
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [*COMMAND, "--config", str(self.config_file), "--ready-file", str(ready)],
                cwd=ROOT,
                env=environ,
                stderr=log,
            )
        try:
            wait_for(lambda: ready.exists() or self.process.poll() is not None, "the ready file")
            assert ready.exists(), self.log
            self.url: str = json.loads(ready.read_text())["url"]
            wait_for(self.is_ready, "readyz")
        except BaseException:
            self.stop()
            raise

    def write_config(self, **fields: Any) -> None:
        """Write its file, with these fields anew."""
        self.fields |= fields
        self.config_file.write_text(json.dumps(self.fields))  # JSON is YAML

    def warnings(self) -> list[str]:
        """What /readyz warns of."""
        warned: list[str] = httpx.get(f"{self.url}/readyz").json()["warnings"]
        return warned

    def is_ready(self) -> bool:
        return httpx.get(f"{self.url}/readyz").status_code == 200

    def client(self) -> OpsServerClient:
        return OpsServerClient(self.url, TOKEN)

    def forget(self) -> None:
        """All that is known of its egresses and accounts."""
        with self.client() as client:
            for one in client.egresses():
                client.reset(one.name)
            for one in client.accounts():
                client.reset(one.name, kind="account")

    def post(self, body: Any = None, **how: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {TOKEN}", **how.pop("headers", {})}
        path = how.pop("path", "/v1/info")
        return httpx.post(f"{self.url}{path}", json=body, headers=headers, timeout=60, **how)

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def workers(self) -> list[int]:
        """The process ids of its children."""
        return [
            int(pid)
            for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        ]

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(20)


def wait_for(what: Any, name: str) -> None:
    """For what no event tells of: poll, with a limit that only a failure meets."""
    limit = time.monotonic() + START_SECONDS
    while not what():
        assert time.monotonic() < limit, f"{name} did not come"
        time.sleep(0.02)


@contextmanager
def all_gone(pids: list[int]) -> Iterator[None]:
    """Afterwards these processes have ended, and the kernel says so (pidfd)."""
    with ExitStack() as stack:
        handles = [os.pidfd_open(pid) for pid in pids]
        for handle in handles:
            stack.callback(os.close, handle)
        yield
        left = set(handles)
        while left:
            ended, _, _ = select.select(left, [], [], 10)
            assert ended, "a process is left"
            left -= set(ended)


def start(site: OfflineYouTube, folder: Path, egresses: tuple[str, ...], **fields: Any) -> OpsServer:
    return OpsServer(folder, {name: site.proxy(name) for name in egresses}, site.bundle_file, **fields)


def refusal(server: OpsServer, url: str, **asked: Any) -> ExtractionRefused:
    with server.client() as client, pytest.raises(ExtractionRefused) as caught:
        client.info(url, **asked)
    return caught.value


def problem(response: httpx.Response) -> dict[str, Any]:
    """The problem that a response holds, with all that the contract promises of one."""
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body.keys() == {
        "type", "title", "status", "detail", "code", "outcome", "retry_after", "egress", "account",
    }  # fmt: skip
    assert body["status"] == response.status_code
    return body


def open_sockets(pid: int) -> int:
    return sum(str(path.readlink()).startswith("socket:") for path in Path(f"/proc/{pid}/fd").iterdir())
