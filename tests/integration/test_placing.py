"""Files get to where they are wanted whole, once, and never onto another."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import DownloadFailed
from include.ytdlp_ops.storage.placing import place

NAME = "Title [dQw4w9WgXcQ].299.mp4"


def a_file(directory: Path, content: bytes = b"media") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "299.mp4"
    path.write_bytes(content)
    return path


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A directory on another file system."""
    directory = Path(tempfile.mkdtemp(dir="/dev/shm"))
    assert directory.stat().st_dev != tmp_path.stat().st_dev
    yield directory
    shutil.rmtree(directory)


def listing(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_a_file_moves_under_its_name(tmp_path: Path) -> None:
    source, output = a_file(tmp_path / "work"), tmp_path / "new" / "output"
    inode = source.stat().st_ino

    placed = place(source, output, NAME)

    assert placed == output / NAME
    assert placed.stat().st_ino == inode
    assert not source.exists()
    assert listing(output) == {NAME: b"media"}


def test_a_file_moves_to_another_file_system(tmp_path: Path, elsewhere: Path) -> None:
    source = a_file(elsewhere, os.urandom(3_000_000))
    content = source.read_bytes()

    place(source, tmp_path / "output", NAME)

    assert listing(tmp_path / "output") == {NAME: content}
    assert not source.exists()


@pytest.mark.parametrize("across", [False, True])
def test_another_file_of_that_name_is_left_alone(tmp_path: Path, elsewhere: Path, across: bool) -> None:
    output, work = tmp_path / "output", elsewhere if across else tmp_path / "work"
    for content in (b"first", b"other", b"third"):
        place(a_file(work, content), output, NAME)

    assert listing(output) == {
        NAME: b"first",
        "Title [dQw4w9WgXcQ].299 (2).mp4": b"other",
        "Title [dQw4w9WgXcQ].299 (3).mp4": b"third",
    }


@pytest.mark.parametrize("across", [False, True])
def test_the_same_file_again_is_that_file(tmp_path: Path, elsewhere: Path, across: bool) -> None:
    output, work = tmp_path / "output", elsewhere if across else tmp_path / "work"
    first = place(a_file(work), output, NAME)

    second = place(source := a_file(work), output, NAME)

    assert second == first
    assert not source.exists()
    assert listing(output) == {NAME: b"media"}


def test_a_crash_between_the_two_halves_of_a_move_is_made_good(tmp_path: Path) -> None:
    source, output = a_file(tmp_path / "work"), tmp_path / "output"
    output.mkdir()
    os.link(source, output / NAME)

    placed = place(source, output, NAME)

    assert placed == output / NAME
    assert not source.exists()
    assert listing(output) == {NAME: b"media"}


def test_a_link_of_that_name_is_neither_followed_nor_replaced(tmp_path: Path) -> None:
    source, output = a_file(tmp_path / "work"), tmp_path / "output"
    output.mkdir()
    (tmp_path / "victim").write_bytes(b"media")
    (output / NAME).symlink_to(tmp_path / "victim")

    placed = place(source, output, NAME)

    assert placed.name == "Title [dQw4w9WgXcQ].299 (2).mp4"
    assert (output / NAME).is_symlink()


@pytest.mark.parametrize("name", ["../../escaped.mp4", "/escaped.mp4", "a/../../escaped.mp4"])
def test_a_name_does_not_lead_out_of_the_directory(tmp_path: Path, name: str) -> None:
    placed = place(a_file(tmp_path / "work"), tmp_path / "deep" / "output", name)

    assert placed.parent == tmp_path / "deep" / "output"
    assert not list(tmp_path.glob("escaped*"))


def test_many_at_once_with_one_name_all_arrive(tmp_path: Path) -> None:
    sources = [a_file(tmp_path / f"work{number}", str(number).encode()) for number in range(24)]

    with ThreadPoolExecutor(8) as pool:
        placed = list(pool.map(lambda source: place(source, tmp_path / "output", NAME), sources))

    assert len(set(placed)) == 24
    assert sorted(listing(tmp_path / "output").values()) == sorted(str(number).encode() for number in range(24))


@pytest.mark.parametrize("across", [False, True])
def test_a_file_system_without_hard_links_will_do(
    tmp_path: Path, elsewhere: Path, across: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")  # exFAT, many network file systems

    monkeypatch.setattr(os, "link", refuse)
    work = elsewhere if across else tmp_path / "work"
    place(a_file(work, b"first"), tmp_path / "output", NAME)

    place(a_file(work, b"other"), tmp_path / "output", NAME)

    assert listing(tmp_path / "output") == {NAME: b"first", "Title [dQw4w9WgXcQ].299 (2).mp4": b"other"}


def test_a_disk_that_fills_up_leaves_the_source_and_no_half(
    tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_up(reader: Any, writer: Any, length: int) -> None:
        writer.write(reader.read(2))
        raise OSError(errno.ENOSPC, "No space left on device")

    source = a_file(elsewhere)
    monkeypatch.setattr(shutil, "copyfileobj", fill_up)

    with pytest.raises(DownloadFailed, match="No space left") as failed:
        place(source, tmp_path / "output", NAME)

    assert (failed.value.code, failed.value.outcome) == (Code.DISK, Outcome.OPERATOR)
    assert source.read_bytes() == b"media"
    assert listing(tmp_path / "output") == {}


def test_an_output_directory_that_is_a_file_is_this_hosts_trouble(tmp_path: Path) -> None:
    (tmp_path / "output").touch()

    with pytest.raises(DownloadFailed, match="can't be moved") as failed:
        place(a_file(tmp_path / "work"), tmp_path / "output", NAME)

    assert failed.value.code is Code.LOCAL_IO


def test_a_source_that_is_gone_is_this_hosts_trouble(tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed) as failed:
        place(tmp_path / "gone", tmp_path / "output", NAME)

    assert failed.value.code is Code.LOCAL_IO
