"""yt-dlp's texts: brought to one spelling for rules, and made safe for people."""

from __future__ import annotations

import re

MAX_MESSAGE = 500

_ANSI = re.compile(r"\x1b\[[\d;]*m")
_PREFIX = re.compile(r"^\s*(?:ERROR:\s*)?(?:\[[\w:+-]+\]\s*(?:[\w@-]+:\s+)?)?")
_HINTS = re.compile(
    r"[\s;]*(?:Use --cookies-from-browser|Use --cookies|Use --username|Also see|It is recommended to use"
    r"|You might want to use a VPN|For more information, refer to|please report this issue on|Use --list-formats"
    r"|Try again with --|See\s+https://github\.com/yt-dlp).*",
    re.DOTALL,
)
_QUOTES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "′": "'", "＇": "'", "“": '"', "”": '"', "\u00a0": " "})  # noqa: RUF001 -- these are the spellings to mend

_MEDIA_URL = re.compile(r"(https?://[\w.-]*googlevideo\.com)/[^\s'\"<>)]*", re.IGNORECASE)
_QUERY = re.compile(r"\?[^\s'\"<>?]*=[^\s'\"<>)]*")
_USER = re.compile(r"//[^/\s'\"@]+@")
_HEADER = re.compile(r"\b((?:proxy-)?authorization|(?:set-)?cookie|password)\b['\"]?\s*[:=].*", re.IGNORECASE)


def plain(text: str) -> str:
    """What was said, without colours, ``ERROR: [youtube] id:`` before it and command-line hints after it."""
    text = _PREFIX.sub("", _ANSI.sub("", text))
    return " ".join(_HINTS.sub("", text).split())


def normalised(text: str) -> str:
    """`plain`, in lower case and with straight quotes: what the rules' patterns are written for."""
    return plain(text).translate(_QUOTES).lower()


def for_people(text: str) -> str:
    """`plain`, without query strings, signed paths, user names in URLs and headers that carry secrets."""
    text = _MEDIA_URL.sub(r"\1/…", plain(text))
    text = _HEADER.sub(r"\1: …", _USER.sub("//", _QUERY.sub("?…", text)))
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 1]}…"
