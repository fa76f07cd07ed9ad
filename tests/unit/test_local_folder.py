"""The data folder: made once, private, taken by one stack at a time; what is wrong with it is said in one line."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from include.ytdlp_ops.errors import ConfigurationError
from include.ytdlp_ops.local.folder import Folder, FolderInUse


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "data")
    os.close(folder.lock())
    folder.prepare(needed_bytes=0)
    return folder


def test_secrets_are_made_once_and_kept(folder: Folder) -> None:
    first = folder.secrets()

    second = folder.secrets()

    assert second == first


def test_two_folders_have_different_secrets(folder: Folder, tmp_path: Path) -> None:
    other = Folder(tmp_path)

    assert folder.secrets().redis_password != other.secrets().redis_password


def test_only_the_owner_can_read_the_folder_and_the_secrets(folder: Folder) -> None:
    folder.secrets()

    assert stat.S_IMODE(folder.root.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder.root / "secrets.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["", '{"redis_pass', "[]", "{}", '{"redis_password": "short"}', "\x00"])
def test_a_damaged_secrets_file_is_refused_and_left_as_it_is(folder: Folder, content: str) -> None:
    path = folder.root / "secrets.json"
    path.write_text(content)

    with pytest.raises(ConfigurationError, match=r"secrets\.json is damaged .*; put the old one back") as refused:
        folder.secrets()

    assert "\n" not in str(refused.value)
    assert path.read_text() == content


def test_an_error_about_secrets_does_not_tell_them(folder: Folder) -> None:
    secrets = folder.secrets().model_dump() | {"jwt_secret": "too-short-but-secret"}
    (folder.root / "secrets.json").write_text(json.dumps(secrets))

    with pytest.raises(ConfigurationError, match="jwt_secret") as refused:
        folder.secrets()

    assert not any(secret in str(refused.value) for secret in secrets.values())


def test_a_second_lock_is_refused_and_names_the_holder(folder: Folder) -> None:
    held = folder.lock()

    with pytest.raises(FolderInUse, match=rf"another stack \(process {os.getpid()}\) runs on"):
        folder.lock()

    os.close(held)


def test_a_lock_that_was_given_back_can_be_taken(folder: Folder) -> None:
    os.close(folder.lock())

    os.close(folder.lock())


def test_a_full_file_system_is_refused_with_what_is_free_and_needed(folder: Folder) -> None:
    with pytest.raises(ConfigurationError, match=r"MiB free and 1073741824 MiB are needed; make room"):
        folder.prepare(needed_bytes=1 << 50)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(ConfigurationError, match=r"can't be used: .*; give one that you may write"):
        Folder(tmp_path / "file" / "data").lock()
