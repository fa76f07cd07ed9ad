"""URLs of googlevideo: they are bound to the egress that extracted, and end."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping

_SIGNED = ("expire", "ip", "vid", "itag", "xtags")
_SECRET = b"offline-youtube"


def signed(said: Mapping[str, str]) -> dict[str, str]:
    """What a URL says, with its signature."""
    return {**said, "sig": _signature(said)}


def is_signed_for(said: Mapping[str, str], egress: str) -> bool:
    """Whether a media URL is ours, in time, and asked for through the egress that extracted it."""
    return (
        said.get("sig") == _signature(said)
        and int(said["expire"]) > time.time()
        and said["ip"] == egress_ip(egress)
    )


def egress_ip(egress: str) -> str:
    """The address that the site sees of an egress."""
    first, second, third = hashlib.sha256(egress.encode()).digest()[:3]
    return f"10.{first}.{second}.{third}"


def _signature(said: Mapping[str, str]) -> str:
    text = "/".join(str(said.get(key)) for key in _SIGNED)
    return hmac.new(_SECRET, text.encode(), "sha256").hexdigest()[:32]
