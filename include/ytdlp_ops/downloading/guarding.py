"""
Keeps downloads off private addresses, wherever a site sends them: by redirects, playlists, keys, fragments, names.

Each hop's URL is looked at before it is asked, and each connection before anything is sent over it, so that a name
that resolves to a private address is refused too. What a proxy connects to, only its own rules can tell: of what
goes through one, the URLs alone are looked at.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.urls import is_public, refuse_private_target


def keep_public(ydl: Any) -> None:
    """
    Have a `YoutubeDL` ask public addresses only, through `requests` alone: libcurl's connections nobody could see.

    What is refused fails as yt-dlp's `RequestError`; `refused_target` finds the reason in whatever that becomes.
    """
    ydl._request_director = ydl.build_request_director([_handler()])


@contextlib.contextmanager
def without_programs() -> Iterator[None]:
    """
    Have yt-dlp refuse what it would leave to ffmpeg; holds for the whole process.

    ffmpeg follows a playlist wherever it leads. It is left streams whose encryption yt-dlp doesn't know.
    """
    from yt_dlp.downloader.external import ExternalFD  # type: ignore[import-untyped]  # ships no types
    from yt_dlp.networking.exceptions import RequestError  # type: ignore[import-untyped]  # as above

    def refuse(*_: Any) -> None:
        what = (
            "it needs ffmpeg, which may be led to private addresses; set allow_private_targets if it may go there"
        )
        raise RequestError(what, cause=BadInput(what))

    before = ExternalFD.real_download
    ExternalFD.real_download = refuse
    try:
        yield
    finally:
        ExternalFD.real_download = before


def refused_target(error: BaseException) -> BadInput | None:
    """The refusal of this module's behind an error of yt-dlp's; None if that is not why."""
    inner: Any = getattr(error, "exc_info", (None, error))[1]  # of a DownloadError
    cause = getattr(inner, "cause", None)
    return cause if isinstance(cause, BadInput) else None


@functools.cache
def _handler() -> Any:
    from yt_dlp.networking._requests import RequestsRH  # type: ignore[import-untyped]  # ships no types
    from yt_dlp.networking.exceptions import RequestError

    class PublicRequestsRH(RequestsRH):  # type: ignore[misc]  # untyped
        RH_KEY = "Requests"

        def _create_instance(self, *args: Any, **kwargs: Any) -> Any:
            return _guarded(super()._create_instance(*args, **kwargs))

        def _send(self, request: Any) -> Any:
            try:
                return super()._send(request)
            except BadInput as error:
                raise RequestError(str(error), cause=error) from None

    return PublicRequestsRH


def _guarded(session: Any) -> Any:
    """A session that looks where it goes; it takes an adapter for each hop, redirects included."""
    take = session.get_adapter

    def get_adapter(url: str) -> Any:
        refuse_private_target(url)
        return take(url)

    for adapter in session.adapters.values():
        adapter.poolmanager.pool_classes_by_scheme = _pools()  # not those of its proxies
    session.get_adapter = get_adapter
    return session


@functools.cache
def _pools() -> dict[str, Any]:
    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.connection import HTTPConnection, HTTPSConnection

    class PublicConnection(HTTPConnection):
        def _new_conn(self) -> Any:
            return _looked_at(self.host, super()._new_conn())

    class PublicHTTPSConnection(HTTPSConnection):
        def _new_conn(self) -> Any:
            return _looked_at(self.host, super()._new_conn())

    class PublicPool(HTTPConnectionPool):
        ConnectionCls = PublicConnection

    class PublicHTTPSPool(HTTPSConnectionPool):
        ConnectionCls = PublicHTTPSConnection

    return {"http": PublicPool, "https": PublicHTTPSPool}


def _looked_at(host: str, connection: Any) -> Any:
    address = connection.getpeername()[0]
    if not is_public(address):
        connection.close()
        raise BadInput(
            f"{host!r} resolves to the private address {address}; set allow_private_targets if it is meant"
        )
    return connection
