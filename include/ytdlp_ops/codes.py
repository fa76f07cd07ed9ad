"""
Why an item ended as it did: one enum, shared by the ops server, the workers and the reports.

A code belongs to one outcome by default; a diagnosis may give another where the circumstances say so.
"""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """What to do with the item."""

    SKIP = "skip"  # the video: no attempt will change it
    RETRY = "retry"  # the same egress may do next time
    ROTATE = "rotate"  # another egress or account
    DEFER = "defer"  # not before a time
    OPERATOR = "operator"  # this host or its configuration: hand back unchanged, stop claiming here


class Code(StrEnum):
    """The reason of a refusal or failure; `outcome` is what it means for the item."""

    # the video
    PRIVATE = "private"
    REMOVED = "removed"
    COPYRIGHT = "copyright"
    GEO = "geo"
    MEMBERS = "members"
    PAYMENT = "payment"
    AGE = "age"
    DRM = "drm"
    NO_SUCH_LIST = "no_such_list"
    NOT_FOUND = "not_found"
    BAD_URL = "bad_url"
    MEDIA_403 = "media_403"
    MEDIA_GONE = "media_gone"
    FORMAT_MISSING = "format_missing"
    IS_LIVE = "is_live"
    # not yet
    UPCOMING = "upcoming"
    NOT_LIVE = "not_live"
    LIMITED = "limited"
    # the egress, the account or the client
    BOT_CHECK = "bot_check"
    RATE_LIMITED_SESSION = "rate_limited_session"
    ACCOUNT_BLOCKED = "account_blocked"
    UNAVAILABLE_UNEXPLAINED = "unavailable_unexplained"
    CLIENT_BROKEN = "client_broken"
    COOKIES_ROTATED = "cookies_rotated"
    NO_USABLE_FORMATS = "no_usable_formats"
    LOW_QUALITY = "low_quality"
    HTTP_403 = "http_403"
    HTTP_429 = "http_429"
    PROXY = "proxy"
    TLS_INTERCEPTED = "tls_intercepted"
    NETWORK_FILTER = "network_filter"
    # this time
    NETWORK = "network"
    URL_EXPIRED = "url_expired"
    BAD_MEDIA = "bad_media"
    TOO_LARGE = "too_large"
    UNKNOWN = "unknown"
    OPS_SERVER_UNAVAILABLE = "ops_server_unavailable"
    STALLED = "stalled"
    TIMED_OUT = "timed_out"
    INCOMPLETE = "incomplete"
    # this host
    DISK = "disk"
    LOCAL_IO = "local_io"
    LOCAL_INPUT = "local_input"
    FFMPEG_MISSING = "ffmpeg_missing"
    CONFIGURATION = "configuration"
    # the submission
    BAD_INPUT = "bad_input"
    CANCELLED = "cancelled"

    @property
    def outcome(self) -> Outcome:
        """What this code means for the item, unless the diagnosis knows better."""
        return _OUTCOMES[self]


_BY_OUTCOME: dict[Outcome, tuple[Code, ...]] = {
    Outcome.SKIP: (
        Code.PRIVATE,
        Code.REMOVED,
        Code.COPYRIGHT,
        Code.GEO,
        Code.MEMBERS,
        Code.PAYMENT,
        Code.AGE,
        Code.DRM,
        Code.NO_SUCH_LIST,
        Code.NOT_FOUND,
        Code.BAD_URL,
        Code.MEDIA_403,
        Code.MEDIA_GONE,
        Code.FORMAT_MISSING,
        Code.IS_LIVE,
        Code.CANCELLED,
    ),
    Outcome.DEFER: (Code.UPCOMING, Code.NOT_LIVE, Code.LIMITED),
    Outcome.ROTATE: (
        Code.BOT_CHECK,
        Code.RATE_LIMITED_SESSION,
        Code.ACCOUNT_BLOCKED,
        Code.UNAVAILABLE_UNEXPLAINED,
        Code.CLIENT_BROKEN,
        Code.COOKIES_ROTATED,
        Code.NO_USABLE_FORMATS,
        Code.LOW_QUALITY,
        Code.HTTP_403,
        Code.HTTP_429,
        Code.PROXY,
        Code.TLS_INTERCEPTED,
        Code.NETWORK_FILTER,
    ),
    Outcome.RETRY: (
        Code.NETWORK,
        Code.URL_EXPIRED,
        Code.BAD_MEDIA,
        Code.TOO_LARGE,
        Code.UNKNOWN,
        Code.OPS_SERVER_UNAVAILABLE,
        Code.STALLED,
        Code.TIMED_OUT,
        Code.INCOMPLETE,
        Code.BAD_INPUT,
    ),
    Outcome.OPERATOR: (
        Code.DISK,
        Code.LOCAL_IO,
        Code.LOCAL_INPUT,
        Code.FFMPEG_MISSING,
        Code.CONFIGURATION,
    ),
}
_OUTCOMES = {code: outcome for outcome, codes in _BY_OUTCOME.items() for code in codes}
