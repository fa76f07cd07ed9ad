"""What the player endpoint says of a video: playability, details, and formats with signed media URLs."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.offline_youtube.media import DURATION, ITAGS
from tests.offline_youtube.scenarios import GOOD, SCENARIOS, Scenario, egress_fault_of, scenario_of

Json = dict[str, Any]

CHANNEL = "UCofflineofflineofflineo"  # "UC" and 22 characters
_SIGNED = ("expire", "ip", "vid", "itag")
_SECRET = b"offline-youtube"


@dataclass(frozen=True)
class Player:
    """
    The player endpoint.

    :param media: the folder with the files of `ITAGS`.
    :param ttl: seconds that a media URL lives.
    """

    media: Path
    ttl: int

    def answer(self, video_id: str, egress: str, cookies: str = "") -> Json:
        """The player response for this video, seen from this egress with these cookies."""
        scenario = _scenario(video_id, egress, cookies)
        response: Json = {
            "responseContext": {"visitorData": "CgtvZmZsaW5lMTIzNA%3D%3D"},
            "playabilityStatus": {"playableInEmbed": True, **scenario.play},
        }
        status = scenario.play["status"]
        if status != "ERROR":  # nothing is told of a video that is gone
            response["videoDetails"] = _details(video_id, scenario)
            response["microformat"] = {"playerMicroformatRenderer": _microformat(video_id, scenario)}
        if status == "OK":
            response |= _hls() if scenario.live else self._streams(video_id, scenario, egress)
        if scenario.ad_seconds is not None:
            response["adPlacements"] = [_ad(scenario.ad_seconds)]
        return response

    def _streams(self, video_id: str, scenario: Scenario, egress: str) -> Json:
        made = list(self._formats(video_id, scenario, egress))
        board = f"https://i.ytimg.com/sb/{video_id}/storyboard3_L$L/$N.jpg?sqp=x|48#27#4#2#2#1000#M$M#rs$x"
        streams: Json = {
            "expiresInSeconds": "21540",
            "formats": [said for said in made if said["itag"] == 18],
            "adaptiveFormats": [said for said in made if said["itag"] != 18],
        }
        if scenario.drm:
            streams["licenseInfos"] = [{"drmFamily": "WIDEVINE", "url": "https://www.youtube.com/drm"}]
        return {"streamingData": streams, "storyboards": {"playerStoryboardSpecRenderer": {"spec": board}}}

    def _formats(self, video_id: str, scenario: Scenario, egress: str) -> Iterator[Json]:
        ttl = self.ttl if scenario.ttl is None else scenario.ttl
        for itag in ITAGS if scenario.itags is None else scenario.itags:
            media = ITAGS[itag]
            size = (self.media / media.name).stat().st_size
            rate = size * 8 // DURATION
            said: Json = {"itag": itag, "mimeType": media.mime, "bitrate": rate, "averageBitrate": rate}
            said |= {"contentLength": str(size), "approxDurationMs": str(DURATION * 1000)}
            said |= {"projectionType": "RECTANGULAR", "lastModified": "1700000000000000", **media.said}
            if not scenario.sabr:
                said["url"] = _media_url(video_id, itag, size, expire=int(time.time()) + ttl, egress=egress)
            if scenario.drm:
                said["drmFamilies"] = ["WIDEVINE"]
            yield said


def is_signed_for(query: Mapping[str, str], egress: str) -> bool:
    """Whether a media URL is ours, in time, and asked for through the egress that extracted it."""
    return (
        query.get("sig") == _signature(query)
        and int(query["expire"]) > time.time()
        and query["ip"] == _egress_ip(egress)
    )


def _scenario(video_id: str, egress: str, cookies: str) -> Scenario:
    if egress_fault_of(egress) == "botip":
        return SCENARIOS["bot"]
    if egress_fault_of(egress) == "blind":
        return SCENARIOS["gone"]
    scenario = scenario_of(video_id)
    if scenario.members and "LOGIN_INFO=member" in cookies:
        return Scenario(means="plays for a member")
    if scenario.countries != GOOD.countries and egress[:2].upper() in scenario.countries:
        return Scenario(means="plays in its country")
    return scenario


def _media_url(video_id: str, itag: int, size: int, *, expire: int, egress: str) -> str:
    query = {
        "expire": str(expire), "ip": _egress_ip(egress), "id": f"o-{video_id}", "itag": str(itag),
        "source": "youtube", "requiressl": "yes", "mime": ITAGS[itag].mime.split(";")[0], "clen": str(size),
        "dur": f"{DURATION}.000", "lmt": "1700000000000000", "vid": video_id,
    }  # fmt: skip
    signed = {**query, "sig": _signature(query)}
    return f"https://rr1---sn-offline.googlevideo.com/videoplayback?{urlencode(signed)}"


def _signature(query: Mapping[str, str]) -> str:
    said = "/".join(str(query.get(key)) for key in _SIGNED)
    return hmac.new(_SECRET, said.encode(), "sha256").hexdigest()[:32]


def _egress_ip(egress: str) -> str:
    first, second, third = hashlib.sha256(egress.encode()).digest()[:3]
    return f"10.{first}.{second}.{third}"


def _details(video_id: str, scenario: Scenario) -> Json:
    thumbnail = {"url": f"https://i.ytimg.com/vi/{video_id}/hqdefault.jpg", "width": 480, "height": 360}
    return {
        "videoId": scenario.answers_for or video_id,
        "title": f"Offline video {video_id}",
        "lengthSeconds": str(DURATION),
        "channelId": CHANNEL,
        "author": "Offline channel",
        "shortDescription": "Made with ffmpeg.",
        "viewCount": "42",
        "isPrivate": False,
        "keywords": ["offline"],
        "isLiveContent": bool(scenario.live),
        "thumbnail": {"thumbnails": [thumbnail]},
        **({scenario.live: True} if scenario.live else {}),
    }


def _microformat(video_id: str, scenario: Scenario) -> Json:
    said: Json = {
        "title": {"simpleText": f"Offline video {video_id}"},
        "lengthSeconds": str(DURATION),
        "ownerProfileUrl": "http://www.youtube.com/@offline",
        "externalChannelId": CHANNEL,
        "isFamilySafe": True,
        "isUnlisted": False,
        "category": "Education",
        "availableCountries": list(scenario.countries),
        "uploadDate": "2024-01-02T03:04:05-08:00",
        "publishDate": "2024-01-02T03:04:05-08:00",
    }
    if scenario.live:
        starts = time.gmtime(time.time() + scenario.starts_in)
        said["liveBroadcastDetails"] = {
            "isLiveNow": scenario.live == "isLive",
            "startTimestamp": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", starts),
        }
    return said


def _hls() -> Json:
    manifest = "https://manifest.googlevideo.com/api/manifest/hls_variant/index.m3u8"
    return {"streamingData": {"hlsManifestUrl": manifest}}


def _ad(seconds: int) -> Json:
    renderer = {"playerVars": "length_seconds=15", "skipOffsetMilliseconds": seconds * 1000}
    return {
        "adPlacementRenderer": {
            "config": {"adPlacementConfig": {"kind": "AD_PLACEMENT_KIND_START"}},
            "renderer": {"instreamVideoAdRenderer": renderer},
        }
    }
