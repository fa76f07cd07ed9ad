"""The real YouTube extractor over every scenario and every egress fault, read through the recorders."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.diagnosis import Diagnosis, diagnose
from include.ytdlp_ops.diagnosis.signals import (
    RetryRecorder,
    WarningRecorder,
    read_signal,
    recording_youtube_ie,
)
from tests.offline_youtube import EGRESS_FAULTS, SCENARIOS, OfflineYouTube
from tests.offline_youtube.scenarios import scenario_of

# yt-dlp leaves the sockets of failed answers to the garbage collector

PLAYS = "plays"
GOOD = "ok-00000001"

VIDEOS: dict[str, Code | str] = {
    "private": Code.PRIVATE, "deleted": Code.REMOVED, "gone": Code.UNAVAILABLE_UNEXPLAINED,
    "never": Code.UNAVAILABLE_UNEXPLAINED, "tos": Code.REMOVED, "ended": Code.REMOVED, "claim": Code.COPYRIGHT,
    "geo": Code.GEO, "geo2": Code.GEO, "members": Code.MEMBERS, "level": Code.MEMBERS, "age": Code.AGE,
    "rental": Code.PAYMENT, "premium": Code.PAYMENT, "drm": Code.DRM, "only18": Code.NO_USABLE_FORMATS,
    "live": Code.NO_USABLE_FORMATS, "norec": Code.REMOVED,
    "upcoming": Code.UPCOMING, "premiere": Code.UPCOMING, "ended2": Code.UPCOMING, "process": Code.UPCOMING,
    "bot": Code.BOT_CHECK, "limit": Code.RATE_LIMITED_SESSION, "blocked": Code.ACCOUNT_BLOCKED,
    "captcha": Code.BOT_CHECK, "reload": Code.CLIENT_BROKEN, "app": Code.CLIENT_BROKEN, "wrongid": Code.BOT_CHECK,
    "sabr": Code.NO_USABLE_FORMATS, "empty": Code.NO_USABLE_FORMATS, "h429": Code.HTTP_429, "h403": Code.HTTP_403,
    "h500": Code.NETWORK, "badjson": Code.NO_USABLE_FORMATS, "ads": PLAYS,
    "m403": Code.MEDIA_403, "m404": Code.MEDIA_GONE, "m410": Code.MEDIA_GONE, "m429": Code.HTTP_429,
    "m503": Code.NETWORK, "m503x2": PLAYS, "mcut": PLAYS, "mcut1": PLAYS, "mreset": Code.PROXY,
    "mempty": Code.NETWORK, "mtrunc": PLAYS, "mhtml": PLAYS, "mslow": PLAYS, "expired": Code.URL_EXPIRED,
}  # fmt: skip
"""`mtrunc` and `mhtml` play: yt-dlp calls them done, and only the worker's own verification tells."""

EGRESSES: dict[str, Code | str] = {
    "p403": Code.PROXY, "p407": Code.PROXY, "p429": Code.PROXY, "p502": Code.PROXY, "p503": Code.PROXY,
    "hang": Code.NETWORK, "reset": Code.NETWORK, "badtls": Code.NETWORK, "botip": Code.BOT_CHECK,
    "ip429": Code.HTTP_429, "blind": Code.UNAVAILABLE_UNEXPLAINED, "slow": PLAYS,
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfflineYouTube]:
    with (
        OfflineYouTube(tmp_path_factory.getbasetemp() / "offline-youtube") as site,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SSL_CERT_FILE", str(site.ca_file))  # quicker to load than the bundle, per YoutubeDL
        yield site


def ask(site: OfflineYouTube, video_id: str, egress: str, folder: Path) -> Diagnosis | str:
    """Extract as auth does, then, where media are what is asked about, download as a worker does."""
    import yt_dlp  # type: ignore[import-untyped]  # yt-dlp has no types

    scenario = scenario_of(video_id)
    warnings, extractor = WarningRecorder(), recording_youtube_ie()
    options: dict[str, Any] = {
        "proxy": site.proxy(egress), "compat_opts": {"no-certifi"}, "cachedir": False, "logger": warnings,
        "socket_timeout": 1, "extractor_retries": 0, "retries": 3, "allowed_extractors": ["youtube.*"],
        "format": "299", "outtmpl": str(folder / "%(id)s.%(ext)s"), "fixup": "never",
    }  # fmt: skip
    with yt_dlp.YoutubeDL(options) as ydl, RetryRecorder(ydl) as retries:
        ydl.add_info_extractor(extractor)
        media_url = None
        try:
            info = ydl.extract_info(f"https://www.youtube.com/watch?v={video_id}", download=False)
            media_url = info["url"]
            if scenario.media or scenario.ttl:
                ydl.process_info(info)
        except yt_dlp.utils.YoutubeDLError as error:
            signal = read_signal(
                error,
                stage="download" if media_url else "auth",
                playability=extractor.seen,
                warnings=warnings.warnings,
                retried=retries.errors,
                media_url=media_url,
            )
            return diagnose(signal)
    return PLAYS


def test_the_tables_name_every_scenario_and_every_fault() -> None:
    named = (set(VIDEOS), set(EGRESSES))

    assert named == (set(SCENARIOS), set(EGRESS_FAULTS))


def test_every_scenario_and_fault_is_diagnosed(site: OfflineYouTube, tmp_path: Path) -> None:
    cases: list[tuple[str, str, Code | str]] = [
        *((f"{name}-".ljust(11, "0"), "egress1", expected) for name, expected in VIDEOS.items()),
        *((GOOD, f"{name}-1", expected) for name, expected in EGRESSES.items()),
    ]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda case: ask(site, case[0], case[1], tmp_path), cases))

    said = [
        (video, egress, each.code if isinstance(each, Diagnosis) else each)
        for (video, egress, _), each in zip(cases, found, strict=True)
    ]
    assert said == cases
    assert all(each.outcome is each.code.outcome for each in found if isinstance(each, Diagnosis))


def test_what_yt_dlp_drops_is_in_the_diagnosis(site: OfflineYouTube, tmp_path: Path) -> None:
    upcoming = ask(site, "upcoming-00", "egress1", tmp_path)
    geo = ask(site, "geo-0000000", "egress1", tmp_path)

    assert isinstance(upcoming, Diagnosis)
    assert upcoming.retry_after == pytest.approx(7200, abs=30)
    assert isinstance(geo, Diagnosis)
    assert geo.countries == ("DE", "AT")
