"""
Where an extraction process may connect to: through its proxy alone, and to no private address.

The spelling of a URL is looked at before (`urls.refuse_private_target`); here are the redirects, the names that
resolve to such addresses, and every connection itself.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn
from urllib.parse import urlsplit

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.urls import is_public, refuse_private_target


class Guard:
    """
    One process's guard; it is for a single thread, and lets everything pass until `during`.

    It changes the process: Python's own sockets and `requests`. libcurl's connections pass it by, so no handler
    of yt-dlp's but the one for `requests` may be used. ``refused`` says what was refused last: yt-dlp keeps no
    more of such an error than that there was one.
    """

    refused: str | None = None

    def __init__(self) -> None:
        self._on = False
        self._proxy_host: str | None = None
        self._services: frozenset[tuple[str, int]] = frozenset()
        self._known: set[tuple[Any, Any]] = set()

    def install(self) -> None:
        """Stand between this process and its connections, from now on."""
        from requests.adapters import HTTPAdapter

        resolve, send = socket.getaddrinfo, HTTPAdapter.send
        connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

        def guarded_resolve(host: Any, *args: Any, **kwargs: Any) -> Any:
            return self._resolved(host, resolve(host, *args, **kwargs))

        def guarded_connect(own: socket.socket, address: Any) -> None:
            self._check(address)
            connect(own, address)

        def guarded_connect_ex(own: socket.socket, address: Any) -> int:
            self._check(address)
            return connect_ex(own, address)

        def guarded_send(own: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
            if self._on:  # a redirect too
                self._check_url(request.url)
            return send(own, request, *args, **kwargs)

        socket.getaddrinfo = guarded_resolve
        patched: Any = socket.socket
        patched.connect, patched.connect_ex = guarded_connect, guarded_connect_ex
        patched = HTTPAdapter
        patched.send = guarded_send

    @contextmanager
    def during(self, proxy: str | None, *, allow_private: bool, services: Iterable[str] = ()) -> Iterator[None]:
        """
        Guard what happens in it; a refused target raises `BadInput` where it is asked.

        :param proxy: the only way out; None: straight to public addresses.
        :param allow_private: let everything pass.
        :param services: ``host:port`` of what may be asked all the same: a plugin's own server.
        """
        self._on = not allow_private
        self._proxy_host = urlsplit(proxy).hostname if proxy else None
        pairs = (service.rpartition(":") for service in services)
        self._services = frozenset((host.strip("[]").lower(), int(port)) for host, _, port in pairs)
        self._known = set(self._services)
        self.refused = None
        try:
            yield
        finally:
            self._on = False

    def _resolved(self, host: Any, found: list[Any]) -> list[Any]:
        if not self._on:
            return found
        name = (host.decode() if isinstance(host, bytes) else str(host)).lower()
        meant = [each for each in found if name == self._proxy_host or (name, each[4][1]) in self._services]
        if meant:
            self._known |= {(each[4][0], each[4][1]) for each in meant}
            return meant
        public = [each for each in found if is_public(each[4][0])]
        if found and not public:
            self._refuse(f"{name!r} resolves to the private address {found[0][4][0]}")
        return public

    def _check(self, address: Any) -> None:
        if not self._on:
            return
        host, port = address[:2] if isinstance(address, tuple) else (None, None)
        if (host, port) in self._known:
            return
        if self._proxy_host:
            raise OSError(errno.ENETUNREACH, f"a connection past the proxy, to {host}, was refused")
        if host is None or not is_public(host):
            self._refuse(f"{host} is a private address")

    def _check_url(self, url: str) -> None:
        parts = urlsplit(url)
        if (parts.hostname, parts.port) in self._services:
            return
        try:
            refuse_private_target(url)
        except BadInput as error:
            self.refused = str(error)
            raise

    def _refuse(self, what: str) -> NoReturn:
        self.refused = f"{what}; set allow_private_targets if it is meant"
        raise BadInput(self.refused)
