"""What browse pages say: playlists and the tabs of a channel, page by page."""

from __future__ import annotations

import re
from typing import Any

from tests.offline_youtube.media import DURATION
from tests.offline_youtube.player import CHANNEL, Json

PAGE = 3
"""Entries on one page, so that five already need a continuation."""


def browse_playlist(list_id: str) -> Json:
    """The first page of a playlist, or the alert that there is none."""
    for word, said in (("missing", "The playlist does not exist."), ("private", "This playlist is private.")):
        if word in list_id.lower():
            return {"alerts": [{"alertRenderer": {"type": "ERROR", "text": {"simpleText": said}}}]}
    videos = {"playlistVideoListRenderer": {"contents": _page("playlist", list_id, 0)}}
    section = {"sectionListRenderer": {"contents": [{"itemSectionRenderer": {"contents": [videos]}}]}}
    title = {"playlistMetadataRenderer": {"title": f"Offline playlist {list_id}"}}
    return _browsed([{"tabRenderer": {"selected": True, "content": section}}], title)


def browse_channel(handle: str, tab: str) -> Json:
    """A channel's tab; one that is not there shows the home tab, as the site does."""
    shown = tab if tab == "videos" else "featured"
    grid = {"richGridRenderer": {"contents": _page("channel", handle, 0)}}
    tabs = []
    for name, title in (("featured", "Home"), ("videos", "Videos")):
        renderer: Json = {"title": title, "selected": name == shown, "endpoint": _web_url(f"/{handle}/{name}")}
        if name == shown:
            renderer["content"] = grid
        tabs.append({"tabRenderer": renderer})
    channel = {
        "title": "Offline channel",
        "externalId": CHANNEL,
        "vanityChannelUrl": "http://www.youtube.com/@offline",
    }
    return _browsed(tabs, {"channelMetadataRenderer": channel})


def continued(token: str) -> Json:
    """The page that a continuation token stands for."""
    kind, list_id, page = token.split(":")
    items = _page(kind, list_id, int(page))
    return {"onResponseReceivedActions": [{"appendContinuationItemsAction": {"continuationItems": items}}]}


def _page(kind: str, list_id: str, page: int) -> list[Json]:
    asked = re.search(r"-(\d+)$", list_id)
    size = int(asked[1]) if asked else 5
    entry = _playlist_entry if kind == "playlist" else _channel_entry
    items = [entry(f"ok-{n:08d}") for n in range(1, size + 1)[page * PAGE : (page + 1) * PAGE]]
    if (page + 1) * PAGE < size:
        command = {"continuationCommand": {"token": f"{kind}:{list_id}:{page + 1}"}}
        items.append({"continuationItemRenderer": {"continuationEndpoint": command}})
    return items


def _playlist_entry(video_id: str) -> Json:
    browse = {"browseId": CHANNEL, "canonicalBaseUrl": "/@offline"}
    by = {"runs": [{"text": "Offline channel", "navigationEndpoint": {"browseEndpoint": browse}}]}
    return {
        "playlistVideoRenderer": {
            "videoId": video_id,
            "title": {"runs": [{"text": f"Offline video {video_id}"}]},
            "lengthSeconds": str(DURATION),
            "isPlayable": True,
            "shortBylineText": by,
        }
    }


def _channel_entry(video_id: str) -> Json:
    title = {"lockupMetadataViewModel": {"title": {"content": f"Offline video {video_id}"}}}
    lockup = {"contentId": video_id, "contentType": "LOCKUP_CONTENT_TYPE_VIDEO", "metadata": title}
    return {"richItemRenderer": {"content": {"lockupViewModel": lockup}}}


def _browsed(tabs: list[Json], metadata: dict[str, Any]) -> Json:
    return {"contents": {"twoColumnBrowseResultsRenderer": {"tabs": tabs}}, "metadata": metadata}


def _web_url(path: str) -> Json:
    return {"commandMetadata": {"webCommandMetadata": {"url": path}}}
