"""
The rules, as tables: read top down, the first that fits decides.

Patterns are regular expressions for `wording.normalised` texts: lower case, straight quotes. Sources of the
wordings: yt-dlp 2026.10.26 and its issues, public clients and ignore lists; the rows of
``tests/unit/errors.jsonl`` name them one by one.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from dataclasses import dataclass

from include.ytdlp_ops.codes import Code


@dataclass(frozen=True)
class TextRule:
    """A wording and what it means; `stage` limits it to ``auth`` or ``download``."""

    name: str
    code: Code
    pattern: re.Pattern[str]
    stage: str | None = None


def _text(name: str, code: Code, *patterns: str, stage: str | None = None) -> TextRule:
    return TextRule(f"text:{name}", code, re.compile("|".join(patterns)), stage)


# 1. This machine ----------------------------------------------------------------------------------------------

MACHINE_TEXTS = (
    _text("disk", Code.DISK, "no space left on device", "disk quota exceeded", "not enough space on the disk"),
    _text(
        "ffmpeg_missing",
        Code.FFMPEG_MISSING,
        r"ff(?:mpeg|probe) (?:is not installed|could not be found|not found)",
        r"no such file or directory: '(?:[^']*/)?ff(?:mpeg|probe)'",
    ),
    _text(
        "configuration",
        Code.CONFIGURATION,
        "no player clients have been requested",
        "login with oauth is no longer supported",
        "one of the following dependencies needs to be installed",
        "unsupported language code:",
        "unsupported proxy type",
        "impersonate target .* is not available",
        "invalid format specification",
    ),
    _text(
        "local_io",
        Code.LOCAL_IO,
        "unable to open for writing",
        "unable to create directory",
        "read-only file system",
        "file name too long",
        "too many open files",
        "cannot allocate memory",
        r"unable to (?:rename|remove|write) file",
    ),
)

UNWRAPPED_CLASSES: Mapping[str, Code] = {
    # raised past yt-dlp's own handling: its input on this host is at fault, not the site
    "JSONDecodeError": Code.LOCAL_INPUT,
    "FileNotFoundError": Code.LOCAL_INPUT,
    "SameFileError": Code.LOCAL_INPUT,
    "CookieLoadError": Code.LOCAL_INPUT,
    "SyntaxError": Code.CONFIGURATION,  # a format selector that can't be parsed
    "ImportError": Code.CONFIGURATION,
    "ModuleNotFoundError": Code.CONFIGURATION,
    "MemoryError": Code.LOCAL_IO,
}

ERRNOS: Mapping[int, Code] = {
    errno.ENOSPC: Code.DISK,
    errno.EDQUOT: Code.DISK,
    **dict.fromkeys(
        (errno.EROFS, errno.ENAMETOOLONG, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EFBIG, errno.ESTALE),
        Code.LOCAL_IO,
    ),
}

FILE_ERRNOS: Mapping[int, Code] = dict.fromkeys(
    # a socket may say these too (a firewall's EPERM): only where no network is involved
    (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EIO, errno.EEXIST, errno.ELOOP),
    Code.LOCAL_IO,
)

# 2. Class, and status with host -------------------------------------------------------------------------------

CLASSES: Mapping[str, Code] = {
    "CertificateVerifyError": Code.TLS_INTERCEPTED,
    "SSLCertVerificationError": Code.TLS_INTERCEPTED,
    "ProxyError": Code.PROXY,
    "Socks4Error": Code.PROXY,
    "Socks5Error": Code.PROXY,
    "GeoRestrictedError": Code.GEO,
    "UserNotLive": Code.NOT_LIVE,
    "UnsupportedError": Code.BAD_URL,
    "ThrottledDownload": Code.NETWORK,
    "ContentTooShortError": Code.NETWORK,
    "FFmpegPostProcessorError": Code.BAD_MEDIA,
}

NETWORK_CLASSES = frozenset(
    {
        "TransportError",
        "SSLError",
        "IncompleteRead",
        "ProtocolError",
        "NewConnectionError",
        "NameResolutionError",
        "RemoteDisconnected",
        "ConnectionResetError",
        "ConnectionRefusedError",
        "ConnectionAbortedError",
        "BrokenPipeError",
        "TimeoutError",
        "ReadTimeout",
        "ReadTimeoutError",
        "ConnectTimeout",
        "ConnectTimeoutError",
        "ProxyError",
        "HTTPError",
        "gaierror",
    }
)
"""Classes of errors that bytes on the way may meet; alone they mean `Code.NETWORK`."""

SITE_STATUSES: Mapping[int, Code] = {
    400: Code.CLIENT_BROKEN,  # "Precondition check failed": what this client sends is refused
    401: Code.HTTP_403,
    402: Code.HTTP_429,  # what YouTube answered to an address that asked too often, before it took 429
    403: Code.HTTP_403,
    404: Code.NOT_FOUND,
    407: Code.PROXY,
    410: Code.NOT_FOUND,
    429: Code.HTTP_429,
    451: Code.NETWORK_FILTER,  # here; elsewhere it may be there
}
MEDIA_STATUSES: Mapping[int, Code] = {
    **SITE_STATUSES,
    403: Code.MEDIA_403,
    404: Code.MEDIA_GONE,
    410: Code.MEDIA_GONE,
}
NETWORK_STATUSES = frozenset({408, 416, 425, *range(500, 600)})
EXPIRY_STATUSES = frozenset({401, 403, 404, 410})
"""What media answer when `expire=` has passed."""

# 3. Playability -----------------------------------------------------------------------------------------------

SCREENS: Mapping[str, Code] = {"playerCaptchaViewModel": Code.BOT_CHECK}
NOT_YET = "LIVE_STREAM_OFFLINE"
AGE_STATUSES = frozenset({"AGE_CHECK_REQUIRED", "AGE_VERIFICATION_REQUIRED"})
LOGIN_REQUIRED = "LOGIN_REQUIRED"
"""Private, age or members by its words; without such words it is the bot check."""

# 4. Text: what concerns egress, account, client or the moment comes before what concerns the video --------------

SYSTEMIC_TEXTS = (
    _text("tls", Code.TLS_INTERCEPTED, "certificate_verify_failed", "certificate verify failed"),
    _text(
        "proxy",
        Code.PROXY,
        "unable to connect to proxy",
        "cannot connect to proxy",
        "tunnel connection failed",
        "proxy authentication required",
        r"\bsocks\w*connection\(",
        r"\bsocks[45]error",
    ),
    _text("filter", Code.NETWORK_FILTER, "access to this webpage has been blocked"),
    _text(
        "bot",
        Code.BOT_CHECK,
        r"\bnot a (?:ro)?bot\b",
        "captcha",
        "your ip is likely being blocked",
        "unusual traffic",
        "automated (?:queries|requests)",
        r"verify (?:that )?you(?:'re| are) (?:a )?human",
    ),
    _text(
        "rate_limit",
        Code.RATE_LIMITED_SESSION,
        r"content is(?:n't| not) available,? (?:please )?try again later",
        "has been rate-limited",
        "rate.?limit (?:reached|exceeded)",
    ),
    _text("cookies", Code.COOKIES_ROTATED, "cookies are no longer valid", "cookies have expired"),
    _text(
        "client",
        Code.CLIENT_BROKEN,
        "page needs to be reloaded",
        "not available on this (?:app|device)",
        "latest version of youtube",
        "on this website",
        "playback on other websites",
        "embedding (?:is|has been) ",
        "not supported on this (?:app|device|browser)",
        "no longer supported in this application",
        "update (?:the|your) (?:youtube )?(?:app|browser)",
        "(?:signature|challenge) solving failed",
    ),
    _text("legal", Code.GEO, r"content is(?:n't| not) available (?:on|in) this country"),
    _text(
        "account",
        Code.ACCOUNT_BLOCKED,
        r"this content is(?:n't| not) available",
        r"your (?:google |youtube )?account has been (?:suspended|terminated|disabled|blocked)",
    ),
    _text(
        "formats",
        Code.NO_USABLE_FORMATS,
        "no video formats found",
        "only images are available",
        "missing a url",
        r"\bsabr\b",
        r"\bpo token\b",
    ),
    _text("auth_format", Code.NO_USABLE_FORMATS, "requested format is not available", stage="auth"),
    _text("later", Code.UNKNOWN, "try again later", "something went wrong", "an error occurred", "unknown error"),
    _text(
        "network",
        Code.NETWORK,
        "incomplete (?:yt initial )?data received",
        "a network error has occurred",
        r"\btimed out\b",
        r"connection (?:reset|aborted|refused|broken)",
        "remote end closed",
        "failed to parse json",
        r"\d+ bytes read\b",
        "content too short",
        "did not get any data blocks",
        "downloaded file is empty",
        "below throttle limit",
        "name resolution",
        "failed to resolve '",
        "name or service not known",
        "network is unreachable",
        "no route to host",
        r"^(?:\[download\] )?fragment \d+ not found",
    ),
    _text("media", Code.BAD_MEDIA, "^postprocessing: ", "ffmpeg exited with code"),
)

EGRESS_TEXTS = tuple(rule for rule in SYSTEMIC_TEXTS if rule.code in (Code.BOT_CHECK, Code.RATE_LIMITED_SESSION))
"""What counts whichever client was told it; other systemic words only where yt-dlp found them decisive."""

CONTENT_TEXTS = (
    _text(
        "upcoming",
        Code.UPCOMING,
        "live event (?:will|has ended)",
        "will begin (?:in|shortly)",
        "premieres? (?:in|on|will) ",
        "processing this video",
        "check back later",
        "live in (?:a few|[0-9]+) ",
    ),
    _text("not_live", Code.NOT_LIVE, "not currently live"),
    _text(
        "geo",
        Code.GEO,
        "in your (?:country|region|location)",
        "from your (?:country|region|location)",
        "for your region",
        "in this (?:country|region)",
        "geo.?restrict",
    ),
    _text("drm", Code.DRM, r"\bdrm protected"),
    _text(
        "payment",
        Code.PAYMENT,
        "premium members",
        "requires? payment",
        "purchase",
        r"\brent(?:al|ed)?\b",
        "youtube premium",
    ),
    _text("members", Code.MEMBERS, "members.only", "channel's members", "join this channel", "members on level"),
    _text(
        "age", Code.AGE, "confirm your age", "age.restricted", "age.verif", "inappropriate (?:for|or offensive)"
    ),
    _text(
        "private", Code.PRIVATE, r"\bprivate video\b", r"(?:video|playlist) is private", "granted (?:you )?access"
    ),
    _text(
        "copyright",
        Code.COPYRIGHT,
        "(?:copyright|trademark|third.party) claim",
        "copyright (?:grounds|infringement)",
    ),
    _text(
        "no_such_list",
        Code.NO_SUCH_LIST,
        r"(?:playlist|channel)(?:/playlist)? does not exist",
        "playlist type is unviewable",
        "does the playlist exist",
        r"this channel does not have a .* tab",
        "unable to recognize tab page",
    ),
    _text(
        "removed",
        Code.REMOVED,
        r"(?:video|channel|content) (?:has been|was) (?:removed|deleted)",
        "removed (?:by|for) ",
        "account associated with this video",
        r"(?:uploader|account) has (?:been )?(?:closed|terminated)",
        "live stream recording is not available",
    ),
    _text(
        "bad_url",
        Code.BAD_URL,
        "looks truncated",
        "url was given without video id",
        "unsupported url:",
        "is not a valid url",
        "did you forget to quote the url",
    ),
    _text("format_missing", Code.FORMAT_MISSING, "requested format is not available", stage="download"),
    _text(
        "unexplained",
        Code.UNAVAILABLE_UNEXPLAINED,
        r"^(?:(?:this )?video (?:is )?(?:unavailable|not available)|this video isn't available(?: any ?more)?)"
        r"(?:[. ]+(?:this )?video (?:is )?(?:unavailable|not available|isn't available(?: any ?more)?))?[. ]*$",
    ),
)

# 5. Warnings that explain a text which says nothing -------------------------------------------------------------

UNEXPLAINED_TEXT = re.compile(
    "failed to extract any player response|no video formats found|format is not available"
)
WARNINGS = (
    ("unable to connect to proxy", Code.PROXY),
    ("certificate_verify_failed", Code.TLS_INTERCEPTED),
    ("http error 429", Code.HTTP_429),
    ("http error 403", Code.HTTP_403),
    ("http error 5", Code.NETWORK),
    ("timed out", Code.NETWORK),
    ("sabr", Code.NO_USABLE_FORMATS),
    ("video is drm protected", Code.DRM),
)

STALE_COOKIES = "no longer valid"
NEEDS_ACCOUNT = frozenset({Code.PRIVATE, Code.MEMBERS, Code.PAYMENT, Code.AGE, Code.NO_SUCH_LIST})
"""What an account may lift: with stale cookies these are said of everything, so they prove nothing."""
