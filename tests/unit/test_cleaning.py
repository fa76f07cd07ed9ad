"""The work directory: what dead attempts left goes away by its age, and nothing that may live."""

from __future__ import annotations

import os
import time
from pathlib import Path

from include.ytdlp_ops.downloading.cleaning import clean_work_dir
from include.ytdlp_ops.downloading.directories import directory_for

HOUR = 3600.0


def attempt(work_dir: Path, item: str, token: str, *, hours_old: float) -> Path:
    directory = directory_for(work_dir, item, token)
    (directory / "1.mp4.part").write_bytes(b"bytes")
    then = time.time() - hours_old * HOUR
    for path in (directory / "1.mp4.part", directory):
        os.utime(path, (then, then))
    return directory


def test_old_attempts_go_and_live_or_new_ones_stay(tmp_path: Path) -> None:
    dead = attempt(tmp_path, "a", "dead", hours_old=5)
    live = attempt(tmp_path, "a", "live", hours_old=5)
    new = attempt(tmp_path, "b", "new", hours_old=0)
    alone = attempt(tmp_path, "c", "alone", hours_old=5)

    removed = clean_work_dir(tmp_path, {"live"}, 2 * HOUR)

    assert removed == 2
    assert [path.exists() for path in (dead, live, new, alone.parent)] == [False, True, True, False]


def test_an_attempt_that_still_writes_stays_however_old_its_directory_is(tmp_path: Path) -> None:
    directory = attempt(tmp_path, "a", "busy", hours_old=5)
    (directory / "1.mp4.part").write_bytes(b"more")
    os.utime(directory, (0, 0))

    assert clean_work_dir(tmp_path, set(), 2 * HOUR) == 0


def test_a_link_to_elsewhere_and_loose_files_are_left_alone(tmp_path: Path) -> None:
    work_dir, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    elsewhere.mkdir()
    os.utime(elsewhere, (0, 0))
    (work_dir / "item").mkdir(parents=True)
    (work_dir / "item" / "link").symlink_to(elsewhere)
    (work_dir / "bandwidth").write_bytes(b"x")

    clean_work_dir(work_dir, set(), HOUR)

    assert elsewhere.exists()
    assert (work_dir / "bandwidth").exists()


def test_a_directory_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert clean_work_dir(tmp_path / "gone", set(), HOUR) == 0
