"""Infos as a hostile ops server would give them, through auth, dl and publish: refused, or harmless files."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.profile_files import load_profiles
from include.ytdlp_ops.downloading.profiles import Profiles
from include.ytdlp_ops.ops_server.client import OpsServerClient
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.records import Record
from tests.answering import answering
from tests.media_site import MediaSite
from tests.offline_youtube import OfflineYouTube
from tests.pipeline import Pipeline, files_in

if TYPE_CHECKING:
    from redis import Redis

VIDEO = "abc-abcdefg"
EVERYTHING = {
    "formats": "bv*+ba/b",
    "output": "%(uploader)s/%(title)s.%(ext)s",
    "embed": {"metadata": True, "chapters": True, "thumbnail": True, "subtitles": True},
    "write": {"description": True, "info_json": True, "thumbnail": True, "subtitles": True},
    "subtitles": {"languages": ["all"], "automatic": True},
    "download_options": {"retries": 0, "fragment_retries": 0},
}
PLAYLIST = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n"


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Profiles:
    file = tmp_path_factory.mktemp("profiles") / "profiles.yaml"
    file.write_text(json.dumps({"profiles": {"everything": EVERYTHING}}))  # JSON is YAML
    return load_profiles(file)


@pytest.fixture(scope="module")
def site(youtube: OfflineYouTube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MediaSite]:
    folder = tmp_path_factory.mktemp("site")
    (folder / "140.m4a").hardlink_to(youtube.media_folder / "140.m4a")
    (folder / "list.m3u8").write_text(PLAYLIST)
    with MediaSite(folder) as site:
        yield site


Hosted = Callable[..., Any]


@pytest.fixture
def hosted(redis_client: Redis, youtube: OfflineYouTube, profiles: Profiles, tmp_path: Path) -> Hosted:
    @contextmanager
    def with_answer(info: Any, *, proxy: str | None = None, private: bool = True) -> Iterator[Pipeline]:
        """A host whose ops server answers with this info, a dict or JSON."""
        text = info if isinstance(info, str) else json.dumps(info)
        facts = {"egress": "e", "account": None, "client": None, "proxy": proxy, "expires_at": None}
        body = json.dumps({**facts, "warnings": []})[:-1] + f', "info": {text}}}'
        with (
            answering(content=body.encode(), kind="application/json") as server,
            OpsServerClient(f"http://127.0.0.1:{server.port}", "token") as client,
        ):
            host = Pipeline(redis_client, youtube, client, tmp_path / "host", profiles)
            host.settings = host.settings.model_copy(update={"allow_private_targets": private})
            yield host

    return with_answer


def an_info(site: MediaSite, fmt: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    """An info with one format that plays, changed."""
    plays = {"format_id": "140", "url": site.url("140.m4a"), "ext": "m4a", "protocol": "http"}
    formats = [{**plays, "vcodec": "none", "acodec": "mp4a.40.2", **fmt}]
    named = {"id": "abc", "title": "A title", "uploader": "me", "extractor": "generic", "extractor_key": "Generic"}
    return {**named, "duration": 4, "formats": formats, **changed}


def end_of(host: Pipeline) -> Record:
    """Where the video stopped: its record in auth or publish, or that of its format in dl."""
    record = host.extract(VIDEO, profile="everything")
    if record["place"] != Place.RESULT:
        return record
    (job,) = record["jobs"]
    host.download()
    made = host.record(host.dl, job)
    return made if made["place"] != Place.RESULT else host.publish_next()


HARMLESS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "headers of two lines, and one that signs in": (
        {"http_headers": {"User-Agent": "a\r\nX-In: 1", "X\r\nY": "z", "Cookie": "s"}},
        {},
    ),
    "an ending that leads out": ({"ext": "../x"}, {}),
    "an ending that is run": ({"ext": "sh"}, {}),
    "files of its own choice": (
        {"filepath": "VICTIM"},
        {
            "requested_downloads": [{"filepath": "VICTIM"}], "filepath": "VICTIM", "_filename": "VICTIM",
            "__finaldir": "/", "__files_to_move": {"a": "VICTIM"}, "requested_formats": [{"url": "file:///x"}],
        },
    ),
    "programs of its own choice": (
        {"downloader_options": {"ffmpeg_args": ["-y", "VICTIM"]}},
        {"postprocessors": [{"key": "Exec", "exec_cmd": "touch VICTIM"}], "__postprocessors": [1]},
    ),
    "a callable that is none": ({}, {"__post_extractor": "x"}),
    "a list beside its formats": ({}, {"_type": "playlist", "entries": [{"url": "file:///etc/passwd"}]}),
    "another URL to go on with": ({}, {"_type": "url", "url": "http://127.0.0.1:1/", "ie_key": "Generic"}),
    "a title that is a dict": ({}, {"title": {"a": 1}}),
    "half a surrogate pair": ({}, {"title": "a\ud83d", "uploader": "\udcff", "description": "\ud800"}),
    "an endless title": ({}, {"title": "x" * 5_000_000}),
    "an endless description": ({}, {"description": "é" * 10_000_000}),
    "a format id with slashes": ({"format_id": "../../x/y"}, {}),
    "a format id of a selector's signs": ({"format_id": "a,b+c[d]"}, {}),
    "an endless format id": ({"format_id": "x" * 300}, {}),
    "a format id of half a surrogate pair": ({"format_id": "\ud83d"}, {}),
    "a format id that is a number": ({"format_id": 5}, {}),
    "an id that leads out": ({}, {"id": "../../etc"}),
    "an id with NUL": ({}, {"id": "a\0b"}),
    "an extractor that leads out": ({}, {"extractor": "../../x", "extractor_key": "../../y"}),
    "lengths below nothing": ({"filesize": -5}, {"duration": -5}),
    "numbers without end": ({"width": 1e300, "tbr": -1e300}, {"duration": 1e308, "timestamp": 1e300}),
    "numbers that are none": ({}, {"duration": float("nan"), "timestamp": float("-inf"), "view_count": "x"}),
    "codecs that are none": ({"vcodec": {}, "acodec": 5, "protocol": []}, {}),
    "chapters of nonsense": (
        {},
        {"chapters": [1, {"start_time": 0, "end_time": 1e308}, {"start_time": -1, "end_time": 2, "title": "\n"}]},
    ),
    "subtitles that lead out": (
        {},
        {"subtitles": {
            "../../x": [{"ext": "vtt", "data": "WEBVTT\n\n00:00.000 --> 00:01.000\nx\n"}],
            "\ud83d": [{"ext": "vtt", "data": "WEBVTT\n\ud83d"}],
            "de": [{"ext": "vtt", "url": "file:///etc/passwd"}],
        }},
    ),
    "thumbnails from files": ({}, {"thumbnails": [{"url": "file:///etc/passwd"}, 5, {"url": "http://["}]}),
}  # fmt: skip


@pytest.mark.parametrize("case", HARMLESS)
def test_what_an_info_has_no_say_in_changes_nothing(
    hosted: Hosted, site: MediaSite, tmp_path: Path, case: str
) -> None:
    victim = tmp_path / "victim"
    fmt, changed = json.loads(json.dumps(HARMLESS[case]).replace("VICTIM", str(victim)))

    with hosted(an_info(site, fmt, changed)) as host:
        record = end_of(host)

    assert record["place"] == Place.RESULT, (record["code"], record["message"])
    inside = [path.relative_to(host.settings.output_dir) for path in files_in(tmp_path)]
    assert Path(record["path"]).suffix == ".m4a"
    assert all(len(path.parts) == 2 and str(path).isprintable() for path in inside)
    assert not any(b"root:" in path.read_bytes() for path in files_in(tmp_path))
    assert len(json.dumps(record)) < 10_000


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], Place, Code]] = {
    "a file of the host": ({"url": "file:///etc/passwd"}, {}, Place.SKIPPED, Code.FORMAT_MISSING),
    "another protocol": ({"url": "rtmp://h/x", "protocol": "rtmp"}, {}, Place.SKIPPED, Code.FORMAT_MISSING),
    "a fragment of the host": (
        {"protocol": "http_dash_segments", "fragments": [{"path": "/etc/passwd"}]},
        {},
        Place.SKIPPED,
        Code.FORMAT_MISSING,
    ),
    "fragments that are none": (
        {"protocol": "http_dash_segments", "fragments": [{}, 5, {"url": 5}]},
        {},
        Place.SKIPPED,
        Code.FORMAT_MISSING,
    ),
    "no fragments": ({"protocol": "http_dash_segments", "fragments": []}, {}, Place.FAIL, Code.NETWORK),
    "a list and no formats": ({}, {"_type": "playlist", "formats": None}, Place.FAIL, Code.LOCAL_INPUT),
    "an id that is no text": ({}, {"id": 7}, Place.FAIL, Code.LOCAL_INPUT),
    "an endless id": ({}, {"id": "x" * 600}, Place.FAIL, Code.LOCAL_INPUT),
    "an id of half a surrogate pair": ({}, {"id": "\ud83d"}, Place.FAIL, Code.LOCAL_INPUT),
    "an endless extractor": ({}, {"extractor_key": "x" * 300}, Place.FAIL, Code.LOCAL_INPUT),
    "another length than it has": ({}, {"duration": 400}, Place.FAIL, Code.BAD_MEDIA),
    "another size than it has": ({"filesize": 5}, {}, Place.FAIL, Code.BAD_MEDIA),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_not_be_a_video_is_refused_with_its_reason(
    hosted: Hosted, site: MediaSite, tmp_path: Path, case: str
) -> None:
    fmt, changed, place, code = REFUSED[case]

    with hosted(an_info(site, fmt, changed)) as host:
        record = end_of(host)

    assert (record["place"], record["code"]) == (place, code), record["message"]
    assert files_in(host.settings.output_dir) == files_in(host.settings.staging_dir) == []
    assert len(record["message"]) < 1000


def test_a_playlist_of_the_hosts_files_is_not_read(hosted: Hosted, site: MediaSite, tmp_path: Path) -> None:
    info = an_info(site, {"protocol": "m3u8_native", "url": site.url("list.m3u8")}, {})

    with hosted(info) as host:
        record = end_of(host)

    assert (record["place"], record["retryable"]) == (Place.FAIL, True)
    assert not any(b"root:" in path.read_bytes() for path in files_in(tmp_path))


def test_an_answer_that_nests_without_end_is_none(hosted: Hosted) -> None:
    with hosted("[" * 100_000 + "]" * 100_000) as host:
        record = host.extract(VIDEO)

    assert (record["place"], record["code"]) == (Place.FAIL, Code.OPS_SERVER_UNAVAILABLE)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{port}/140.m4a", "http://[::1]:{port}/x", "http://127.1:{port}/"]
)
def test_media_of_a_private_address_are_not_asked_for(hosted: Hosted, site: MediaSite, url: str) -> None:
    site.asked.clear()
    port = site.server_address[1]

    with hosted(an_info(site, {"url": url.format(port=port)}, {}), private=False) as host:
        record = end_of(host)

    assert (record["place"], record["code"], record["retryable"]) == (Place.FAIL, Code.BAD_INPUT, False)
    assert "is a private address" in record["message"]
    assert site.asked == []


def led_on(port: int) -> dict[str, dict[str, Any]]:
    """What a public host answers with, to lead to a private one."""
    private = f"http://127.0.0.1:{port}/140.m4a"
    listed = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n{}#EXTINF:1,\n{}\n#EXT-X-ENDLIST\n"
    keyed = f'#EXT-X-KEY:METHOD=AES-128,URI="{private}"\n'
    public = "http://media.example/1.ts"
    return {
        "redirect": {"location": private},
        "segment": {"content": listed.format("", private).encode()},
        "key": {"content": listed.format(keyed, public).encode()},
        "ffmpeg": {"content": listed.format(keyed.replace("AES-128", "SAMPLE-AES"), private).encode()},
    }


@pytest.mark.parametrize(
    ("way", "protocol"),
    [("redirect", "http"), ("segment", "m3u8_native"), ("key", "m3u8_native"), ("ffmpeg", "m3u8_native")],
)
def test_a_public_host_that_leads_to_a_private_one_is_not_followed(
    hosted: Hosted, site: MediaSite, way: str, protocol: str
) -> None:
    with answering(**led_on(site.server_address[1])[way]) as proxy:
        info = an_info(site, {"url": "http://media.example/x", "protocol": protocol}, {})
        with hosted(info, proxy=f"http://127.0.0.1:{proxy.port}", private=False) as host:
            record = end_of(host)

    assert (record["place"], record["code"], record["retryable"]) == (Place.FAIL, Code.BAD_INPUT, False)
    assert ("needs ffmpeg" if way == "ffmpeg" else "'127.0.0.1' is a private address") in record["message"]
    assert {url for url in proxy.asked if "media.example" not in url} == set()


def test_a_fragment_of_a_private_address_is_not_asked_for(hosted: Hosted, site: MediaSite) -> None:
    site.asked.clear()
    parts = [{"url": site.url("140.m4a")}]
    fmt = {"url": "http://media.example/x", "protocol": "http_dash_segments", "fragments": parts}

    with hosted(an_info(site, fmt, {}), private=False) as host:
        record = end_of(host)

    assert (record["place"], record["code"]) == (Place.FAIL, Code.BAD_INPUT)
    assert site.asked == []


def test_a_name_that_resolves_to_a_private_address_is_not_asked(
    hosted: Hosted, site: MediaSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.asked.clear()
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *how, **more: resolve("127.0.0.1" if host == "media.example" else host, *how, **more),
    )
    url = f"http://media.example:{site.server_address[1]}/140.m4a"

    with hosted(an_info(site, {"url": url}, {}), private=False) as host:
        record = end_of(host)

    assert (record["place"], record["code"]) == (Place.FAIL, Code.BAD_INPUT)
    assert "'media.example' resolves to the private address 127.0.0.1" in record["message"]
    assert site.asked == []
