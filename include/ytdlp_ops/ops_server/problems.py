"""Every error as RFC 9457 problem JSON that tells the queue what to do."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, get_args

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import ExtractionRefused
from include.ytdlp_ops.ops_server.contract import PROBLEM_JSON, Problem
from include.ytdlp_ops.ops_server.managing import Unknown

# For people and proxies; a client goes by the body.
_STATUSES = {
    Outcome.SKIP: HTTPStatus.UNPROCESSABLE_ENTITY,
    Outcome.DEFER: HTTPStatus.UNPROCESSABLE_ENTITY,
    Outcome.RETRY: HTTPStatus.BAD_GATEWAY,
    Outcome.ROTATE: HTTPStatus.BAD_GATEWAY,
    Outcome.OPERATOR: HTTPStatus.SERVICE_UNAVAILABLE,
}
_CODE_STATUSES = {
    Code.BAD_INPUT: HTTPStatus.UNPROCESSABLE_ENTITY,
    Code.OPS_SERVER_UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}
_HTTP_CODES = {401: Code.CONFIGURATION, 404: Code.CONFIGURATION, 405: Code.CONFIGURATION, 413: Code.BAD_INPUT}


def problem(refusal: ExtractionRefused, status: int | None = None) -> JSONResponse:
    """
    The response for a refusal.

    :param status: the HTTP status, if it does not follow from code and outcome.
    """
    status = status or _CODE_STATUSES.get(refusal.code) or _STATUSES[refusal.outcome]
    body = Problem(
        type=f"urn:ytdlp-ops:code:{refusal.code}",
        title=refusal.code.replace("_", " "),
        status=status,
        detail=refusal.message,
        code=refusal.code,
        outcome=refusal.outcome,
        retry_after=refusal.retry_after,
        egress=refusal.egress,
        account=refusal.account,
    )
    headers = {} if refusal.retry_after is None else {"Retry-After": str(max(0, round(refusal.retry_after)))}
    return JSONResponse(body.model_dump(), status, headers=headers, media_type=PROBLEM_JSON)


def answer_with_problems(app: FastAPI) -> None:
    """Make every error of an app problem JSON."""
    app.add_exception_handler(ExtractionRefused, _refused)
    app.add_exception_handler(Unknown, _unknown)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ExtractionRefused)
    return problem(error)


async def _unknown(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Unknown)
    return problem(error.refusal, error.status)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    wrong = "; ".join(_describe(found) for found in error.errors()[:5])
    message = f"{wrong}. Send a JSON object as application/json with: {_fields(request)}"
    return problem(ExtractionRefused(Code.BAD_INPUT, message))


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path}: {error.detail}; /openapi.json lists what there is"
    code = _HTTP_CODES.get(error.status_code, Code.BAD_INPUT)
    response = problem(ExtractionRefused(code, message), error.status_code)
    response.headers.update(error.headers or {})
    return response


async def _unexpected(_: Request, error: Exception) -> JSONResponse:
    message = f"the server failed with {type(error).__name__}; its log has the traceback"
    return problem(ExtractionRefused(Code.UNKNOWN, message), HTTPStatus.INTERNAL_SERVER_ERROR)


def _fields(request: Request) -> str:
    """The fields of the body that this route takes."""
    body = getattr(request.scope.get("route"), "body_field", None)
    model = getattr(getattr(body, "field_info", None), "annotation", None)
    models = [model, *get_args(model)]
    return ", ".join(next((list(one.model_fields) for one in models if hasattr(one, "model_fields")), []))


def _describe(found: dict[str, Any]) -> str:
    field = ".".join(str(part) for part in found["loc"][1:]) or "the body"
    if found["type"] == "json_invalid":
        return f"the body is not JSON: {found['ctx']['error']}"
    if found["type"] == "extra_forbidden":
        return f"{field}: unknown field"
    value = found["input"]
    shown = f", not {value!r:.80}" if isinstance(value, (str, int, float)) and field != "the body" else ""
    return f"{field}: {found['msg']}{shown}"
