"""Names of files that came from anybody's titles."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.ytdlp_ops.storage.placing import MAX_NAME_BYTES, confined, safe_name


def test_a_name_reads_title_id_format() -> None:
    assert safe_name("Never gonna", "dQw4w9WgXcQ", "299", "mp4") == "Never gonna [dQw4w9WgXcQ].299.mp4"


@pytest.mark.parametrize("title", ["x" * 500, "ü" * 500, "🎬" * 500, "日本語" * 200, "e\u0301" * 500])
def test_a_long_title_is_cut_between_characters_and_the_rest_stays(title: str) -> None:
    name = safe_name(title, "dQw4w9WgXcQ", "299", "mp4")

    assert MAX_NAME_BYTES - 4 <= len(name.encode()) <= MAX_NAME_BYTES
    assert name.endswith(" [dQw4w9WgXcQ].299.mp4")


@pytest.mark.parametrize(
    ("given_name", "made"),
    [
        ("../../etc/passwd", "_.._etc_passwd"),
        ("/etc/passwd", "_etc_passwd"),
        ("a\x00b\nc\x7f.mp4", "abc.mp4"),
        ("ann\u202e4pm.exe", "ann4pm.exe"),
        ("CON", "_CON"),
        ("nul.mp4", "_nul.mp4"),
        ("com1.tar.gz", "_com1.tar.gz"),
        ("console.mp4", "console.mp4"),
        (".hidden.mp4", "hidden.mp4"),
        ("-rf.mp4", "_-rf.mp4"),
        ("trailing. . ", "trailing"),
        ("..", "unnamed"),
        ("\udcff.mp4", "mp4"),
        ('a:b*c?"<>|\\d.mp4', "a_b_c______d.mp4"),
        ("", "unnamed"),
        ("Title [dQw4w9WgXcQ].299.mp4", "Title [dQw4w9WgXcQ].299.mp4"),
    ],
)
def test_a_name_is_confined(given_name: str, made: str) -> None:
    assert confined(given_name) == made


def test_a_name_that_is_too_long_keeps_its_ending() -> None:
    name = confined("é" * 300 + ".m4a")

    assert len(name.encode()) <= MAX_NAME_BYTES
    assert name.endswith("é.m4a")


@settings(max_examples=60, deadline=None, database=None)
@given(st.text(), st.text(), st.text(max_size=40), st.text(max_size=20))
def test_whatever_is_given_one_plain_component_comes_out(
    title: str, video_id: str, format_id: str, ext: str
) -> None:
    for name in (safe_name(title, video_id, format_id, ext), confined(title)):
        assert PurePosixPath(name).name == name
        assert 0 < len(name.encode()) <= MAX_NAME_BYTES
        assert name.isprintable()
        assert not name.startswith((".", "-"))
        assert confined(name) == name
