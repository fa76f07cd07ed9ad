"""Publishing to a directory, in the same file system and in another: whole, verified, never onto another file."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import ConfigurationError, Refusal
from include.ytdlp_ops.storage.publishing.destinations import Files, open_destination, publish
from include.ytdlp_ops.storage.publishing.sidecars import write_description, write_info_json

STEM = PurePosixPath("Channel", "Title [id]")


@pytest.fixture(params=["same file system", "another one"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A destination; memory is another file system than the one with the temporary files."""
    if request.param == "same file system":
        yield tmp_path / "destination"
        return
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    assert folder.stat().st_dev != tmp_path.stat().st_dev
    yield folder
    shutil.rmtree(folder)


def a_file(tmp_path: Path, content: bytes, name: str = "merged.mp4") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


def below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_files_arrive_with_their_size_and_hash_and_the_staging_stays(root: Path, tmp_path: Path) -> None:
    content = os.urandom(3 << 20)
    path = a_file(tmp_path, content)
    info = write_info_json({"id": "id", "title": "é"}, tmp_path)

    made = publish(Files(STEM, (".mp4", path), {".info.json": info}), root)

    assert [one.uri for one in made] == [f"{root}/{STEM}.mp4", f"{root}/{STEM}.info.json"]
    assert (made[0].bytes, made[0].sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert Path(made[0].uri).read_bytes() == path.read_bytes() == content
    assert below(root) == [f"{STEM}.info.json", f"{STEM}.mp4"]


def test_publishing_again_changes_nothing(root: Path, tmp_path: Path) -> None:
    path = a_file(tmp_path, b"one")
    files = Files(STEM, (".mp4", path), {})
    first = publish(files, root)
    inode = Path(first[0].uri).stat().st_ino

    assert publish(files, root) == first
    assert Path(first[0].uri).stat().st_ino == inode
    assert below(root) == [f"{STEM}.mp4"]


def test_another_video_of_that_name_is_numbered_and_its_sidecars_too(root: Path, tmp_path: Path) -> None:
    for content in (b"one", b"two", b"six"):
        path = a_file(tmp_path, content, content.decode())
        text = write_description({"description": content.decode()}, tmp_path)
        assert text
        publish(Files(STEM, (".mp4", path), {".description": text}), root)

    texts = {name: (root / name).read_text() for name in below(root)}
    assert texts == {
        f"{STEM}{number}{ending}": text
        for number, text in (("", "one"), (" (2)", "two"), (" (3)", "six"))
        for ending in (".mp4", ".description")
    }


def test_a_sidecar_that_changed_replaces_the_earlier_one(root: Path, tmp_path: Path) -> None:
    path = a_file(tmp_path, b"one")
    for views in (1, 2):
        made = publish(Files(STEM, (".mp4", path), {".info.json": write_info_json({"n": views}, tmp_path)}), root)

    assert Path(made[1].uri).read_text() == '{\n "n": 2\n}\n'
    assert below(root) == [f"{STEM}.info.json", f"{STEM}.mp4"]


def test_a_link_in_the_way_is_not_followed(root: Path, tmp_path: Path) -> None:
    path, victim = a_file(tmp_path, b"one"), a_file(tmp_path, b"one", "victim")
    (root / STEM).parent.mkdir(parents=True)
    (root / f"{STEM}.mp4").symlink_to(victim)

    made = publish(Files(STEM, (".mp4", path), {}), root)

    assert made[0].uri == f"{root}/{STEM} (2).mp4"
    assert victim.read_bytes() == b"one"


def test_of_several_that_come_at_once_each_keeps_its_own_file(root: Path, tmp_path: Path) -> None:
    paths = [a_file(tmp_path, bytes([number]) * 100_000, str(number)) for number in range(8)]
    made: dict[Path, str] = {}
    threads = [
        threading.Thread(
            target=lambda path=path: made.update({path: publish(Files(STEM, (".mp4", path), {}), root)[0].uri})
        )
        for path in paths
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(made.values())) == len(paths)
    assert all(Path(made[path]).read_bytes() == path.read_bytes() for path in paths)


@pytest.mark.slow  # it is read to its end
def test_a_sparse_file_of_two_gigabytes_arrives(tmp_path: Path) -> None:
    path = tmp_path / "sparse.mp4"
    with path.open("wb") as file:
        file.truncate(2 << 30)

    made = publish(Files(STEM, (".mp4", path), {}), tmp_path / "destination")

    assert made[0].bytes == 2 << 30
    assert made[0].sha256 == "a7c744c13cc101ed66c29f672f92455547889cc586ce6d44fe76ae824958ea51"


def test_what_the_file_system_refuses_is_the_operators_matter_and_leaves_nothing(tmp_path: Path) -> None:
    path = a_file(tmp_path, b"one")

    with pytest.raises(Refusal) as refused:
        publish(Files(PurePosixPath("x" * 300), (".mp4", path), {}), tmp_path / "destination")

    assert (refused.value.code, refused.value.outcome) == (Code.LOCAL_IO, Outcome.OPERATOR)
    assert below(tmp_path / "destination") == []


def test_a_source_that_is_gone_is_this_hosts_trouble(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        publish(Files(STEM, (".mp4", tmp_path / "gone"), {}), tmp_path / "destination")

    assert refused.value.code is Code.LOCAL_IO


def test_a_destination_that_refuses_writing_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(Refusal) as refused:
        publish(Files(STEM, (".mp4", a_file(tmp_path, b"one")), {}), tmp_path / "file" / "destination")

    assert (refused.value.code, refused.value.outcome) == (Code.LOCAL_IO, Outcome.OPERATOR)
    assert str(tmp_path / "file" / "destination") in refused.value.message


def test_any_file_system_of_fsspecs_takes_files_and_never_half_of_one(tmp_path: Path) -> None:
    destination: Any = open_destination("memory://archive/videos")
    path = a_file(tmp_path, os.urandom(9 << 20))

    made = [publish(Files(STEM, (".mp4", path), {}), destination) for _ in range(2)]

    assert made[0] == made[1]
    assert destination.fs.cat_file(made[0][0].uri.removeprefix("memory:/")) == path.read_bytes()
    assert [name for name in destination.fs.find("/archive") if ".publishing" in name] == []


def test_a_file_uri_is_a_directory(tmp_path: Path) -> None:
    made = publish(
        Files(STEM, (".mp4", a_file(tmp_path, b"one")), {}), open_destination(f"file://{tmp_path}/destination")
    )

    assert Path(made[0].uri).read_bytes() == b"one"


def test_an_unknown_protocol_is_refused_with_its_name() -> None:
    with pytest.raises(ConfigurationError, match=r"'nosuch://x' can't be opened"):
        open_destination("nosuch://x")
