"""A plain media host on loopback: files of a folder, with ranges, limits on each connection, and faults."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self, cast
from urllib.parse import urlsplit

_BLOCK = 64 << 10


class MediaSite(ThreadingHTTPServer):
    """
    The host, for as long as the `with` lasts.

    :param folder: what it serves.
    :param rate: bytes a second that each connection gets; None: as fast as it goes.
    :param ranges: whether it knows Range.

    `asked` holds (file name, Range header or ""); `faults` holds, by file name, how many requests more are cut
    half-way; `statuses` holds, by file name, a status to answer with.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, folder: Path, *, rate: float | None = None, ranges: bool = True) -> None:
        self.folder, self.rate, self.ranges = folder, rate, ranges
        self.asked: list[tuple[str, str]] = []
        self.faults: Counter[str] = Counter()
        self.statuses: dict[str, int] = {}
        self.stopping = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    def url(self, name: str, query: str = "") -> str:
        """Where a file is."""
        return f"http://127.0.0.1:{self.server_address[1]}/{name}{query}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is not our error."""

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        site = cast("MediaSite", self.server)
        name, asked = urlsplit(self.path).path.lstrip("/"), self.headers.get("Range") or ""
        site.asked.append((name, asked))
        path = site.folder / name
        status = site.statuses.get(name) or (200 if path.is_file() else 404)
        if status != 200:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        size = path.stat().st_size
        start, end = 0, size
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", asked) if site.ranges else None
        if match:
            start, end = int(match[1]), min(int(match[2] or size - 1) + 1, size)
        self.send_response(206 if match else 200)
        if match:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        if site.faults[name] > 0:
            site.faults[name] -= 1
            end, self.close_connection = (start + end) // 2, True
        self._send(site, path, start, end)

    def _send(self, site: MediaSite, path: Path, start: int, end: int) -> None:
        began = time.monotonic()
        with path.open("rb") as file:
            if site.rate is None:
                self.connection.sendfile(file, start, end - start)
                return
            file.seek(start)
            for at in range(start, end, _BLOCK):
                self.connection.sendall(file.read(min(_BLOCK, end - at)))
                ahead = (at + _BLOCK - start) / site.rate - (time.monotonic() - began)
                if ahead > 0 and site.stopping.wait(ahead):
                    return

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the name is the base class's
        """Nothing: `MediaSite.asked` has it."""
