"""The ops server as an ASGI app."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response, Security
from fastapi.security import HTTPBearer

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import ExtractionRefused
from include.ytdlp_ops.ops_server.config import OpsServerConfig
from include.ytdlp_ops.ops_server.contract import PROBLEM_JSON, ExtractedInfo, InfoRequest, Problem
from include.ytdlp_ops.ops_server.gate import Gate
from include.ytdlp_ops.ops_server.pool import ExtractionPool
from include.ytdlp_ops.ops_server.problems import answer_with_problems
from include.ytdlp_ops.ops_server.rotation import Rotation

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {PROBLEM_JSON: {"schema": Problem.model_json_schema()}}}
    for status, text in {
        401: "the bearer token is missing or wrong",
        413: "the body is too long",
        422: "the request is wrong, or the outcome is skip or defer",
        502: "the outcome is retry or rotate",
        503: "the outcome is operator, or the server is busy",
    }.items()
}

# Gate checks the token; this tells OpenAPI of it.
_v1 = APIRouter(prefix="/v1", dependencies=[Security(HTTPBearer(auto_error=False))], responses=_PROBLEMS)
_state = APIRouter()


def create_app(config: OpsServerConfig, token: str, *, ca_file: Path | None = None) -> FastAPI:
    """
    An ops server; its extraction processes live as long as the app's lifespan.

    :param token: the bearer token that everything below ``/v1`` asks for.
    :param ca_file: a PEM bundle that extraction trusts instead of certifi's.
    """
    pool = ExtractionPool(config.workers, ca_file)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        pool.start()
        try:
            yield
        finally:
            await pool.stop()

    app = FastAPI(title="ytdlp-ops server", version="1", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.pool, app.state.rotation = pool, Rotation(config, pool)
    app.include_router(_v1)
    app.include_router(_state)
    answer_with_problems(app)
    app.add_middleware(Gate, token=token)
    return app


@_v1.post("/info", response_model=ExtractedInfo)
async def info(body: InfoRequest, request: Request) -> Response:
    """Extract one video: its info, and which egress, account and client it is bound to."""
    rotation: Rotation = request.app.state.rotation
    # as the extraction process wrote it: parsing a megabyte here would hold up every other request
    return Response(
        await rotation.info(body), media_type="application/json", headers={"Cache-Control": "no-store"}
    )


@_state.get("/healthz")
async def healthz() -> dict[str, str]:
    """Whether the server answers at all."""
    return {"status": "ok"}


@_state.get("/readyz")
async def readyz(request: Request) -> dict[str, Any]:
    """Whether it can extract: yt-dlp loaded, a process alive; warns of what makes it worse at it."""
    pool: ExtractionPool = request.app.state.pool
    if not pool.ready:
        message = f"none of {pool.size} extraction processes is ready; the server's log says why if it stays so"
        raise ExtractionRefused(Code.OPS_SERVER_UNAVAILABLE, message)
    warnings = [] if pool.loaded["deno"] else ["deno is not found: YouTube will hold back formats; install deno"]
    if pool.ready < pool.size:
        warnings.append(f"only {pool.ready} of {pool.size} extraction processes are ready")
    return {
        "status": "ready",
        "yt_dlp_version": pool.loaded["yt_dlp_version"],
        "workers": pool.ready,
        "warnings": warnings,
    }
