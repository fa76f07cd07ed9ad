"""The site's pages and API as data, with no HTTP in it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.offline_youtube.captions import timed_text
from tests.offline_youtube.lists import browse_channel, browse_playlist, continued
from tests.offline_youtube.player import Json, Player, title_of
from tests.offline_youtube.scenarios import egress_fault_of, scenario_of
from tests.offline_youtube.stock import Stock

_HTML, _JSON = "text/html; charset=utf-8", "application/json"
_CHANNEL_PATH = re.compile(r"/(@[\w.-]+|channel/[\w-]+|c/\w+|user/\w+)(?:/(\w+))?")
_PICTURE_PATH = re.compile(r"/vi(?:_webp)?/([\w-]{11})/(\w+)\.(jpg|webp)")
_API_ERRORS = {
    403: "The caller does not have permission",
    429: "Resource has been exhausted (e.g. check quota).",
}


class Request(NamedTuple):
    """What was asked, by whom."""

    host: str
    path: str
    query: dict[str, str]
    body: bytes
    egress: str
    cookies: str


class Answer(NamedTuple):
    """Status, content type, body."""

    status: int
    kind: str
    body: bytes


_NOT_FOUND = Answer(404, _HTML, b"<html>404</html>")


@dataclass(frozen=True)
class YouTube:
    """Every played host but googlevideo."""

    player: Player
    stock: Stock

    def answer(self, request: Request) -> Answer:
        """What the site says to this request."""
        path = request.path
        if egress_fault_of(request.egress) == "ip429":
            return Answer(429, _HTML, b"<html>429 Too Many Requests</html>")
        if path.startswith("/youtubei/v1/"):
            return self._api(path.removeprefix("/youtubei/v1/"), request)
        if path == "/watch" and request.query.get("v"):
            return self._watch_page(request)
        if path == "/playlist" or (path == "/watch" and request.query.get("list")):
            return _page(browse_playlist(request.query.get("list", "")))
        if match := _CHANNEL_PATH.fullmatch(path):
            missing = "missing" in match[1]
            return _NOT_FOUND if missing else _page(browse_channel(match[1], match[2] or "featured"))
        if path == "/api/timedtext":
            kind, text = timed_text(request.query)
            return Answer(200, f"{kind}; charset=utf-8", text.encode())
        if request.host.endswith("ytimg.com"):
            return self._picture(path)
        return _small_file(request)

    def _picture(self, path: str) -> Answer:
        """A thumbnail; storyboards are not played."""
        match = _PICTURE_PATH.fullmatch(path)
        if not match or (
            scenario_of(match[1]).small_pictures and (match[3] == "webp" or match[2] == "maxresdefault")
        ):
            return _NOT_FOUND
        return Answer(200, "image/jpeg" if match[3] == "jpg" else "image/webp", self.stock.thumbnail(match[3]))

    def _watch_page(self, request: Request) -> Answer:
        video_id = request.query["v"]
        if status := scenario_of(video_id).http:
            return Answer(status, _HTML, b"<html>error</html>")
        return _page(_watch_next(video_id), self.player.answer(video_id, request.egress, request.cookies))

    def _api(self, endpoint: str, request: Request) -> Answer:
        said = json.loads(request.body or b"{}")
        if endpoint == "player":
            return self._player(said["videoId"], request)
        if endpoint == "next":
            return _json(_watch_next(said.get("videoId", "")))
        if endpoint == "navigation/resolve_url":
            return _resolved(said.get("url", ""))
        if endpoint == "browse":
            if token := said.get("continuation"):
                return _json(continued(token))
            return _json(browse_playlist(said.get("browseId", "").removeprefix("VL")))
        return _json({"error": {"code": 404, "message": "Requested entity was not found."}}, 404)

    def _player(self, video_id: str, request: Request) -> Answer:
        scenario = scenario_of(video_id)
        if status := scenario.http:
            return _json({"error": {"code": status, "message": _API_ERRORS.get(status, "Internal error")}}, status)
        if scenario.bad_json:
            return Answer(200, _JSON, b'{"playabilityStatus": {"sta')
        return _json(self.player.answer(video_id, request.egress, request.cookies))


def _watch_next(video_id: str) -> Json:
    badge = {"metadataBadgeRenderer": {"style": "BADGE_STYLE_TYPE_MEMBERS_ONLY", "label": "Members only"}}
    primary = {
        "title": {"runs": [{"text": title_of(video_id)}]},
        "badges": [badge] if scenario_of(video_id).members else [],
        "dateText": {"simpleText": "Jan 2, 2024"},
    }
    owner = {"videoOwnerRenderer": {"title": {"runs": [{"text": "Offline channel"}]}}}
    contents = [{"videoPrimaryInfoRenderer": primary}, {"videoSecondaryInfoRenderer": {"owner": owner}}]
    results = {"twoColumnWatchNextResults": {"results": {"results": {"contents": contents}}}}
    endpoint = {"watchEndpoint": {"videoId": video_id}}
    return {"contents": results, "currentVideoEndpoint": endpoint, **_chapters(scenario_of(video_id).chapters)}


def _chapters(chapters: tuple[tuple[int, str], ...]) -> Json:
    """The panel that lists them."""
    listed = [
        {
            "macroMarkersListItemRenderer": {
                "title": {"simpleText": title},
                "timeDescription": {"simpleText": f"0:{second:02}"},
            }
        }
        for second, title in chapters
    ]
    panel = {"content": {"macroMarkersListRenderer": {"contents": listed}}}
    return {"engagementPanels": [{"engagementPanelSectionListRenderer": panel}]} if listed else {}


def _resolved(url: str) -> Answer:
    list_id = parse_qs(urlsplit(url).query).get("list", [""])[0]
    if not list_id:
        return _json({}, 404)
    return _json({"endpoint": {"browseEndpoint": {"browseId": f"VL{list_id}"}}})


def _small_file(request: Request) -> Answer:
    path = request.path
    if path == "/iframe_api":
        script = rb'var scriptUrl = "https:\/\/www.youtube.com\/s\/player\/0123abcd\/www-widgetapi.js";'
        return Answer(200, "text/javascript", script)
    if path.startswith("/s/player/"):
        return Answer(200, "text/javascript", b"var cfg = {signatureTimestamp:20000};")
    if path.startswith("/embed/"):
        return _page({}, client="WEB_EMBEDDED_PLAYER")
    if path in ("/", "/tv"):
        return _page({})
    return _NOT_FOUND


def _json(said: Json, status: int = 200) -> Answer:
    return Answer(status, _JSON, json.dumps(said).encode())


def _page(initial: Json, player: Json | None = None, client: str | None = None) -> Answer:
    config: Json = {"VISITOR_DATA": "CgtvZmZsaW5lMTIzNA%3D%3D", "STS": 20000}
    if client:
        context = {"clientName": client, "clientVersion": "2.20260708.00.00", "hl": "en"}
        config["INNERTUBE_CONTEXT"] = {"client": context}
    script = f"ytcfg.set({json.dumps(config)});\nvar ytInitialData = {json.dumps(initial)};\n"
    if player:
        script += f"var ytInitialPlayerResponse = {json.dumps(player)};\n"
    page = f"<html><head><title>YouTube</title></head><script>{script}</script></html>"
    return Answer(200, _HTML, page.encode())
