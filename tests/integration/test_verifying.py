"""Real media, whole and broken: only what is as promised passes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.downloading.verifying import MediaFacts, sha256, verify
from include.ytdlp_ops.errors import DownloadFailed
from tests.offline_youtube.media import DURATION, made_once, make_media


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory.getbasetemp() / "offline-youtube" / "media", make_media)


def check(path: Path, expected_bytes: int | None = None, *, video: bool = True, audio: bool = False) -> MediaFacts:
    return verify(
        path, expected_bytes=expected_bytes, expected_duration=DURATION, expect_video=video, expect_audio=audio
    )


def refusal(path: Path, expected_bytes: int | None = None, *, video: bool = True, audio: bool = False) -> str:
    with pytest.raises(DownloadFailed) as refused:
        check(path, expected_bytes, video=video, audio=audio)
    assert (refused.value.code, refused.value.outcome) == (Code.BAD_MEDIA, Outcome.RETRY)
    assert path.name in refused.value.message
    return refused.value.message


def test_a_good_video_passes_with_its_facts(media: Path) -> None:
    path = media / "299.mp4"

    facts = check(path, path.stat().st_size)

    assert facts.duration == pytest.approx(DURATION, abs=0.05)
    assert (facts.bytes, facts.video_codec, facts.audio_codec) == (path.stat().st_size, "h264", None)
    stream = facts.streams[0]
    assert (stream.kind, stream.width, stream.height, stream.fps) == ("video", 1920, 1080, 60.0)


@pytest.mark.parametrize(("name", "codec", "rate"), [("140.m4a", "aac", 44100), ("251.webm", "opus", 48000)])
def test_a_good_audio_passes_with_its_facts(media: Path, name: str, codec: str, rate: int) -> None:
    facts = check(media / name, video=False, audio=True)

    assert (facts.audio_codec, facts.video_codec) == (codec, None)
    assert (facts.streams[0].channels, facts.streams[0].sample_rate) == (2, rate)


def test_both_streams_of_a_joined_format_are_found(media: Path) -> None:
    facts = check(media / "18.mp4", audio=True)

    assert (facts.video_codec, facts.audio_codec) == ("h264", "aac")


def test_a_record_is_plain_json_without_what_does_not_apply(media: Path) -> None:
    record = check(media / "18.mp4", audio=True).to_record()

    assert json.loads(json.dumps(record)) == record
    assert record["streams"][1] == {"kind": "audio", "codec": "aac", "channels": 2, "sample_rate": 44100}
    assert set(record) == {"container", "bytes", "duration", "streams"}


@pytest.mark.parametrize(
    ("name", "video", "audio"),
    [("299.mp4", True, False), ("140.m4a", False, True), ("18.mp4", True, True), ("251.webm", False, True)],
)
def test_half_a_file_is_refused_by_its_length_alone(
    media: Path, tmp_path: Path, name: str, video: bool, audio: bool
) -> None:
    content = (media / name).read_bytes()
    half = tmp_path / name
    half.write_bytes(content[: len(content) // 3])

    assert f"{DURATION:.1f} s were promised" in refusal(half, video=video, audio=audio)


def test_half_a_file_is_refused_by_its_size_before_it_is_read(media: Path, tmp_path: Path) -> None:
    content = (media / "299.mp4").read_bytes()
    half = tmp_path / "299.mp4"
    half.write_bytes(content[: len(content) // 2])

    assert f"has {len(content) // 2} bytes; {len(content)} were promised" in refusal(half, len(content))


def test_one_byte_too_many_is_refused(media: Path, tmp_path: Path) -> None:
    content = (media / "299.mp4").read_bytes()
    path = tmp_path / "299.mp4"
    path.write_bytes(content + b"x")

    assert "were promised" in refusal(path, len(content))


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "299.mp4").touch()

    assert refusal(tmp_path / "299.mp4") == "'299.mp4' is empty"


@pytest.mark.parametrize("expected_bytes", [None, 268306])
def test_a_web_page_is_refused_as_one(tmp_path: Path, expected_bytes: int | None) -> None:
    path = tmp_path / "299.mp4"
    path.write_bytes(b"\n<!DOCTYPE html><html>log in to the network</html>" * 100)

    assert "it is a web page" in refusal(path, expected_bytes)


def test_noise_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "299.mp4"
    path.write_bytes(os.urandom(100_000))

    assert refusal(path)


@pytest.mark.parametrize(
    ("name", "video", "audio", "missing"), [("140.m4a", True, True, "video"), ("299.mp4", True, True, "audio")]
)
def test_a_missing_stream_is_refused_by_its_kind(
    media: Path, name: str, video: bool, audio: bool, missing: str
) -> None:
    assert f"has no {missing} stream" in refusal(media / name, video=video, audio=audio)


def test_a_list_of_other_files_is_not_followed(media: Path, tmp_path: Path) -> None:
    (tmp_path / "18.mp4").write_bytes((media / "18.mp4").read_bytes())
    path = tmp_path / "299.mp4"
    path.write_text("ffconcat version 1.0\nfile 18.mp4\n")

    assert "is no media file" in refusal(path)


def test_without_promises_a_whole_file_passes(media: Path) -> None:
    facts = verify(
        media / "18.mp4", expected_bytes=None, expected_duration=None, expect_video=False, expect_audio=False
    )

    assert len(facts.streams) == 2


@pytest.mark.parametrize(("promised", "passes"), [(5.9, True), (6.1, False), (2.1, True), (1.9, False)])
def test_two_seconds_off_are_let_pass(media: Path, promised: float, passes: bool) -> None:
    def verified() -> bool:
        try:
            verify(
                media / "299.mp4",
                expected_bytes=None,
                expected_duration=promised,
                expect_video=True,
                expect_audio=False,
            )
        except DownloadFailed:
            return False
        return True

    assert verified() is passes


def test_a_file_that_is_gone_is_this_hosts_trouble(tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed) as failed:
        check(tmp_path / "gone.mp4")

    assert failed.value.code is Code.LOCAL_IO


def test_the_hash_is_sha_256(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")

    assert sha256(tmp_path / "file") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
