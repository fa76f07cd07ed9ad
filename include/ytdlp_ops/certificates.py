"""yt-dlp's TLS contexts, made once: reading the trusted certificates takes 40 ms of CPU, for each download."""

from __future__ import annotations

import functools
import os
import ssl
from pathlib import Path
from typing import Any


@functools.cache
def share_contexts() -> None:
    """
    Have yt-dlp make one context for each set of wishes, in this process and those that it forks.

    A bundle that has changed is read again; a context with a client's certificate is nobody else's.
    """
    from yt_dlp.networking import common  # type: ignore[import-untyped]  # ships no types

    make, made = common.make_ssl_context, dict[Any, ssl.SSLContext]()

    def shared(**wanted: Any) -> ssl.SSLContext:
        if wanted.get("client_certificate"):
            return make(**wanted)  # type: ignore[no-any-return]  # untyped
        key = (*sorted(wanted.items()), *_trusted())
        if key not in made:
            made[key] = make(**wanted)
        return made[key]

    common.make_ssl_context = shared


def _trusted() -> tuple[Any, ...]:
    """What OpenSSL would read, and since when it is there."""
    import certifi

    files = (os.environ.get("SSL_CERT_FILE") or certifi.where(), os.environ.get("SSL_CERT_DIR"))
    return tuple((file, Path(file).stat().st_mtime_ns if file and Path(file).exists() else 0) for file in files)
