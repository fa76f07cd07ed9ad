"""``python -m include.ytdlp_ops.local``: bad input is one clear line and a status that is not 0."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from include.ytdlp_ops.local.__main__ import main
from include.ytdlp_ops.local.folder import Folder


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """The command takes the process's signals; give them back."""
    asked = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in asked]
    yield
    for number, handler in zip(asked, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("url", ["ftp://example.org/x", "not a url", "https://user:pw@example.org/"])
def test_what_is_no_url_is_refused_before_anything_starts(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main([url, "--data-dir", str(tmp_path / "data")])

    said = capsys.readouterr().err
    assert status == 2
    assert said.startswith("ytdlp-ops: url: ")
    assert said.count("\n") == 1
    assert not (tmp_path / "data").exists()


def test_a_folder_that_another_stack_runs_on_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = Folder(tmp_path).lock()

    status = main(["--data-dir", str(tmp_path)])

    os.close(held)
    said = capsys.readouterr().err
    assert status == 2
    assert f"another stack (process {os.getpid()}) runs on {tmp_path}" in said
    assert said.count("\n") == 1


def test_a_damaged_secrets_file_starts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "secrets.json").write_text("{")

    status = main(["--data-dir", str(tmp_path)])

    assert status == 2
    assert "secrets.json is damaged" in capsys.readouterr().err
    assert not (tmp_path / "pg").exists()
