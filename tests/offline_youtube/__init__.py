"""
The offline YouTube: a loopback proxy that answers as YouTube does, for the real yt-dlp.

    with OfflineYouTube(folder) as site:
        options = {"proxy": site.proxy("egress1"), "compat_opts": {"no-certifi"}}  # SSL_CERT_FILE=site.bundle_file

It plays watch pages, the player, next and browse endpoints, playlists, channel tabs and googlevideo; a host
that it does not play gets 502, so nothing leaves the machine. It does not play player JavaScript, PO tokens,
SOCKS and HLS segments.

Three names choose what happens. The video id: what stands before its first ``-`` is a key of `SCENARIOS`
(``private-001``), any other id is a good video. The user name in the proxy URL is the egress: media URLs are
bound to it as YouTube binds them to an address, and one that starts with a key of `EGRESS_FAULTS` fails in
that way. The list id or handle: one with ``missing`` or ``private`` in it answers as such a list does, one that
ends in ``-250`` has 250 videos, others have five.
"""

from __future__ import annotations

from tests.offline_youtube.scenarios import EGRESS_FAULTS, SCENARIOS, Scenario
from tests.offline_youtube.server import OfflineYouTube

__all__ = ["EGRESS_FAULTS", "SCENARIOS", "OfflineYouTube", "Scenario"]
