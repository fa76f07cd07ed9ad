"""Real formats joined with real ffmpeg: containers, tags, what is embedded, and every way it can fail."""

from __future__ import annotations

import hashlib
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import DownloadFailed, LeaseLost
from include.ytdlp_ops.storage.publishing.destinations import Files, publish
from include.ytdlp_ops.storage.publishing.local_places import LocalPlace
from include.ytdlp_ops.storage.publishing.merging import Merged, merge
from include.ytdlp_ops.storage.publishing.muxing import Embedding, Track
from tests.offline_youtube.media import made_once
from tests.offline_youtube.shapes import SECONDS, make_shapes

HOSTILE = 'a=b;c#d\\e\nf "g" [CHAPTER]\n-y /etc/passwd'


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory.getbasetemp() / "shapes", make_shapes)


@pytest.fixture
def ffmpeg() -> str:
    import imageio_ffmpeg  # type: ignore[import-untyped]  # the wheel has no types

    return str(imageio_ffmpeg.get_ffmpeg_exe())


Merge = Callable[..., Merged]


@pytest.fixture
def joined(shapes: Path, tmp_path: Path, ffmpeg: str) -> Merge:
    """Merge files of `SHAPES`, given as names or as (name, language)."""

    def join(*given: str | tuple[str, str], **more: Any) -> Merged:
        tracks = [
            Track(shapes / name, language)
            for name, language in ((one, None) if isinstance(one, str) else one for one in given)
        ]
        return merge(tracks, tmp_path, ffmpeg=more.pop("ffmpeg", ffmpeg), **more)

    return join


def looked_into(path: Path) -> dict[str, Any]:
    import av

    with av.open(str(path)) as container:
        return {
            "tags": dict(container.metadata),
            "chapters": [chapter["metadata"].get("title") for chapter in container.chapters()],
            "streams": [(stream.type, stream.metadata.get("language")) for stream in container.streams],
            "packets": [sum(1 for _ in container.demux(stream)) for stream in list(container.streams)[:1]],
        }


@pytest.mark.parametrize(
    ("given", "wish", "ext", "left_out"),
    [
        (("h264.mp4", "en.m4a"), "auto", "mp4", []),
        (("vertical.mp4", "en.m4a"), "auto", "mp4", []),
        (("tenbit.mp4", "en.m4a"), "auto", "mp4", []),
        (("vp9.webm", "opus.webm"), "auto", "webm", []),
        (("h264.mp4", "opus.webm"), "auto", "mkv", []),
        (("vp9.webm", "en.m4a"), "auto", "mkv", []),
        (("both.ts",), "auto", "mp4", []),
        (("en.m4a",), "auto", "m4a", []),
        (("opus.webm",), "auto", "webm", []),
        (("en.m4a",), "mkv", "mka", []),
        (("h264.mp4", "opus.webm"), "mp4", "mp4", []),
        (("h264.mp4", "en.m4a"), "webm", "mkv", ["webm can't hold h264, aac: made mkv"]),
    ],
)
def test_the_container_follows_the_codecs_or_the_wish(
    joined: Merge, given: tuple[str, ...], wish: str, ext: str, left_out: list[str]
) -> None:
    made = joined(*given, container=wish)

    assert (made.path.name, made.ext, made.left_out) == (f"merged.{ext}", ext, left_out)
    assert made.duration == pytest.approx(SECONDS, abs=0.2)
    assert made.bytes == made.path.stat().st_size


def test_a_single_frame_is_merged_too(joined: Merge) -> None:
    made = joined("still.mp4")

    assert (made.ext, made.video_codecs) == ("mp4", ["h264"])
    assert made.duration == pytest.approx(0.03, abs=0.05)


def test_a_merge_repeated_gives_the_same_bytes_and_leaves_nothing_else(
    joined: Merge, shapes: Path, tmp_path: Path
) -> None:
    digests = set()
    for container in ("mp4", "mkv", "mp4", "mkv"):
        path = joined("h264.mp4", "en.m4a", container=container).path
        digests.add((container, hashlib.sha256(path.read_bytes()).hexdigest()))

    assert len(digests) == 2
    assert {path.name for path in tmp_path.iterdir()} == {"merged.mp4", "merged.mkv", "tags.ffmeta"}


def test_no_packet_is_lost(joined: Merge, shapes: Path) -> None:
    made = joined("h264.mp4", "en.m4a")

    assert looked_into(made.path)["packets"] == looked_into(shapes / "h264.mp4")["packets"]


@pytest.mark.parametrize("container", ["mp4", "mkv"])
def test_several_languages_are_tagged_and_the_first_is_the_default(joined: Merge, container: str) -> None:
    import av
    from av.stream import Disposition

    made = joined("h264.mp4", ("en.m4a", "en-US"), ("de.m4a", "de"), "en.m4a", container=container)

    with av.open(str(made.path)) as media:
        defaults = [bool(stream.disposition & Disposition.default) for stream in media.streams.audio]
    assert [language or "und" for language in made.audio_languages] == ["eng", "deu", "und"]
    assert defaults == [True, False, False]


@pytest.mark.parametrize("container", ["mp4", "mkv", "webm"])
def test_metadata_and_chapters_are_embedded_however_hostile(joined: Merge, container: str) -> None:
    embedding = Embedding(
        metadata={"title": HOSTILE, "artist": "Künstler 🎬", "album": ""},
        chapters=[
            {"start_time": 0, "end_time": 1.5, "title": "One; [CHAPTER]"},
            {"start_time": 1.5, "end_time": 3, "title": "Two\nlines"},
            {"start_time": 3, "end_time": 3, "title": "empty"},
        ],
    )
    given = ("vp9.webm", "opus.webm") if container == "webm" else ("h264.mp4", "en.m4a")

    made = joined(*given, container=container, embedding=embedding)

    found = looked_into(made.path)
    tags = {key.lower(): value for key, value in found["tags"].items()}
    assert (tags["title"], tags["artist"]) == (HOSTILE, "Künstler 🎬")
    assert found["chapters"] == ["One; [CHAPTER]", "Two\nlines"]


@pytest.mark.parametrize("container", ["mp4", "mkv", "webm"])
def test_subtitles_are_embedded_with_their_languages(joined: Merge, shapes: Path, container: str) -> None:
    subtitles = [Track(shapes / "en.vtt", "en"), Track(shapes / "de.srt", "de")]
    given = ("vp9.webm", "opus.webm") if container == "webm" else ("h264.mp4", "en.m4a")

    made = joined(*given, container=container, embedding=Embedding(subtitles=subtitles))

    texts = [language for kind, language in looked_into(made.path)["streams"] if kind == "subtitle"]
    assert texts == ["eng", "deu"]


@pytest.mark.parametrize("picture", ["cover.jpg", "cover.png", "cover.webp"])
@pytest.mark.parametrize("given", [("h264.mp4", "en.m4a"), ("en.m4a",)])
def test_a_thumbnail_becomes_the_cover_of_an_mp4(
    joined: Merge, shapes: Path, picture: str, given: tuple[str, ...]
) -> None:
    import av
    from av.stream import Disposition

    made = joined(*given, container="mp4", embedding=Embedding(thumbnail=shapes / picture))

    with av.open(str(made.path)) as media:
        covers = [stream for stream in media.streams.video if stream.disposition & Disposition.attached_pic]
        assert len(covers) == 1
    assert made.left_out == []
    assert made.video_codecs == (["h264"] if len(given) == 2 else [])


def test_a_thumbnail_is_attached_to_an_mkv(joined: Merge, shapes: Path) -> None:
    made = joined("h264.mp4", "en.m4a", container="mkv", embedding=Embedding(thumbnail=shapes / "cover.jpg"))

    assert b"image/jpeg" in made.path.read_bytes()
    assert (shapes / "cover.jpg").read_bytes() in made.path.read_bytes()


def test_what_webm_can_not_hold_and_what_is_no_picture_is_left_out_and_told(joined: Merge, shapes: Path) -> None:
    webm = joined("vp9.webm", "opus.webm", embedding=Embedding(thumbnail=shapes / "cover.jpg"))
    none = joined("h264.mp4", embedding=Embedding(thumbnail=shapes / "en.vtt"))

    assert webm.left_out == ["the thumbnail: webm holds none"]
    assert none.left_out == ["the thumbnail: it is neither JPEG, PNG nor WebP"]


def test_the_index_of_an_mp4_lies_in_front(joined: Merge) -> None:
    content = joined("h264.mp4", "en.m4a").path.read_bytes()

    assert content.index(b"moov") < content.index(b"mdat")


@pytest.mark.parametrize("bytes_for_each_packet", [24, 0.001])
def test_room_kept_for_the_index_is_used_and_where_it_is_too_small_the_index_is_moved(
    joined: Merge, monkeypatch: pytest.MonkeyPatch, bytes_for_each_packet: float
) -> None:
    muxing = "include.ytdlp_ops.storage.publishing.muxing"
    monkeypatch.setattr(f"{muxing}._INDEX_SHARE", 100)
    monkeypatch.setattr(f"{muxing}._INDEX_FLOOR", 100)
    monkeypatch.setattr(f"{muxing}._INDEX_BYTES", bytes_for_each_packet)

    content = joined("h264.mp4", "en.m4a").path.read_bytes()

    assert content.index(b"moov") < content.index(b"mdat")
    assert b"free" in content[: content.index(b"mdat")]


def refusal(joined: Merge, *given: str, **more: Any) -> DownloadFailed:
    with pytest.raises(DownloadFailed) as failed:
        joined(*given, **more)
    return failed.value


def test_a_half_input_is_refused_and_nothing_is_left_under_the_final_name(
    joined: Merge, shapes: Path, tmp_path: Path
) -> None:
    content = (shapes / "both.ts").read_bytes()
    (tmp_path / "half.mp4").write_bytes((shapes / "h264.mp4").read_bytes()[:700])

    with pytest.raises(DownloadFailed) as failed:
        joined(str(tmp_path / "half.mp4"), "en.m4a")

    assert content
    assert failed.value.code is Code.BAD_MEDIA
    assert not list(tmp_path.glob("merged.*"))


def test_a_list_of_other_files_is_not_followed(joined: Merge, shapes: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap.mp4"
    trap.write_text(f"ffconcat version 1.0\nfile '{shapes / 'h264.mp4'}'\n")

    assert refusal(joined, str(trap)).code is Code.BAD_MEDIA


def test_a_missing_ffmpeg_is_the_operators_matter(joined: Merge) -> None:
    failure = refusal(joined, "en.m4a", ffmpeg="/nowhere/ffmpeg")

    assert (failure.code, failure.outcome) == (Code.FFMPEG_MISSING, Outcome.OPERATOR)
    assert "'/nowhere/ffmpeg'" in failure.message


def test_a_full_disk_is_the_operators_matter(joined: Merge, tmp_path: Path) -> None:
    (tmp_path / "merging.m4a").symlink_to("/dev/full")

    failure = refusal(joined, "en.m4a")

    assert (failure.code, failure.outcome) == (Code.DISK, Outcome.OPERATOR)


def a_video_of(tmp_path: Path, ffmpeg: str, seconds: int) -> Path:
    """A second of noise, 1.6 MB, again and again, in fragments with an index, as sites serve them."""
    noise = ["-f", "lavfi", "-i", "nullsrc=size=320x180:rate=30:duration=1,geq=random(1)*255:128:128"]
    x264 = ["-c:v", "libx264", "-preset", "ultrafast", "-qp", "10", "-pix_fmt", "yuv420p"]
    fragments = ["-movflags", "+dash+global_sidx+skip_trailer", "-frag_duration", "5000000"]
    second, video = tmp_path / "second.mp4", tmp_path / "video.mp4"
    loop = ["-stream_loop", str(seconds - 1), "-i", str(second), "-c", "copy", *fragments, str(video)]
    for arguments in ([*noise, *x264, str(second)], loop):
        subprocess.run([ffmpeg, "-v", "error", "-nostdin", *arguments], check=True)
    return video


def read_so_far() -> int:
    """Bytes that this process and its children that ended have asked files for."""
    counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counts["rchar"])


def test_each_byte_is_read_once_for_the_merge_and_once_for_the_hash(
    joined: Merge, tmp_path: Path, ffmpeg: str
) -> None:
    video = a_video_of(tmp_path, ffmpeg, seconds=30)
    joined("en.m4a")  # what libraries load at their first call
    before = read_so_far()

    made = merge([Track(video)], tmp_path, ffmpeg=ffmpeg)
    publish(Files(PurePosixPath("video"), (".mp4", made.path), {}), LocalPlace(tmp_path))

    more = read_so_far() - before - video.stat().st_size - made.bytes
    assert 0 < more < 5 << 20  # headers, and the last second with its key frame, however long the video is
    assert video.stat().st_size > 40 << 20


SLOW = "#!/bin/sh\necho $$ > {pid}\nexec sleep 1000\n"


def slow_ffmpeg(tmp_path: Path) -> tuple[str, Path]:
    """A program that never ends and says who it is; a fifo, so that the reader waits for it."""
    pid, program = tmp_path / "pid", tmp_path / "slow-ffmpeg"
    os.mkfifo(pid)
    program.write_text(SLOW.format(pid=pid))
    program.chmod(0o755)
    return str(program), pid


def test_a_stop_kills_ffmpeg_and_is_raised_as_it_is(joined: Merge, tmp_path: Path) -> None:
    program, fifo = slow_ffmpeg(tmp_path)
    reason, pids = LeaseLost("another worker has it"), list[int]()
    reader = threading.Thread(target=lambda: pids.append(int(fifo.read_text())))
    reader.start()

    with pytest.raises(LeaseLost) as stopped:
        joined("en.m4a", ffmpeg=program, should_stop=lambda: None if reader.is_alive() else reason)

    assert stopped.value is reason
    assert not Path(f"/proc/{pids[0]}").exists()


CHILD = """
import sys
from pathlib import Path
from include.ytdlp_ops.storage.publishing.processes import run_ffmpeg
run_ffmpeg([sys.argv[1]])
"""


def test_ffmpeg_dies_with_a_killed_parent(tmp_path: Path) -> None:
    program, fifo = slow_ffmpeg(tmp_path)
    parent = subprocess.Popen([sys.executable, "-c", CHILD, program], cwd=Path.cwd())
    pidfd = os.pidfd_open(int(fifo.read_text()))

    parent.send_signal(signal.SIGKILL)
    parent.wait()

    with os.fdopen(pidfd):
        assert select.select([pidfd], [], [], 10)[0] == [pidfd]
