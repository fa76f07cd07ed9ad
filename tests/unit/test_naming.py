"""Names from output templates: whatever an info holds, they stay below the destination and fit everywhere."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest

from include.ytdlp_ops.errors import ConfigurationError
from include.ytdlp_ops.storage.publishing.naming import stem_for
from include.ytdlp_ops.storage.publishing.public_infos import public_info

DEFAULT = "%(title)s [%(id)s].%(ext)s"
HOSTILE = [
    "../../etc/passwd", "/etc/passwd", "..", ".", "", "...", "~/x", "$HOME", "a/../../b", "a\0b", "a\nb\r\tc",
    "CON", "nul.txt", "com1", "-rf", ".hidden", "x" * 500, "🎬" * 75, "é" * 300, "\u202egnp.exe", "a\u200b\u2066b",
    "trail. . .", "C:\\Windows\\x", 'a:*?"<>|b', "%(id)s", "%s%d%n", "{0}", "\ud83d", "\x7f", "con.",
    "a" * 198 + "🎬", "／",
]  # fmt: skip


def named(template: str, ext: str = "mp4", **fields: Any) -> PurePosixPath:
    return stem_for(template, public_info({"id": "idididididi", **fields}), ext)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("template", [DEFAULT, "%(uploader)s/%(title)s.%(ext)s", "%(title)s/%(uploader)s/%(id)s"])
def test_a_hostile_info_names_nothing_outside_and_nothing_odd(template: str, text: str) -> None:
    stem = named(template, title=text, uploader=text)

    assert not stem.is_absolute()
    assert len(stem.parts) <= template.count("/") + 1
    for part in stem.parts:
        assert part not in ("", ".", "..")
        assert len(part.encode()) <= 200
        assert part.isprintable()
        assert not set(part) & set('/\\:*?"<>|\0')
        assert part[0] not in "-. "
        assert part[-1] not in ". "
        assert part.split(".")[0].upper() not in {"CON", "PRN", "AUX", "NUL", "COM1"}


def test_a_template_makes_directories_and_formats_dates() -> None:
    template = "%(uploader)s/%(upload_date>%Y)s/%(title).10s.%(ext)s"

    stem = named(template, uploader="Me", upload_date="20260102", title="A" * 20)

    assert stem == PurePosixPath("Me", "2026", "A" * 10)


def test_what_an_info_lacks_is_named_by_the_templates_default() -> None:
    assert named("%(uploader|nobody)s/%(playlist)s/%(id)s.%(ext)s") == PurePosixPath("nobody/NA/idididididi")


def test_neither_home_nor_environment_are_filled_in() -> None:
    assert named("~/$HOME/%(id)s.%(ext)s") == PurePosixPath("~/$HOME/idididididi")


@pytest.mark.parametrize("leads", ["/", "../../", "./", "//a/../"])
def test_a_template_that_leads_out_is_confined(leads: str) -> None:
    stem = named(f"{leads}%(id)s.%(ext)s")

    assert stem.name == "idididididi"
    assert not {"..", "/"} & set(stem.parts)


def test_a_title_that_ends_like_the_file_loses_only_the_files_ending() -> None:
    assert named("%(title)s.%(ext)s", title="movie.mp4") == PurePosixPath("movie.mp4")


def test_a_template_that_can_not_be_filled_in_is_the_operators_matter() -> None:
    with pytest.raises(ConfigurationError, match="can't be filled in"):
        named("%(title)s %(id")
