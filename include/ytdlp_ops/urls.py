"""What people paste, brought to one spelling: the canonical URL is an item's id."""

from __future__ import annotations

import ipaddress
import re
import socket
from urllib.parse import SplitResult, parse_qs, urlsplit, urlunsplit

from include.ytdlp_ops.errors import BadInput

MAX_URL_LENGTH = 2048
_VIDEO_ID = re.compile(r"[0-9A-Za-z_-]{11}")
_CANONICAL = re.compile(r"https://www\.youtube\.com/watch\?v=[0-9A-Za-z_-]{11}")
_YOUTUBE_HOST = re.compile(
    r"(?:(?:www|m|music|gaming|tv)\.)?youtube(?:-nocookie|kids)?\.com|(?:www\.)?(?:youtu|y2u)\.be"
)
_YOUTUBE_PATH = re.compile(r"/(?:shorts|embed|live|watch|v|e)/(?!videoseries|live_stream)([^/]+)/?")
_YOUTUBE_WATCH = frozenset({"", "/watch", "/watch_popup", "/watch.php"})
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f]")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def canonical_url(text: str) -> str:
    """
    The one spelling of a URL or of a bare 11-character YouTube id.

    All YouTube forms of one video become ``https://www.youtube.com/watch?v=ID``; other URLs keep path, query
    and fragment as they are, with scheme and host in lower case and without a default port.

    :raises BadInput: if it is no http(s) URL, is longer than 2,048 characters, or carries data that yt-dlp
        would take for its own ("smuggled" options).
    """
    if _CANONICAL.fullmatch(text):  # most of what is ever read
        return text
    text = text.strip()
    if _VIDEO_ID.fullmatch(text):
        return f"https://www.youtube.com/watch?v={text}"
    parts = _http_parts(text)
    if video_id := _youtube_id(parts):
        return f"https://www.youtube.com/watch?v={video_id}"
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    if parts.port and parts.port != _DEFAULT_PORTS[parts.scheme]:
        host = f"{host}:{parts.port}"
    return urlunsplit((parts.scheme, host, parts.path or "/", parts.query, parts.fragment))


def refuse_private_target(url: str) -> None:
    """
    Refuse a URL whose host is spelled as this machine or as a private address.

    Only the spelling is looked at; a name that resolves to such an address is refused at connect.

    :raises BadInput: with the host and the way out.
    """
    host = (urlsplit(url).hostname or "").rstrip(".")
    address = _address(host)
    if address is None:
        private = host == "localhost" or host.endswith((".localhost", ".local", ".internal"))
    else:
        private = not address.is_global
    if private:
        raise BadInput(f"{host!r} is a private address; set allow_private_targets if it is meant")


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the internet, also where it is wrapped in an IPv6 one."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        if found in _NAT64:
            return is_public(str(ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)))
        wrapped = found.ipv4_mapped or found.sixtofour
        if wrapped:
            return is_public(str(wrapped))
    return found.is_global and not found.is_multicast


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host is spelled as, also as resolvers read it: ``127.1``, ``0x7f000001``."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return None


def _http_parts(text: str) -> SplitResult:
    shown = text if len(text) <= 120 else f"{text[:120]}…"
    if not text:
        raise BadInput("the URL is empty; give an http(s) URL or an 11-character YouTube id")
    if len(text) > MAX_URL_LENGTH:
        raise BadInput(f"{shown!r} has {len(text)} characters; a URL may have {MAX_URL_LENGTH}")
    if _FORBIDDEN.search(text):
        raise BadInput(f"{shown!r} holds blanks or control characters; percent-encode them")
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise BadInput(f"{shown!r} is not a URL: {error}") from None
    if parts.scheme.lower() not in _DEFAULT_PORTS or not parts.hostname:
        raise BadInput(f"{shown!r} is neither an http(s) URL nor an 11-character YouTube id")
    if "\\" in parts.netloc:
        raise BadInput(f"{shown!r} has a backslash before its path, which clients read in different ways")
    if parts.username or parts.password:
        raise BadInput(f"the URL of {parts.hostname!r} holds a user name or password; secrets are not queued")
    if "__youtubedl_smuggle" in text:
        raise BadInput(f"{shown!r} carries options for yt-dlp; remove '__youtubedl_smuggle' and what follows")
    return parts


def _youtube_id(parts: SplitResult) -> str | None:
    host = (parts.hostname or "").lower().rstrip(".")
    if not _YOUTUBE_HOST.fullmatch(host):
        return None
    if host.endswith(".be"):
        found = parts.path.strip("/").split("/")[0]
    elif parts.path.rstrip("/") in _YOUTUBE_WATCH:
        found = parse_qs(parts.query).get("v", [""])[0]
    elif parts.path == "/attribution_link":
        shared = parse_qs(parts.query).get("u", [""])[0]
        found = parse_qs(shared.partition("?")[2]).get("v", [""])[0]
    else:
        match = _YOUTUBE_PATH.fullmatch(parts.path)
        found = match[1] if match else ""
    return found if _VIDEO_ID.fullmatch(found) else None
