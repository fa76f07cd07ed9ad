"""
The offline YouTube: a loopback proxy that answers as YouTube does, for the real yt-dlp.

    with OfflineYouTube(folder) as site:
        options = {"proxy": site.proxy("egress1"), "compat_opts": {"no-certifi"}}  # SSL_CERT_FILE=site.bundle_file

It plays watch pages, the player, next and browse endpoints, playlists, channel tabs, timedtext, thumbnails and
googlevideo, with HLS and DASH; a host that it does not play gets 502, so nothing leaves the machine. It does not
play player JavaScript, PO tokens, SOCKS and storyboards.

Three names choose what happens. The video id: what stands before its first ``-`` is a key of `SCENARIOS`
(``private-001``) or of `SHAPES` (``hls-0000001``), any other id is a good video. The user name in the proxy URL is
the egress: media URLs are bound to it as YouTube binds them to an address, and one that starts with a key of
`EGRESS_FAULTS` fails in that way. The list id or handle: one with ``missing`` or ``private`` in it answers as such
a list does, one that ends in ``-250`` has 250 videos, others have five.

Lives, for who records them: ``live-000001`` never ends, and has a window of the last six segments of a second.
``growing-001`` is whole after eight: two are there when its playlist is first asked for (not its master playlist,
so an extraction starts nothing), another comes every half second, and with the eighth comes ``#EXT-X-ENDLIST``;
from then on the player says ``was_live``, and gives the same playlist as a video of eight seconds. `reset`, or
``/__reset``, lets it begin anew; ``site.streams.end("growing-001")`` ends it at once. ``postlive-01`` is over, and
plays as DASH before its recording is made; of ``ended2-0001`` there is nothing yet.
"""

from __future__ import annotations

from tests.offline_youtube.scenarios import EGRESS_FAULTS, SCENARIOS, SHAPES, Scenario
from tests.offline_youtube.server import OfflineYouTube

__all__ = ["EGRESS_FAULTS", "SCENARIOS", "SHAPES", "OfflineYouTube", "Scenario"]
