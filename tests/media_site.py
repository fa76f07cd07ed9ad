"""A plain media host on loopback: files of a folder, with ranges, limits on each connection, and faults."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self, cast
from urllib.parse import urlsplit

from include.ytdlp_ops.downloading.pacing import DownloadPace

_BLOCK = 64 << 10


class MediaSite(ThreadingHTTPServer):
    """
    The host, for as long as the `with` lasts.

    :param folder: what it serves.
    :param rate: bytes a second that each connection gets; None: as fast as it goes.
    :param line: bytes a second that all of them get together.
    :param ranges: whether it knows Range.

    `asked` holds (file name, Range header or ""); `faults` holds, by file name, how many requests more are cut
    half-way; `statuses` holds, by file name, a status to answer with; `made` holds, by file name, what makes its
    content at each request, in place of a file; `most_busy` is how many answers were on their way at once.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self, folder: Path, *, rate: float | None = None, ranges: bool = True, line: float | None = None
    ) -> None:
        self.folder, self.rate, self.ranges = folder, rate, ranges
        self.line = DownloadPace(line) if line else None
        self.busy, self.most_busy, self._busy_lock = 0, 0, threading.Lock()
        self.asked: list[tuple[str, str]] = []
        self.faults: Counter[str] = Counter()
        self.statuses: dict[str, int] = {}
        self.made: dict[str, Callable[[], str]] = {}
        self.stopping = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    def url(self, name: str, query: str = "") -> str:
        """Where a file is."""
        return f"http://127.0.0.1:{self.server_address[1]}/{name}{query}"

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Count an answer on its way."""
        with self._busy_lock:
            self.busy += 1
            self.most_busy = max(self.most_busy, self.busy)
        try:
            yield
        finally:
            with self._busy_lock:
                self.busy -= 1

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
        status = site.statuses.get(name) or (200 if path.is_file() or name in site.made else 404)
        if status != 200 or name in site.made:
            content = site.made[name]().encode() if status == 200 else b""
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            return
        size = path.stat().st_size
        start, end = 0, size
        if part := re.search(r"[?&]range=(\d+)-(\d+)", self.path):  # as googlevideo takes it: that part is all
            start, size = int(part[1]), min(int(part[2]) + 1, size)
            end = size
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
        with site.sending():
            self._send(site, path, start, end)

    def _send(self, site: MediaSite, path: Path, start: int, end: int) -> None:
        began = time.monotonic()
        with path.open("rb") as file:
            if site.rate is None and site.line is None:
                self.connection.sendfile(file, start, end - start)
                return
            file.seek(start)
            for at in range(start, end, _BLOCK):
                self.connection.sendall(file.read(min(_BLOCK, end - at)))
                ahead = (at + _BLOCK - start) / site.rate - (time.monotonic() - began) if site.rate else 0
                ahead = max(ahead, site.line.spend(_BLOCK) if site.line else 0)
                if ahead > 0 and site.stopping.wait(ahead):
                    return

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the name is the base class's
        """Nothing: `MediaSite.asked` has it."""
