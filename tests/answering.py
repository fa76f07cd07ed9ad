"""A plain HTTP server that says one thing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Answering(HTTPServer):
    """Answers everything with one redirect, or with the same content; `asked` holds what was asked."""

    def __init__(self, location: str | None, content: bytes, kind: str) -> None:
        self.location, self.content, self.kind, self.asked = location, content, kind, list[str]()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    server: Answering

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        location = self.server.location
        self.send_response(302 if location else 200)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Type", self.server.kind)
        self.send_header("Content-Length", "0" if location else str(len(self.server.content)))
        self.end_headers()
        if not location:
            self.wfile.write(self.server.content)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.do_GET()

    do_CONNECT = do_HEAD = do_GET  # noqa: N815 -- the base class spells them so

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextmanager
def answering(
    location: str | None = None, content: bytes = b"bytes of a video", kind: str = "video/mp4"
) -> Iterator[Answering]:
    """Such a server, for as long as the `with` lasts."""
    with Answering(location, content, kind) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
