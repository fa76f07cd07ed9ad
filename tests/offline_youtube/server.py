"""The proxy: CONNECT, TLS with our own certificate, then the site's answers and googlevideo's bytes."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import socket
import ssl
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import parse_qsl, urlsplit

from tests.offline_youtube.certificates import BUNDLE_FILE, CA_FILE, HOSTS, LEAF_FILE, make_certificates
from tests.offline_youtube.media import made_once
from tests.offline_youtube.player import Player
from tests.offline_youtube.scenarios import egress_fault_of, media_of, scenario_of
from tests.offline_youtube.signing import is_signed_for
from tests.offline_youtube.stock import Stock
from tests.offline_youtube.streams import Streams
from tests.offline_youtube.youtube import Request, YouTube

_BLOCK = 1 << 20
_SLOW_BLOCK, _SLOW_PAUSE = 16384, 0.25  # 64 kB a second
_IN_SEGMENTS = ("/videoplayback/", "/api/manifest/")
_FORGET_LOGIN = {
    "Set-Cookie": "LOGIN_INFO=; Domain=.youtube.com; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Secure"
}


class OfflineYouTube(ThreadingHTTPServer):
    """
    The site, for as long as the `with` lasts.

    :param folder: media and certificates are made here once, and may be shared by many processes.
    :param port: of 127.0.0.1; 0 takes a free one.
    :param ttl: seconds that a media URL lives.

    `log` holds one dict per answer: ``t`` (unix seconds), ``egress``, ``status``, ``bytes``, and ``host`` and
    ``path``, or ``media``, ``itag``, ``range`` and ``fault``, or ``connect`` for a tunnel that was refused.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, folder: Path, port: int = 0, ttl: int = 21600) -> None:
        self.stock = Stock(folder)
        self.media_folder = self.stock.usual
        self.streams = Streams(self.stock, lambda video_id: scenario_of(video_id).stream)
        certificates = made_once(folder / "certificates", make_certificates)
        self.ca_file, self.bundle_file = certificates / CA_FILE, certificates / BUNDLE_FILE
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(certificates / LEAF_FILE)
        self.youtube = YouTube(Player(self.stock, self.streams, ttl), self.stock)
        self.log: list[dict[str, Any]] = []
        self.stopping = threading.Event()
        self._asked: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), Handler)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    def proxy(self, egress: str | None = None) -> str:
        """The proxy URL of an egress; None: one that gives no name."""
        return f"http://{f'{egress}:x@' if egress else ''}127.0.0.1:{self.port}"

    def times_asked(self, video_id: str, itag: str) -> int:
        """Count a request for this media; how many there were, this one included."""
        with self._lock:
            self._asked[video_id, itag] += 1
            return self._asked[video_id, itag]

    def reset(self) -> None:
        """Forget the log and what was asked; lives begin anew."""
        self.streams.reset()
        with self._lock:
            self.log.clear()
            self._asked.clear()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is not our error."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(
            target=self.serve_forever, args=(0.05,), name="offline-youtube", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self.shutdown()
        self._thread.join()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """One connection of a client: plain at first, TLS after its CONNECT."""

    protocol_version = "HTTP/1.1"
    timeout = 120
    disable_nagle_algorithm = True
    tunnel: str | None = None  # the host that this connection's CONNECT named
    egress = "direct"

    @property
    def site(self) -> OfflineYouTube:
        """The server, with its own type."""
        return cast("OfflineYouTube", self.server)

    def do_CONNECT(self) -> None:
        """Open a tunnel to a played host, or fail as the egress does."""
        user = re.match(r"Basic (.+)", self.headers.get("Proxy-Authorization") or "")
        self.egress = base64.b64decode(user[1]).decode().split(":")[0] if user else "direct"
        host = self.path.rsplit(":", 1)[0]
        fault = egress_fault_of(self.egress) or ""
        if fault == "hang":
            self.site.stopping.wait(60)
        if fault in ("hang", "reset"):
            self._drop()
            return
        if not any(host == played or host.endswith(f".{played}") for played in HOSTS):
            fault = "p502"
        if re.fullmatch(r"p\d+", fault):
            self._refuse_tunnel(int(fault[1:]))
            return
        self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        if fault == "badtls":
            self.wfile.write(b"this is not TLS\r\n" * 8)
            self._drop()
            return
        self._speak_tls(host)

    def _refuse_tunnel(self, status: int) -> None:
        self._note(status, 0, connect=self.path)
        self.send_response(status)
        if status == 407:
            self.send_header("Proxy-Authenticate", 'Basic realm="offline"')
        self.send_header("Content-Length", "0")
        self.close_connection = True
        self.end_headers()

    def _speak_tls(self, host: str) -> None:
        try:
            self.connection = self.site.tls.wrap_socket(self.connection, server_side=True)
        except OSError:  # the client does not trust us, or went away
            self.close_connection = True
            return
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
        self.tunnel = host
        self.close_connection = False

    def do_GET(self) -> None:
        """Answer as the site, as googlevideo, or, spoken to directly, about ourselves."""
        url = urlsplit(self.path)
        host = self.tunnel or url.hostname
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        query = dict(parse_qsl(url.query))
        if not host:
            self._control(url.path)
            return
        if url.path == "/videoplayback":
            self._media(query)
            return
        if url.path.startswith(_IN_SEGMENTS):
            piece = self.site.streams.answer(url.path, self.egress)
            self._note(piece.status, len(piece.body), path=url.path.split("/expire/")[0], **_told_in(url.path))
            self._reply(piece.status, piece.body, piece.kind, slow=egress_fault_of(self.egress) == "slow")
            return
        cookies = self.headers.get("Cookie") or ""
        answer = self.site.youtube.answer(Request(host, url.path, query, body, self.egress, cookies))
        self._note(answer.status, len(answer.body), host=host, path=url.path)
        more = _FORGET_LOGIN if "LOGIN_INFO=rotated" in cookies else {}
        self._reply(answer.status, answer.body, answer.kind, more)

    do_POST = do_HEAD = do_GET  # noqa: N815 -- the base class spells them so

    def _control(self, path: str) -> None:
        if path == "/__log":
            self._reply(200, json.dumps(self.site.log).encode(), "application/json")
            return
        if path == "/__reset":
            self.site.reset()
        self._reply(200, b"offline youtube\n", "text/plain")

    def _media(self, query: dict[str, str]) -> None:
        asked = {"media": query.get("vid"), "itag": query.get("itag"), "range": self.headers.get("Range")}
        fault = self._media_fault(query)
        if fault.isdigit():
            self._note(int(fault), 0, **asked)
            self._reply(int(fault), b"", "text/plain")
            return
        if fault == "reset":
            self._drop()
            return
        media = media_of(query["vid"], int(query["itag"]), query.get("xtags", ""))
        content = self.site.stock.content(media)
        changed = {
            "html": memoryview(b"<html>captive portal</html>" * 100),
            "empty": memoryview(b""),
            "trunc": content[: len(content) // 2],
        }
        content = changed.get(fault, content)
        status, part, headers = _ranged(content, asked["range"])
        sent = part[: max(len(part) // 2, 65536)] if fault == "cut" else part
        self._note(status, len(sent), **asked, fault=fault or None)
        kind = "text/html" if fault == "html" else media.mime.split(";")[0]
        self._reply(status, sent, kind, headers, promised=len(part), slow=fault == "slow")

    def _media_fault(self, query: dict[str, str]) -> str:
        """A status, a word, or an empty string where the media is served."""
        if not is_signed_for(query, self.egress):
            return "403"
        if egress_fault_of(self.egress) == "slow":
            return "slow"
        scenario = scenario_of(query["vid"])
        if scenario.times is not None and self.site.times_asked(query["vid"], query["itag"]) > scenario.times:
            return ""
        return scenario.media or ""

    def _reply(
        self,
        status: int,
        content: bytes | memoryview,
        kind: str,
        headers: dict[str, str] | None = None,
        *,
        promised: int | None = None,
        slow: bool = False,
    ) -> None:
        promised = len(content) if promised is None else promised
        self.send_response(status)
        for key, value in {"Content-Type": kind, "Content-Length": str(promised), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        try:
            whole = self._send_body(content, slow)
        except OSError:
            whole = False
        if not whole or len(content) < promised:
            self._drop()

    def _send_body(self, content: bytes | memoryview, slow: bool) -> bool:
        """Whether all was sent before the server stopped."""
        block = _SLOW_BLOCK if slow else _BLOCK
        for at in range(0, len(content), block):
            self.connection.sendall(content[at : at + block])
            if self.site.stopping.wait(_SLOW_PAUSE if slow else 0):
                return False
        return True

    def _drop(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _note(self, status: int, size: int, **more: str | None) -> None:
        said = {key: value for key, value in more.items() if value is not None}
        entry = {"t": round(time.time(), 3), "egress": self.egress, "status": status, "bytes": size, **said}
        self.site.log.append(entry)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the name is the base class's
        """Nothing: `OfflineYouTube.log` has it."""

    def finish(self) -> None:
        """Close whatever the connection has become."""
        for closing in (self.wfile.close, self.rfile.close, self.connection.close):
            with contextlib.suppress(OSError):
                closing()


def _told_in(path: str) -> dict[str, str]:
    """What a path of googlevideo says of the media, for the log."""
    names = {"vid": "media", "itag": "itag", "sq": "segment"}
    return {name: found[1] for key, name in names.items() if (found := re.search(rf"/{key}/([^/]+)", path))}


def _ranged(content: memoryview, asked: str | None) -> tuple[int, memoryview, dict[str, str]]:
    """Status, the part that a Range header asks for, headers."""
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", asked or "")
    accept = {"Accept-Ranges": "bytes"}
    if not match or not content:
        return 200, content, accept
    start, stop = int(match[1]), min(int(match[2] or len(content) - 1), len(content) - 1) + 1
    if start >= len(content):
        return 416, content[:0], {**accept, "Content-Range": f"bytes */{len(content)}"}
    return 206, content[start:stop], {**accept, "Content-Range": f"bytes {start}-{stop - 1}/{len(content)}"}
