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


def warm_up(ca_file: str | None) -> None:
    """
    Make the context of ordinary downloads now, for the processes that will be forked.

    :param ca_file: the bundle to trust instead of certifi's.
    """
    from yt_dlp.networking import common

    share_contexts()
    before = os.environ.get("SSL_CERT_FILE")
    if ca_file:
        os.environ["SSL_CERT_FILE"] = ca_file
    try:
        common.make_ssl_context(verify=True, legacy_support=False, use_certifi=ca_file is None)
    finally:
        if before is None:
            os.environ.pop("SSL_CERT_FILE", None)
        else:
            os.environ["SSL_CERT_FILE"] = before


def _trusted() -> tuple[Any, ...]:
    """What OpenSSL would read, and since when it is there."""
    import certifi

    files = (os.environ.get("SSL_CERT_FILE") or certifi.where(), os.environ.get("SSL_CERT_DIR"))
    return tuple((file, Path(file).stat().st_mtime_ns if file and Path(file).exists() else 0) for file in files)
