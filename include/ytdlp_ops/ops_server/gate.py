"""What stands before the app: the bearer token, the size of a body, and one short log line a request."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time

from prometheus_client import Counter
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import ExtractionRefused
from include.ytdlp_ops.ops_server.problems import problem

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 256 * 1024
BODY_SECONDS = 30
PROTECTED = ("/v1", "/metrics")


class Gate:
    """
    ASGI middleware; before the app, so that nobody's body is parsed without the token.

    :param token: the bearer token that everything below `PROTECTED` asks for.
    :param most_waiting: requests below ``/v1`` at once; more are told to come again.
    :param count: counts requests by path and status.
    """

    def __init__(self, app: ASGIApp, token: str, most_waiting: int, count: Counter) -> None:
        self._app, self._token = app, token.encode()
        self._most_waiting, self._count, self._waiting = most_waiting, count, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection's event stream, as ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.monotonic(), 0

        async def watched_send(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._guarded(scope, receive, watched_send)
        except asyncio.CancelledError:
            if status:
                raise
            # uvicorn's grace is over and the task ends here: with a problem, not with a cut connection
            message = "the server ends; ask again"
            await problem(ExtractionRefused(Code.OPS_SERVER_UNAVAILABLE, message))(scope, receive, watched_send)
        finally:
            # raw_path: still percent-encoded, so it can't forge a line, and without the query
            path, took = scope["raw_path"].decode("ascii", "replace"), (time.monotonic() - started) * 1000
            log.info("%s %s %s %.0f ms", scope["method"], path, status, took)
            route = scope.get("route")
            self._count.labels(getattr(route, "path", "other"), status).inc()

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if scope["path"].startswith(PROTECTED) and not self._knows(headers.get("authorization", "")):
            message = "the bearer token is missing or wrong; send Authorization: Bearer <the server's token>"
            response = problem(ExtractionRefused(Code.CONFIGURATION, message), 401)
            response.headers["WWW-Authenticate"] = "Bearer"
            await response(scope, receive, send)
            return
        if not scope["path"].startswith(PROTECTED[0]):
            await self._app(scope, _limited(receive), send)
            return
        if self._waiting >= self._most_waiting:
            message = f"max_waiting ({self._most_waiting}) requests wait already; ask again, or raise it"
            await problem(ExtractionRefused(Code.OPS_SERVER_UNAVAILABLE, message, retry_after=5))(
                scope, receive, send
            )
            return
        self._waiting += 1
        try:
            await self._app(scope, _limited(receive), send)
        finally:
            self._waiting -= 1

    def _knows(self, authorization: str) -> bool:
        scheme, _, token = authorization.partition(" ")
        return scheme.lower() == "bearer" and secrets.compare_digest(token.strip().encode(), self._token)


def _limited(receive: Receive) -> Receive:
    """The body as it comes, until it is too long; what the sender says of its length is not believed."""
    taken, more, ends = 0, True, time.monotonic() + BODY_SECONDS

    async def limited() -> Message:
        nonlocal taken, more
        try:
            # afterwards it waits for the connection's end, as long as that takes
            message = await asyncio.wait_for(receive(), ends - time.monotonic() if more else None)
        except TimeoutError:
            raise HTTPException(408, f"the body did not come within {BODY_SECONDS} s") from None
        more = message.get("more_body", False)
        taken += len(message.get("body", b""))
        if taken > MAX_BODY_BYTES:
            raise HTTPException(413, f"the body has more than {MAX_BODY_BYTES} bytes")
        return message

    return limited
