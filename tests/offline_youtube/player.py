"""What the player endpoint says of a video: playability, details, and formats with signed media URLs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from tests.offline_youtube.captions import tracks
from tests.offline_youtube.media import Media
from tests.offline_youtube.scenarios import GOOD, SCENARIOS, Scenario, egress_fault_of, scenario_of
from tests.offline_youtube.signing import egress_ip, signed
from tests.offline_youtube.stock import Stock
from tests.offline_youtube.streams import Streams

Json = dict[str, Any]

CHANNEL = "UCofflineofflineofflineo"  # "UC" and 22 characters


@dataclass(frozen=True)
class Player:
    """
    The player endpoint.

    :param stock: the formats' files.
    :param streams: what comes in segments.
    :param ttl: seconds that a media URL lives.
    """

    stock: Stock
    streams: Streams
    ttl: int

    def answer(self, video_id: str, egress: str, cookies: str = "") -> Json:
        """The player response for this video, seen from this egress with these cookies."""
        scenario = self._scenario(video_id, egress, cookies)
        response: Json = {
            "responseContext": {"visitorData": "CgtvZmZsaW5lMTIzNA%3D%3D"},
            "playabilityStatus": {"playableInEmbed": True, **scenario.play},
        }
        status = scenario.play["status"]
        if status != "ERROR":  # nothing is told of a video that is gone
            response["videoDetails"] = _details(video_id, scenario)
            response["microformat"] = {"playerMicroformatRenderer": _microformat(video_id, scenario)}
        if status == "OK":
            response |= self._streams(video_id, scenario, egress) | tracks(video_id, scenario.captions)
        if scenario.ad_seconds is not None:
            response["adPlacements"] = [_ad(scenario.ad_seconds)]
        return response

    def _scenario(self, video_id: str, egress: str, cookies: str) -> Scenario:
        scenario = _scenario(video_id, egress, cookies)
        return replace(scenario, live=None) if self.streams.has_ended(video_id) else scenario

    def _streams(self, video_id: str, scenario: Scenario, egress: str) -> Json:
        expire = int(time.time()) + (self.ttl if scenario.ttl is None else scenario.ttl)
        made = list(self._formats(video_id, scenario, egress, expire))
        board = f"https://i.ytimg.com/sb/{video_id}/storyboard3_L$L/$N.jpg?sqp=x|48#27#4#2#2#1000#M$M#rs$x"
        streams: Json = {
            "expiresInSeconds": "21540",
            "formats": [said for said in made if said["itag"] == 18],
            "adaptiveFormats": [said for said in made if said["itag"] != 18],
            **self.streams.manifests(video_id, egress_ip(egress), expire),
        }
        if scenario.drm:
            streams["licenseInfos"] = [{"drmFamily": "WIDEVINE", "url": "https://www.youtube.com/drm"}]
        boards = {"storyboards": {"playerStoryboardSpecRenderer": {"spec": board}}} if scenario.seconds else {}
        return {"streamingData": streams, **({} if scenario.live else boards)}

    def _formats(self, video_id: str, scenario: Scenario, egress: str, expire: int) -> Iterator[Json]:
        for media in scenario.formats:
            size = self.stock.path(media).stat().st_size
            rate = round(size * 8 / (media.seconds or 1))
            said: Json = {"itag": media.itag, "mimeType": media.mime, "bitrate": rate, "averageBitrate": rate}
            said |= {"contentLength": str(size), "approxDurationMs": str(round(media.seconds * 1000))}
            said |= {"projectionType": "RECTANGULAR", "lastModified": "1700000000000000", **media.said}
            if media.xtags:
                said["xtags"] = media.xtags
            if not scenario.sabr:
                said["url"] = _media_url(video_id, media, size, expire=expire, egress=egress)
            if scenario.drm:
                said["drmFamilies"] = ["WIDEVINE"]
            yield said


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


def _media_url(video_id: str, media: Media, size: int, *, expire: int, egress: str) -> str:
    query = {
        "expire": str(expire), "ip": egress_ip(egress), "id": f"o-{video_id}", "itag": str(media.itag),
        "source": "youtube", "requiressl": "yes", "mime": media.mime.split(";")[0], "clen": str(size),
        "dur": f"{media.seconds:.3f}", "lmt": "1700000000000000", "vid": video_id,
    }  # fmt: skip
    query |= {"xtags": media.xtags} if media.xtags else {}
    return f"https://rr1---sn-offline.googlevideo.com/videoplayback?{urlencode(signed(query))}"


def title_of(video_id: str) -> str:
    """What a video is called."""
    title = scenario_of(video_id).title
    return f"Offline video {video_id}" if title is None else title


def _length(scenario: Scenario) -> str:
    return "0" if scenario.live == "isLive" else str(round(scenario.seconds))


def _details(video_id: str, scenario: Scenario) -> Json:
    thumbnail = {"url": f"https://i.ytimg.com/vi/{video_id}/hqdefault.jpg", "width": 480, "height": 360}
    return {
        "videoId": scenario.answers_for or video_id,
        "title": title_of(video_id),
        "lengthSeconds": _length(scenario),
        "channelId": CHANNEL,
        "author": "Offline channel",
        "shortDescription": scenario.description,
        "viewCount": "42",
        "isPrivate": False,
        "keywords": ["offline"],
        "isLiveContent": bool(scenario.live) or scenario.stream.every is not None,
        "thumbnail": {"thumbnails": [thumbnail]},
        **({scenario.live: True} if scenario.live else {}),
    }


def _microformat(video_id: str, scenario: Scenario) -> Json:
    said: Json = {
        "title": {"simpleText": title_of(video_id)},
        "lengthSeconds": _length(scenario),
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


def _ad(seconds: int) -> Json:
    renderer = {"playerVars": "length_seconds=15", "skipOffsetMilliseconds": seconds * 1000}
    return {
        "adPlacementRenderer": {
            "config": {"adPlacementConfig": {"kind": "AD_PLACEMENT_KIND_START"}},
            "renderer": {"instreamVideoAdRenderer": renderer},
        }
    }
