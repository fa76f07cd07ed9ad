"""Each attempt's own directory, and what it takes over from one that died."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.downloading.directories import (
    check_space,
    directory_for,
    discard,
    distrust,
    is_whole,
    take_over,
    target_in,
    write_version,
)
from include.ytdlp_ops.errors import DownloadFailed

ITEM = "youtube:dQw4w9WgXcQ:299"


def a_format(query: str = "clen=1000&lmt=5", **changed: Any) -> dict[str, Any]:
    url = f"https://rr1.googlevideo.com/videoplayback?{query}"
    return {"format_id": "299", "url": url, "ext": "mp4", "protocol": "https", **changed}


def a_dead_attempt(work_dir: Path, token: str, content: bytes, fmt: dict[str, Any], ending: str = ".part") -> Path:
    directory = directory_for(work_dir, ITEM, token)
    write_version(directory, fmt)
    target = target_in(directory, fmt)
    left = target.with_name(target.name + ending)
    left.write_bytes(content)
    return left


@pytest.mark.parametrize("item_id", [ITEM, "../../etc", "/etc/passwd", "a" * 5000, "é\u202e\x00\n", "\udcff", "."])
def test_a_directory_is_confined_and_its_names_are_short(tmp_path: Path, item_id: str) -> None:
    directory = directory_for(tmp_path, item_id, "../token")

    assert directory.parent.parent == tmp_path
    assert directory.resolve() == directory
    assert all(name.isascii() and len(name) < 100 for name in (directory.name, directory.parent.name))


def test_a_directory_is_its_owners_alone(tmp_path: Path) -> None:
    directory = directory_for(tmp_path / "work", ITEM, "one")

    assert [stat.S_IMODE(path.stat().st_mode) for path in (directory, directory.parent)] == [0o700, 0o700]


def test_ids_that_look_alike_do_not_meet(tmp_path: Path) -> None:
    assert directory_for(tmp_path, "a/b", "one") != directory_for(tmp_path, "a?b", "one")


def test_a_directory_that_cant_be_made_is_the_hosts_trouble(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(DownloadFailed) as failed:
        directory_for(tmp_path / "file", ITEM, "one")

    assert (failed.value.code, failed.value.outcome) == (Code.LOCAL_IO, Outcome.OPERATOR)


def test_the_most_that_a_dead_attempt_left_is_copied(tmp_path: Path) -> None:
    less = a_dead_attempt(tmp_path, "one", b"a" * 300, a_format())
    most = a_dead_attempt(tmp_path, "two", b"a" * 700, a_format())

    taken = take_over(tmp_path, ITEM, "three", a_format("lmt=5&clen=1000&expire=2"))

    copy = target_in(directory_for(tmp_path, ITEM, "three"), a_format()).with_suffix(".mp4.part")
    assert taken == 700
    assert copy.read_bytes() == b"a" * 700
    assert (less.stat().st_size, most.stat().st_size) == (300, 700)


def test_what_a_sleeping_attempt_writes_later_does_not_reach_the_copy(tmp_path: Path) -> None:
    left = a_dead_attempt(tmp_path, "one", b"a" * 300, a_format())

    take_over(tmp_path, ITEM, "two", a_format())
    with left.open("r+b") as file:
        file.write(b"z" * 600)

    copy = directory_for(tmp_path, ITEM, "two") / left.name
    assert copy.read_bytes() == b"a" * 300


def test_a_whole_file_is_taken_over_as_a_part(tmp_path: Path) -> None:
    left = a_dead_attempt(tmp_path, "one", b"a" * 1000, a_format(), ending="")

    taken = take_over(tmp_path, ITEM, "two", a_format())

    assert taken == 1000
    assert (directory_for(tmp_path, ITEM, "two") / f"{left.name}.part").stat().st_size == 1000


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (a_format("clen=1000&lmt=5"), a_format("clen=1001&lmt=5")),
        (a_format("clen=1000&lmt=5"), a_format("clen=1000&lmt=6")),
        (a_format("", filesize=1000), a_format("", filesize=1001)),
        (a_format(""), a_format("")),  # no size is known: nothing says that the bytes are the same
        (a_format(f"clen={'9' * 5000}"), a_format(f"clen={'9' * 5000}")),
        (a_format(protocol="m3u8_native"), a_format(protocol="m3u8_native")),
    ],
    ids=["size", "version", "promised size", "unknown size", "no size", "fragments"],
)
def test_other_bytes_are_not_taken_over(tmp_path: Path, then: dict[str, Any], now: dict[str, Any]) -> None:
    a_dead_attempt(tmp_path, "one", b"a" * 300, then)

    assert take_over(tmp_path, ITEM, "two", now) == 0
    assert list(directory_for(tmp_path, ITEM, "two").iterdir()) == []


def test_without_a_url_that_says_so_the_promised_size_decides(tmp_path: Path) -> None:
    a_dead_attempt(tmp_path, "one", b"a" * 300, a_format("", filesize=1000))

    assert take_over(tmp_path, ITEM, "two", a_format("", filesize=1000)) == 300


def test_more_than_there_should_be_is_not_taken_over(tmp_path: Path) -> None:
    a_dead_attempt(tmp_path, "one", b"a" * 1001, a_format())
    a_dead_attempt(tmp_path, "two", b"a" * 300, a_format())

    assert take_over(tmp_path, ITEM, "three", a_format()) == 300


@pytest.mark.parametrize(("size", "whole"), [(999, False), (1000, True), (1001, False)])
def test_a_part_with_all_bytes_becomes_the_file(tmp_path: Path, size: int, whole: bool) -> None:
    part = a_dead_attempt(tmp_path, "one", b"a" * size, a_format())
    target = part.with_suffix("")

    assert is_whole(target, a_format()) is whole
    assert (target.exists(), part.exists()) == (whole, not whole)


def test_a_damaged_version_file_is_no_reason_to_stop(tmp_path: Path) -> None:
    left = a_dead_attempt(tmp_path, "one", b"a" * 300, a_format())
    (left.parent / "version.json").write_text('{"format')

    assert take_over(tmp_path, ITEM, "two", a_format()) == 0


def test_what_is_distrusted_is_never_taken_over_and_stays_where_it_is(tmp_path: Path) -> None:
    left = a_dead_attempt(tmp_path, "one", b"<html>" * 9, a_format())
    own = a_dead_attempt(tmp_path, "two", b"<html>" * 99, a_format())

    distrust(own.parent)
    distrust(own.parent)

    assert take_over(tmp_path, ITEM, "three", a_format()) == 0
    assert (left.exists(), own.exists()) == (True, True)


def test_discarding_leaves_other_attempts_alone(tmp_path: Path) -> None:
    left = a_dead_attempt(tmp_path, "one", b"a", a_format())
    own = directory_for(tmp_path, ITEM, "two")

    discard(own)
    discard(own)

    assert not own.exists()
    assert left.exists()


def test_discarding_the_last_attempt_removes_the_items_directory(tmp_path: Path) -> None:
    a_dead_attempt(tmp_path, "one", b"a", a_format())

    discard(directory_for(tmp_path, ITEM, "one"))

    assert list(tmp_path.iterdir()) == []


def test_a_disk_without_room_is_named_with_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match=rf"{tmp_path}.* bytes free; 5 are needed") as failed:
        check_space(tmp_path, 5, 1 << 60)

    assert (failed.value.code, failed.value.outcome) == (Code.DISK, Outcome.OPERATOR)


def test_what_no_disk_of_this_size_could_hold_is_the_items_fault(tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match=r"1000000000000000000 bytes are promised") as failed:
        check_space(tmp_path, 10**18, 1)

    assert (failed.value.code, failed.value.outcome) == (Code.TOO_LARGE, Outcome.RETRY)


def test_a_disk_with_room_passes(tmp_path: Path) -> None:
    check_space(tmp_path, 1, 1)
