"""The ops server as an ASGI app."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import APIRouter, FastAPI, Request, Response, Security
from fastapi.security import HTTPBearer

from include.ytdlp_ops.ops_server.config_file import ConfigFile
from include.ytdlp_ops.ops_server.contract import (
    PROBLEM_JSON,
    ExpandedPage,
    ExpandRequest,
    ExtractedInfo,
    InfoRequest,
    OutcomeRequest,
    OverrideRequest,
    Problem,
    StandingAnswer,
)
from include.ytdlp_ops.ops_server.gate import Gate
from include.ytdlp_ops.ops_server.managing import Managing
from include.ytdlp_ops.ops_server.metrics import Metrics
from include.ytdlp_ops.ops_server.pool import ExtractionPool
from include.ytdlp_ops.ops_server.problems import answer_with_problems
from include.ytdlp_ops.ops_server.readiness import readiness
from include.ytdlp_ops.ops_server.rotation import Rotation
from include.ytdlp_ops.ops_server.standing import Action, StandingStore

_STATUSES = {
    400: "the body's head is no HTTP",
    401: "the bearer token is missing or wrong",
    404: "there is no such egress or account",
    413: "the body is too long",
    422: "the request is wrong, or the outcome is skip or defer",
    502: "the outcome is retry or rotate",
    503: "the outcome is operator, or the server is busy",
}
_NO_STORE = {"Cache-Control": "no-store"}


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    content = {PROBLEM_JSON: {"schema": Problem.model_json_schema()}}
    return {status: {"description": _STATUSES[status], "content": content} for status in statuses}


# Gate checks the token; this tells OpenAPI of it.
_TOKEN = [Security(HTTPBearer(auto_error=False))]
_v1 = APIRouter(prefix="/v1", dependencies=_TOKEN, responses=_problems(401, 413, 422, 502, 503))
_state = APIRouter()


class Parts(NamedTuple):
    """What the routes use, as ``app.state.parts``."""

    file: ConfigFile
    pool: ExtractionPool
    rotation: Rotation
    managing: Managing
    metrics: Metrics


def create_app(file: ConfigFile, store: StandingStore, token: str, *, ca_file: Path | None = None) -> FastAPI:
    """
    An ops server; its extraction processes live as long as the app's lifespan.

    :param file: followed while the server runs.
    :param store: where it keeps how egresses and accounts stand; closed at the end.
    :param token: the bearer token that everything below ``/v1`` and ``/metrics`` ask for.
    :param ca_file: a PEM bundle that extraction trusts instead of certifi's.
    """
    config, metrics = file.current, Metrics()
    pool = ExtractionPool(config.workers, ca_file, config.plugins)
    rotation, managing = Rotation(file, pool, store, metrics), Managing(file, store)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        pool.start()
        following = asyncio.create_task(managing.follow_files())
        try:
            yield
        finally:
            following.cancel()
            await pool.stop()
            rotation.close()
            store.close()

    app = FastAPI(title="ytdlp-ops server", version="1", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.parts = Parts(file, pool, rotation, managing, metrics)
    app.include_router(_v1)
    app.include_router(_state)
    answer_with_problems(app)
    app.add_middleware(Gate, token=token, most_waiting=config.max_waiting, count=metrics.requests)
    return app


def _parts(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


@_v1.post("/info", response_model=ExtractedInfo)
async def info(body: InfoRequest, request: Request) -> Response:
    """Extract one video: its info, and which egress, account and client it is bound to."""
    # as the extraction process wrote it: parsing a megabyte here would hold up every other request
    answer = await _parts(request).rotation.info(body)
    return Response(answer, media_type="application/json", headers=_NO_STORE)


@_v1.post("/expand", response_model=ExpandedPage)
async def expand(body: ExpandRequest, request: Request) -> Response:
    """One page of a playlist, channel, handle or gallery; the answer's cursor gives the next."""
    return Response(await _parts(request).rotation.expand(body), media_type="application/json", headers=_NO_STORE)


@_v1.post("/outcomes", status_code=204)
async def outcomes(body: OutcomeRequest, request: Request) -> None:
    """Say what happened later with an info, so that all who use the pool know."""
    await _parts(request).managing.outcome(body)


@_v1.get("/egresses")
async def egresses(request: Request) -> list[StandingAnswer]:
    """How each egress stands."""
    return await _parts(request).managing.egresses()


@_v1.get("/accounts")
async def accounts(request: Request) -> list[StandingAnswer]:
    """How each account stands."""
    return await _parts(request).managing.accounts()


@_v1.post("/egresses/{name}/{action}", status_code=204, responses=_problems(404))
async def override_egress(
    name: str, action: Action, request: Request, body: OverrideRequest | None = None
) -> None:
    """Ban an egress, unban it (and end its cool-down), or forget all that is known of it."""
    await _parts(request).managing.override_egress(name, action, (body or OverrideRequest()).reason)


@_v1.post("/accounts/{name}/{action}", status_code=204, responses=_problems(404))
async def override_account(
    name: str, action: Action, request: Request, body: OverrideRequest | None = None
) -> None:
    """Ban an account, unban it (and end its cool-down), or forget all that is known of it."""
    await _parts(request).managing.override_account(name, action, (body or OverrideRequest()).reason)


@_state.get("/healthz")
async def healthz() -> dict[str, str]:
    """Whether the server answers at all."""
    return {"status": "ok"}


@_state.get("/readyz", responses=_problems(503))
async def readyz(request: Request) -> dict[str, Any]:
    """Whether it can extract: yt-dlp loaded, a process alive, the store there; warns of what makes it worse."""
    parts = _parts(request)
    return readiness(parts.pool, parts.file, await parts.managing.standings())


@_state.get("/metrics", dependencies=_TOKEN, responses=_problems(401, 503))
async def metrics(request: Request) -> Response:
    """For Prometheus."""
    parts = _parts(request)
    page = parts.metrics.render(
        await parts.managing.standings(), processes=parts.pool.ready, config_ok=not parts.file.problem
    )
    return Response(page, media_type="text/plain; version=0.0.4; charset=utf-8")
