"""A client for any server that keeps the ops server's contract."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pydantic import TypeAdapter, ValidationError

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import ConfigurationError, ExtractionRefused, OpsServerUnavailable
from include.ytdlp_ops.ops_server.contract import PROBLEM_JSON, ExtractedInfo

if TYPE_CHECKING:
    import httpx

__all__ = ["ExtractedInfo", "OpsServerClient"]

MAX_ANSWER_BYTES = 64 << 20
_answers = TypeAdapter(ExtractedInfo)


class OpsServerClient:
    """
    Asks an ops server, once: attempts belong to the queue, so nothing is tried again here.

    :param base_url: the server, ``http://host:port``.
    :param token: its bearer token.
    :param timeout_seconds: most that a whole answer may take.
    :param connect_timeout_seconds: most that the connection may take.
    :raises ConfigurationError: if URL or token can't be used.
    """

    def __init__(
        self,
        base_url: str,
        token: str | None,
        *,
        timeout_seconds: float = 90,
        connect_timeout_seconds: float = 5,
    ) -> None:
        import httpx

        try:
            url = httpx.URL(base_url)
        except httpx.InvalidURL as error:
            raise ConfigurationError(
                f"{base_url!r} is not a URL: {error}; mend connection ytdlp_ops_server"
            ) from None
        if token and not re.fullmatch(r"[\x21-\x7e]+", token):  # httpx would quote it in its error
            message = "holds blanks or other than ASCII; mend the password of connection ytdlp_ops_server"
            raise ConfigurationError(f"the token of {url.host} {message}")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        timeout = httpx.Timeout(timeout_seconds, connect=connect_timeout_seconds)
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout)
        self._timeout_seconds = timeout_seconds
        self._server = f"ops server {url.host}:{url.port or (443 if url.scheme == 'https' else 80)}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def info(
        self,
        url: str,
        *,
        tags: Sequence[str] = (),
        client: str | None = None,
        account: str | None = None,
        egress: str | None = None,
        exclude_egress: Sequence[str] = (),
    ) -> ExtractedInfo:
        """
        Have one video extracted; `InfoRequest` says what the arguments mean.

        :raises ExtractionRefused: the server says that and why it has no info.
        :raises OpsServerUnavailable: there is no answer, or none that keeps the contract.
        """
        asked: dict[str, Any] = {"url": url, "tags": [*tags], "exclude_egress": [*exclude_egress]}
        asked |= {"client": client, "account": account, "egress": egress}
        response, body = self._post("/v1/info", {name: value for name, value in asked.items() if value})
        if response.status_code != 200:
            raise self._refusal(response, body)
        return self._answer(response, body)

    def _answer(self, response: httpx.Response, body: bytes) -> ExtractedInfo:
        try:
            return _answers.validate_python(self._parsed(response, body))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"]) or "the answer"
            message = f"answers JSON of another shape: {field}: {first['msg']}"
            raise OpsServerUnavailable(f"{self._server} {message}") from None

    def _post(self, path: str, asked: dict[str, Any]) -> tuple[httpx.Response, bytes]:
        import httpx

        deadline, body = time.monotonic() + self._timeout_seconds, bytearray()
        try:
            with self._http.stream("POST", path, json=asked) as response:
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > MAX_ANSWER_BYTES:
                        raise OpsServerUnavailable(f"{self._server} answers more than {MAX_ANSWER_BYTES} bytes")
                    if time.monotonic() > deadline:  # httpx counts from the last byte only
                        raise httpx.ReadTimeout("")
        except httpx.TimeoutException as error:
            what = "did not take the connection" if isinstance(error, httpx.ConnectTimeout) else "did not answer"
            raise OpsServerUnavailable(f"{self._server} {what} in time ({type(error).__name__})") from None
        except httpx.HTTPError as error:
            raise OpsServerUnavailable(f"{self._server} can't be asked: {type(error).__name__}: {error}") from None
        return response, bytes(body)

    def _refusal(self, response: httpx.Response, body: bytes) -> Exception:
        status = response.status_code
        if status == 401:
            message = "does not know the token (401); check the password of connection ytdlp_ops_server"
            return OpsServerUnavailable(f"{self._server} {message}")
        if not response.headers.get("content-type", "").startswith(PROBLEM_JSON):
            return OpsServerUnavailable(
                f"{self._server} answers {status} without a problem's JSON; is it an ops server?"
            )
        said = self._parsed(response, body)
        if not isinstance(said, dict) or "code" not in said:
            return OpsServerUnavailable(f"{self._server} answers {status} with a problem that has no code")
        return _read_problem(said, status)

    def _parsed(self, response: httpx.Response, body: bytes) -> Any:
        try:
            return json.loads(body)
        except ValueError:
            kind = response.headers.get("content-type", "no content type")
            message = f"answers {response.status_code} with what is not JSON ({kind}, {len(body)} bytes)"
            raise OpsServerUnavailable(f"{self._server} {message}") from None


def _read_problem(said: dict[str, Any], status: int) -> ExtractionRefused:
    """What a problem says; a code of another server's own is ``unknown``, and its outcome is believed."""
    code = Code(said["code"]) if said["code"] in list(Code) else Code.UNKNOWN
    outcome = Outcome(said["outcome"]) if said.get("outcome") in list(Outcome) else code.outcome
    retry_after = said.get("retry_after")
    named = {name: said[name] for name in ("egress", "account") if isinstance(said.get(name), str)}
    message = str(said.get("detail") or said.get("title") or f"status {status}")
    if code != said["code"]:
        message = f"{said['code']}: {message}"
    return ExtractionRefused(
        code,
        message,
        outcome=outcome,
        retry_after=retry_after if isinstance(retry_after, (int, float)) else None,
        **named,
    )
