"""What stands between a client and its server: a network that loses replies, and TLS."""

from __future__ import annotations

import contextlib
import random
import selectors
import socket
import ssl
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.servers import free_port


class Proxy:
    """
    Between clients and one server on loopback.

    :param target_port: the server's.
    :param lose: asked with each request; where it says so, the request reaches the server, its reply never the
        client: the connection ends instead.
    :param reset_share: of the requests, whose connection ends before or after the server got them.
    :param seed: of the resets.
    """

    def __init__(
        self,
        target_port: int,
        *,
        lose: Callable[[bytes], bool] = lambda request: False,
        reset_share: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.port = free_port()
        self.lost = 0
        self._target_port = target_port
        self._lose = lose
        self._reset_share = reset_share
        self._random = random.Random(seed)
        self._selector = selectors.DefaultSelector()
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._clients: set[socket.socket] = set()
        self._doomed: set[socket.socket] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        with socket.create_server(("127.0.0.1", self.port)) as listener:
            self._selector.register(listener, selectors.EVENT_READ)
            self._ready.set()
            while not self._stopping.is_set():
                for key, _ in self._selector.select(timeout=0.1):
                    if key.fileobj is listener:
                        self._accept(listener)
                    elif key.fileobj in self._pairs:
                        self._pass_on(key.fileobj)
        for one in list(self._pairs):
            one.close()

    def _accept(self, listener: socket.socket) -> None:
        client, _ = listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", self._target_port))
        except OSError:
            client.close()
            return
        self._clients.add(client)
        for one, other in ((client, server), (server, client)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._pairs[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _pass_on(self, source: socket.socket) -> None:
        target = self._pairs[source]
        try:
            data = source.recv(1 << 20)
        except OSError:
            data = b""
        if not data or source in self._doomed or (source in self._clients and self._dooms(source, target, data)):
            self._end(source)
            return
        try:
            target.sendall(data)
        except OSError:
            self._end(source)

    def _dooms(self, client: socket.socket, server: socket.socket, request: bytes) -> bool:
        """Whether to end the connection now, the request unheard; else it may be its reply that is lost."""
        reset = self._random.random() < self._reset_share
        self.lost += reset
        if reset and self._random.random() < 0.5:
            return True
        if reset or self._lose(request):
            self.lost += not reset
            self._doomed.add(server)
        return False

    def _end(self, one: socket.socket) -> None:
        for end in (one, self._pairs[one]):
            self._selector.unregister(end)
            self._pairs.pop(end)
            self._clients.discard(end)
            self._doomed.discard(end)
            with contextlib.suppress(OSError):
                end.close()

    def __enter__(self) -> Self:
        self._ready = threading.Event()
        self._thread.start()
        self._ready.wait(5)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join(5)
        self._selector.close()


class TlsFront:
    """
    TLS before a server that speaks none, with a certificate for 127.0.0.1 that a throw-away authority signed.

    :param target_port: the server's.
    :param folder: gets ``ca.pem`` and the server's certificate.
    """

    def __init__(self, target_port: int, folder: Path) -> None:
        self.ca_file = folder / "ca.pem"
        self._target_port = target_port
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(_make_certificates(self.ca_file, folder / "server.pem"))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                raw, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(raw,), daemon=True).start()

    def _serve(self, raw: socket.socket) -> None:
        try:
            client = self._context.wrap_socket(raw, server_side=True)
        except OSError:  # a client that does not trust us
            raw.close()
            return
        server = socket.create_connection(("127.0.0.1", self._target_port))
        threading.Thread(target=_copy, args=(server, client), daemon=True).start()
        _copy(client, server)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._listener.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


def _make_certificates(ca_file: Path, server_file: Path) -> Path:
    """Writes the authority's certificate, and the server's with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(Encoding.PEM)
    ca_file.write_bytes(pem)
    server_file.write_bytes(pem + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return server_file
