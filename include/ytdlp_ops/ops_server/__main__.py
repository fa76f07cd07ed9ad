"""
Run an ops server: ``python -m include.ytdlp_ops.ops_server --config ops_server.yaml``.

The bearer token comes from ``YTDLP_OPS_SERVER_TOKEN`` or the configuration's `token_file`. Ends on SIGTERM and
SIGINT, once the requests that run have had `GRACE_SECONDS`. Exit code 2: it could not start, and says why.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import socket
import sys
from pathlib import Path

import uvicorn

from include.ytdlp_ops.errors import ConfigurationError
from include.ytdlp_ops.ops_server.app import create_app
from include.ytdlp_ops.ops_server.config import OpsServerConfig, read_token
from include.ytdlp_ops.ops_server.config_file import ConfigFile
from include.ytdlp_ops.ops_server.standing import StandingStore
from include.ytdlp_ops.ops_server.standing_in_memory import StandingInMemory
from include.ytdlp_ops.ops_server.standing_in_redis import StandingInRedis
from include.ytdlp_ops.settings import Settings

GRACE_SECONDS = 5


def main() -> None:
    """Start and serve until told to end."""
    asked = _parser().parse_args()
    try:
        file = ConfigFile(asked.config)
        ca_file = Settings.from_env().ca_file
        if ca_file and not ca_file.is_file():
            raise ConfigurationError(f"YTDLP_OPS_CA_FILE={str(ca_file)!r}: there is no such file")
        token, store = read_token(file.current), _open_store(file.current)
        app = create_app(file, store, token, ca_file=ca_file)
        listener = _listen(asked.host, asked.port)
    except ConfigurationError as error:
        sys.stderr.write(f"ops server: {error}\n")
        sys.exit(2)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # uvicorn raises the signal again once it has ended; by default that would count as a crash
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    settings = uvicorn.Config(
        app, access_log=False, log_config=None, loop="asyncio", timeout_graceful_shutdown=GRACE_SECONDS
    )
    _Server(settings, asked.ready_file).run(sockets=[listener])


def _open_store(config: OpsServerConfig) -> StandingStore:
    url = config.read_redis_url()
    return StandingInRedis(url, config.redis_base) if url else StandingInMemory()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready_file: Path | None) -> None:
        super().__init__(config)
        self._ready_file = ready_file

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._ready_file and self.started and sockets:
            _write_ready_file(self._ready_file, sockets[0])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise ConfigurationError(f"can't listen on {host} port {port}: {reason}; choose another --port") from None


def _write_ready_file(path: Path, listener: socket.socket) -> None:
    """By rename, so that whoever waits for it never reads half of it."""
    host, port = listener.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_text(json.dumps({"port": port, "url": url}))
    part.replace(path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m include.ytdlp_ops.ops_server", description="Run an ops server."
    )
    parser.add_argument("--config", type=Path, required=True, help="ops_server.yaml; see ops_server.example.yaml")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: a free one)")
    parser.add_argument("--ready-file", type=Path, help="where to write port and URL when requests are accepted")
    return parser


if __name__ == "__main__":
    main()
