"""Profiles: what may be wished for, that nothing else can be, and what a mistake in the file is answered with."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.profile_files import load_profiles
from include.ytdlp_ops.downloading.profiles import (
    Destination,
    DownloadOptions,
    FormatOptions,
    Profile,
    Profiles,
    check_quality,
)
from include.ytdlp_ops.downloading.selecting import WantedFormat
from include.ytdlp_ops.errors import BadInput, ConfigurationError, DownloadFailed

ALLOWED = {
    "format_sort", "format_sort_force", "prefer_free_formats", "allow_multiple_audio_streams",
    "allow_multiple_video_streams", "retries", "fragment_retries", "socket_timeout", "http_chunk_size",
}  # fmt: skip
"""Every name of yt-dlp's own that a profile may spell. Think twice before adding one."""

DANGEROUS = (
    "exec", "exec_cmd", "exec_before_dl_cmd", "exec_before_download", "postprocessors", "postprocessor_args",
    "external_downloader", "external_downloader_args", "config_locations", "cookiesfrombrowser", "cookiefile",
    "load_info_filename", "plugin_dirs", "paths", "outtmpl", "ffmpeg_location", "netrc_cmd", "netrc_location",
    "usenetrc", "username", "password", "proxy", "enable_file_urls", "http_headers", "source_address", "batchfile",
    "download_archive", "print_to_file", "nocheckcertificate", "client_certificate", "js_runtimes", "cachedir",
    "remote_components", "compat_opts", "extractor_args", "allow_unplayable_formats", "geo_verification_proxy",
)  # fmt: skip


def names_that_ytdlp_knows() -> set[str]:
    """Of its command line, of what that becomes, and of what the API's documentation lists."""
    import yt_dlp  # type: ignore[import-untyped]  # ships no types
    from yt_dlp.options import create_parser  # type: ignore[import-untyped]  # as above

    spelled = {option.dest for group in create_parser().option_groups for option in group.option_list}
    documented = set(re.findall(r"^ {4}([a-z_]+):", yt_dlp.YoutubeDL.__doc__ or "", re.MULTILINE))
    return (spelled | documented | set(yt_dlp.parse_options([]).ydl_opts) | set(DANGEROUS)) - {None}


def is_allowed(name: str) -> bool:
    for where in ({name: 1}, {"format_options": {name: 1}}, {"download_options": {name: 1}}):
        try:
            Profile.model_validate({"formats": "b", **where})
        except ValidationError as error:
            if any(problem["type"] != "extra_forbidden" for problem in error.errors()):
                return True  # known, and 1 is not its kind of value
        else:
            return True
    return False


def test_no_option_of_yt_dlps_but_the_listed_ones_can_be_spelled() -> None:
    names = names_that_ytdlp_knows()

    assert len(names) > 200
    assert {name for name in names if is_allowed(name)} == ALLOWED
    assert set(FormatOptions.model_fields) | set(DownloadOptions.model_fields) == ALLOWED


def test_the_built_in_profiles_are_what_the_documentation_says() -> None:
    profiles = load_profiles(None)

    assert set(profiles.profiles) == {"best", "1080p", "audio-m4a", "audio-opus", "archive"}
    assert profiles.get(None) == profiles.get("best")
    assert profiles.destination_for(profiles.get(None), []) is None


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "profiles.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_adds_to_the_built_in_profiles_and_replaces_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, "profiles:\n  best: {formats: b}\n  small: {formats: wv+wa, rate_limit: 1.5M}\n")

    profiles = load_profiles(path)

    assert profiles.get("best").formats == "b"
    assert profiles.get("small").transfer.rate_limit == 1572864
    assert profiles.get("archive").container == "mkv"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("profiles:\n  own:\n    formats: b\n    exec: rm -rf /\n", 4, "profiles.own.exec: is not allowed"),
        ("profiles:\n  own:\n    formats: b\n    embed: {cover: true}\n", 4, "known are metadata, chapters"),
        ("profiles:\n  own: {formats: b, rate_limit: fast}\n", 2, "found 'fast'"),
        ("profiles:\n  own:\n    formats: b\n    container: avi\n", 4, "'auto', 'mp4', 'webm' or 'mkv'"),
        ("profiles:\n  own: {}\n", 2, "profiles.own.formats"),
        ("profiles:\n  own: {formats: 'bv*['}\n", 2, "'bv*[' is no format selector"),
        ("profiles:\n  own: {formats: b, output: '%(id)s%(title'}\n", 2, "is no output template"),
        ("profiles:\n  own: {formats: b, output: '%(id)99999s'}\n", 2, "can't be a file name"),
        ("profiles:\n  own: {formats: b, output: 'same for all'}\n", 2, "an output template names fields"),
        ("profiles:\n  own: {formats: b, window: '25:00-06:00'}\n", 2, "'22:00-06:00 Europe/Berlin'"),
        ("profiles:\n  own: {formats: b, window: '22:00-06:00 Mars/Base'}\n", 2, "no time zone 'Mars/Base'"),
        ("profiles:\n  own: {formats: b, destination: nas}\n", 1, "goes to 'nas'; destinations there are: none"),
        ("profiles:\n  ../own: {formats: b}\n", 1, "'../own' is no name"),
        ("destinations:\n  s3: {path: 's3://key:pass@bucket'}\n", 2, "no user names"),
        ("destinations:\n  d: {path: /srv, options: {secret: x}}\n", 2, "secret: credentials belong in"),
        ("destinations:\n  d: {path: relative/dir}\n", 2, "an absolute directory"),
        ("destinations:\n  d: {path: /srv, conn_id: aws}\n", 2, "a directory needs no connection"),
        ("destinations:\n  d: {path: 's3://bucket', mount: true}\n", 2, "'mount: true' is for directories"),
        (
            "profiles:\n  own: {formats: b, subtitles: {languages: ['e(']}}\n",
            2,
            "'e(' is no language",
        ),
        ("profiles: [\n", 2, "not YAML"),
        ("- best\n", 1, "'profiles:' and 'destinations:' are expected"),
    ],
)
def test_a_mistake_is_answered_with_file_line_field_and_way_out(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    path = written(tmp_path, text)

    with pytest.raises(ConfigurationError) as refused:
        load_profiles(path)

    assert str(refused.value).startswith(f"{path}:{line}: ")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "profiles:\n  own: {formats: b, password: hunter2}\n",
        "destinations:\n  s3: {path: 's3://k:hunter2@bucket'}\n",
    ],
)
def test_what_may_be_a_secret_is_not_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_profiles(written(tmp_path, text))

    assert "hunter2" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="can't be read: No such file"):
        load_profiles(tmp_path / "gone.yaml")


def test_an_unknown_profile_is_the_items_fault_and_the_known_ones_are_named() -> None:
    with pytest.raises(BadInput, match="no profile 'best2'; there are best, 1080p"):
        load_profiles(None).get("best2")


def test_a_destination_is_chosen_by_tag_then_by_profile_then_by_default() -> None:
    profiles = Profiles(
        profiles={"p": Profile(formats="b", destination="nas"), "q": Profile(formats="b")},
        destinations={
            "default": Destination(path="/srv"),
            "nas": Destination(path="/mnt/nas"),
            "cold": Destination(path="s3://bucket", tags=["cold", "old"]),
        },
    )

    chosen = [
        (profiles.destination_for(profiles.get(name), tags) or ("",))[0]
        for name, tags in (("p", ["old"]), ("p", ["new"]), ("q", []))
    ]

    assert chosen == ["cold", "nas", "default"]


@pytest.mark.parametrize(
    ("window", "now", "hours"),
    [
        (None, "2026-06-01T12:00+00:00", 0),
        ("22:00-06:00", "2026-06-01T23:00+00:00", 0),
        ("22:00-06:00", "2026-06-01T05:59+00:00", 0),
        ("22:00-06:00", "2026-06-01T06:00+00:00", 16),
        ("01:00-05:00", "2026-06-01T06:00+00:00", 19),
        ("08:00-08:00", "2026-06-01T07:00+00:00", 0),
        ("22:00-06:00 Europe/Berlin", "2026-06-01T20:30+00:00", 0),
        ("01:00-02:00 Europe/Berlin", "2026-10-24T10:00+00:00", 13),
        ("04:00-05:00 Europe/Berlin", "2026-10-24T10:00+00:00", 17),  # the clocks go back in that night
    ],
)
def test_a_time_window_says_how_long_to_wait(window: str | None, now: str, hours: float) -> None:
    profile = Profile(formats="b", window=window)

    assert profile.opens_in_seconds(datetime.datetime.fromisoformat(now)) == hours * 3600


def picture(width: int, height: int) -> WantedFormat:
    return WantedFormat("1", None, None, "mp4", "https", "avc1", "none", width, height, 30, "host", None)


@pytest.mark.parametrize(
    ("width", "height", "low"), [(640, 360, True), (1280, 720, False), (720, 1280, False), (360, 640, True)]
)
def test_low_quality_is_recorded_also_of_vertical_videos(width: int, height: int, low: bool) -> None:
    said = check_quality(Profile(formats="b", min_height=720), [picture(width, height)])

    assert (said == "the best picture has 360 lines; at least 720 are wanted") is low


def test_low_quality_fails_where_the_profile_says_so() -> None:
    profile = Profile(formats="b", min_height=720, low_quality="fail")

    with pytest.raises(DownloadFailed) as refused:
        check_quality(profile, [picture(640, 360)])

    assert refused.value.code is Code.LOW_QUALITY


def test_sound_alone_is_not_of_low_quality() -> None:
    sound = WantedFormat("1", None, None, "m4a", "https", "none", "mp4a", None, None, None, "host", None)

    assert check_quality(Profile(formats="ba", min_height=720), [sound]) is None
