"""Publishing to a directory, in the same file system and in another: whole, verified, never onto another file."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import ConfigurationError, Refusal
from include.ytdlp_ops.storage.publishing.destinations import Files, Published, open_destination, publish
from include.ytdlp_ops.storage.publishing.local_places import LocalPlace
from include.ytdlp_ops.storage.publishing.sidecars import write_description, write_info_json

STEM = PurePosixPath("Channel", "Title [id]")


@pytest.fixture(params=["same file system", "another one"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A destination; memory is another file system than the one with the temporary files."""
    if request.param == "same file system":
        (tmp_path / "destination").mkdir()
        yield tmp_path / "destination"
        return
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    assert folder.stat().st_dev != tmp_path.stat().st_dev
    yield folder
    shutil.rmtree(folder)


def put(files: Files, root: Path) -> list[Published]:
    return publish(files, LocalPlace(root))


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

    made = put(Files(STEM, (".mp4", path), {".info.json": info}), root)

    assert [one.uri for one in made] == [f"{root}/{STEM}.mp4", f"{root}/{STEM}.info.json"]
    assert (made[0].bytes, made[0].sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert Path(made[0].uri).read_bytes() == path.read_bytes() == content
    assert below(root) == [f"{STEM}.info.json", f"{STEM}.mp4"]


def test_publishing_again_changes_nothing(root: Path, tmp_path: Path) -> None:
    path = a_file(tmp_path, b"one")
    files = Files(STEM, (".mp4", path), {})
    first = put(files, root)
    inode = Path(first[0].uri).stat().st_ino

    assert put(files, root) == first
    assert Path(first[0].uri).stat().st_ino == inode
    assert below(root) == [f"{STEM}.mp4"]


def test_another_video_of_that_name_is_numbered_and_its_sidecars_too(root: Path, tmp_path: Path) -> None:
    for content in (b"one", b"two", b"six"):
        path = a_file(tmp_path, content, content.decode())
        text = write_description({"description": content.decode()}, tmp_path)
        assert text
        put(Files(STEM, (".mp4", path), {".description": text}), root)

    texts = {name: (root / name).read_text() for name in below(root)}
    assert texts == {
        f"{STEM}{number}{ending}": text
        for number, text in (("", "one"), (" (2)", "two"), (" (3)", "six"))
        for ending in (".mp4", ".description")
    }


def test_a_sidecar_that_changed_replaces_the_earlier_one(root: Path, tmp_path: Path) -> None:
    path = a_file(tmp_path, b"one")
    for views in (1, 2):
        made = put(Files(STEM, (".mp4", path), {".info.json": write_info_json({"n": views}, tmp_path)}), root)

    assert Path(made[1].uri).read_text() == '{\n "n": 2\n}\n'
    assert below(root) == [f"{STEM}.info.json", f"{STEM}.mp4"]


def test_a_link_in_the_way_is_not_followed(root: Path, tmp_path: Path) -> None:
    path, victim = a_file(tmp_path, b"one"), a_file(tmp_path, b"one", "victim")
    (root / STEM).parent.mkdir(parents=True)
    (root / f"{STEM}.mp4").symlink_to(victim)

    made = put(Files(STEM, (".mp4", path), {}), root)

    assert made[0].uri == f"{root}/{STEM} (2).mp4"
    assert victim.read_bytes() == b"one"


def test_of_several_that_come_at_once_each_keeps_its_own_file(root: Path, tmp_path: Path) -> None:
    paths = [a_file(tmp_path, bytes([number]) * 100_000, str(number)) for number in range(8)]
    made: dict[Path, str] = {}
    threads = [
        threading.Thread(
            target=lambda path=path: made.update({path: put(Files(STEM, (".mp4", path), {}), root)[0].uri})
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

    made = put(Files(STEM, (".mp4", path), {}), tmp_path)

    assert made[0].bytes == 2 << 30
    assert made[0].sha256 == "a7c744c13cc101ed66c29f672f92455547889cc586ce6d44fe76ae824958ea51"


def test_what_the_file_system_refuses_is_the_operators_matter_and_leaves_nothing(
    root: Path, tmp_path: Path
) -> None:
    path = a_file(tmp_path, b"one")

    with pytest.raises(Refusal) as refused:
        put(Files(PurePosixPath("x" * 300), (".mp4", path), {}), root)

    assert (refused.value.code, refused.value.outcome) == (Code.LOCAL_IO, Outcome.OPERATOR)
    assert below(root) == []


def test_a_source_that_is_gone_is_this_hosts_trouble(root: Path, tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        put(Files(STEM, (".mp4", tmp_path / "gone"), {}), root)

    assert refused.value.code is Code.LOCAL_IO


@pytest.mark.parametrize("missing", ["nas/videos", "nas", "file/videos"])
def test_a_destination_that_is_not_there_is_never_made(tmp_path: Path, missing: str) -> None:
    (tmp_path / "file").write_text("in the way")
    files = Files(STEM, (".mp4", a_file(tmp_path, b"one")), {})
    place = LocalPlace(tmp_path / missing)
    before = sorted(tmp_path.iterdir())

    for ask in (place.check, lambda: publish(files, place)):
        with pytest.raises(Refusal) as refused:
            ask()

        assert (refused.value.code, refused.value.outcome) == (Code.LOCAL_IO, Outcome.OPERATOR)
        assert f"{tmp_path}/{missing}' is not there; mount it, or make the directory" in refused.value.message
    assert sorted(tmp_path.iterdir()) == before


def test_a_destination_unmounted_this_moment_is_not_made_anew(tmp_path: Path) -> None:
    class GoesAway(LocalPlace):
        def check(self) -> None:
            super().check()
            nas.rmdir()

    nas = tmp_path / "nas"
    nas.mkdir()

    with pytest.raises(Refusal) as refused:
        publish(Files(STEM, (".mp4", a_file(tmp_path, b"one")), {}), GoesAway(nas))

    assert (refused.value.code, refused.value.outcome) == (Code.LOCAL_IO, Outcome.OPERATOR)
    assert not nas.exists()


def test_an_empty_mount_point_is_not_taken_for_the_mount() -> None:
    with pytest.raises(Refusal, match=r"'/' has 'mount: true', and nothing is mounted there; mount it") as refused:
        LocalPlace(Path("/"), mounted=True).check()

    assert (refused.value.code, refused.value.outcome) == (Code.LOCAL_IO, Outcome.OPERATOR)


def test_what_is_mounted_is_taken_also_below_its_mount_point_and_through_a_link(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    (tmp_path / "nas").symlink_to(folder)

    for root in (folder, tmp_path / "nas"):
        made = publish(Files(STEM, (".mp4", a_file(tmp_path, b"one")), {}), LocalPlace(root, mounted=True))

        assert Path(made[0].uri).read_bytes() == b"one"
    shutil.rmtree(folder)


def test_a_video_of_that_name_in_another_container_keeps_its_sidecars(root: Path, tmp_path: Path) -> None:
    def put_one(ending: str, text: str, number: int = 1) -> list[str]:
        sidecar = write_description({"description": text}, tmp_path)
        assert sidecar
        path = a_file(tmp_path, text.encode(), f"merged{ending}")
        made = put(Files(STEM, (ending, path), {".description": sidecar}, others_may_have_stem=True), root)
        return [each.uri.removeprefix(f"{root}/{STEM}") for each in made]

    assert put_one(".mp4", "one") == [".mp4", ".description"]
    assert put_one(".webm", "two") == [" (2).webm", " (2).description"]
    assert put_one(".webm", "two") == [" (2).webm", " (2).description"]
    assert put_one(".mp4", "one") == [".mp4", ".description"]
    assert (root / f"{STEM}.description").read_text() == "one"


def test_a_video_told_by_its_id_may_change_its_container(root: Path, tmp_path: Path) -> None:
    for ending in (".mp4", ".mkv"):
        put(Files(STEM, (ending, a_file(tmp_path, b"one", ending)), {}), root)

    assert below(root) == [f"{STEM}.mkv", f"{STEM}.mp4"]


def test_a_file_that_is_none_of_ours_is_left_as_it_is(root: Path, tmp_path: Path) -> None:
    theirs = root / f"{STEM}.mp4"
    theirs.parent.mkdir()
    theirs.write_bytes(b"two")  # as long as ours

    made = put(Files(STEM, (".mp4", a_file(tmp_path, b"one")), {}), root)

    assert made[0].uri == f"{root}/{STEM} (2).mp4"
    assert theirs.read_bytes() == b"two"


def test_published_again_with_other_bytes_the_earlier_file_stays(root: Path, tmp_path: Path) -> None:
    first = put(Files(STEM, (".mp4", a_file(tmp_path, b"as it was", "first")), {}), root)

    again = [put(Files(STEM, (".mp4", a_file(tmp_path, b"as it is", "now")), {}), root) for _ in range(2)]

    assert again[0] == again[1]
    assert again[0][0].uri == f"{root}/{STEM} (2).mp4"
    assert Path(first[0].uri).read_bytes() == b"as it was"


def test_any_file_system_of_fsspecs_takes_files_and_never_half_of_one(tmp_path: Path) -> None:
    import fsspec  # type: ignore[import-untyped]  # ships no types

    destination, fs = open_destination("memory://archive/videos"), fsspec.filesystem("memory")
    path = a_file(tmp_path, os.urandom(9 << 20))

    made = [publish(Files(STEM, (".mp4", path), {}), destination) for _ in range(2)]

    assert made[0] == made[1]
    assert fs.cat_file(made[0][0].uri.removeprefix("memory:/")) == path.read_bytes()
    assert [name for name in fs.find("/archive") if ".publishing" in name] == []


def test_a_file_uri_is_a_directory(tmp_path: Path) -> None:
    made = publish(Files(STEM, (".mp4", a_file(tmp_path, b"one")), {}), open_destination(f"file://{tmp_path}"))

    assert Path(made[0].uri).read_bytes() == b"one"


def test_an_unknown_protocol_is_refused_with_its_name() -> None:
    with pytest.raises(ConfigurationError, match=r"'nosuch://x' can't be opened"):
        open_destination("nosuch://x")
