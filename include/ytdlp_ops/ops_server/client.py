"""A client for any server that keeps the ops server's contract."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import ConfigurationError, ExtractionRefused, OpsServerUnavailable
from include.ytdlp_ops.ops_server.contract import OK, PROBLEM_JSON, ExpandedPage, ExtractedInfo, StandingAnswer

if TYPE_CHECKING:
    import httpx

__all__ = ["ExpandedPage", "ExtractedInfo", "OpsServerClient", "StandingAnswer", "version_mismatch"]

MAX_ANSWER_BYTES = 64 << 20
Kind = Literal["egress", "account"]
_PATHS: dict[Kind, str] = {"egress": "egresses", "account": "accounts"}
Answer = TypeVar("Answer")


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
        verify = url.scheme != "http"  # for nothing, it would read the trusted certificates: 40 ms of CPU
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, verify=verify)
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
        formats: str | None = None,
        min_height: int | None = None,
        profile: str | None = None,
    ) -> ExtractedInfo:
        """
        Have one video extracted; `InfoRequest` says what the arguments mean.

        :raises ExtractionRefused: the server says that and why it has no info.
        :raises OpsServerUnavailable: there is no answer, or none that keeps the contract.
        """
        asked: dict[str, Any] = {"url": url, "tags": [*tags], "exclude_egress": [*exclude_egress]}
        asked |= {"client": client, "account": account, "egress": egress}
        asked |= {"formats": formats, "min_height": min_height, "profile": profile}
        return self._ask("POST", "/v1/info", asked, TypeAdapter(ExtractedInfo))

    def expand(
        self,
        url: str,
        *,
        cursor: str | None = None,
        limit: int = 200,
        account: str | None = None,
        egress: str | None = None,
        profile: str | None = None,
    ) -> ExpandedPage:
        """One page of a list; `ExpandRequest` says what the arguments mean. Raises as `info` does."""
        asked = {"url": url, "cursor": cursor, "limit": limit}
        asked |= {"account": account, "egress": egress, "profile": profile}
        return self._ask("POST", "/v1/expand", asked, TypeAdapter(ExpandedPage))

    def outcome(self, egress: str, code: Code | None, *, account: str | None = None, stage: str = "dl") -> None:
        """
        Say what happened later with an info, so that all who use the pool know. Raises as `info` does.

        :param code: why not; None: it worked.
        """
        asked = {"egress": egress, "account": account, "code": code or OK, "stage": stage}
        self._ask("POST", "/v1/outcomes", asked, None)

    def egresses(self) -> list[StandingAnswer]:
        """How each egress stands. Raises as `info` does."""
        return self._ask("GET", "/v1/egresses", None, TypeAdapter(list[StandingAnswer]))

    def accounts(self) -> list[StandingAnswer]:
        """How each account stands. Raises as `info` does."""
        return self._ask("GET", "/v1/accounts", None, TypeAdapter(list[StandingAnswer]))

    def ban(self, name: str, *, kind: Kind = "egress", reason: str = "by hand") -> None:
        """Set an egress or account aside until it is unbanned. Raises as `info` does."""
        self._override(name, kind, "ban", {"reason": reason})

    def unban(self, name: str, *, kind: Kind = "egress") -> None:
        """Return it, and end its cool-down. Raises as `info` does."""
        self._override(name, kind, "unban")

    def reset(self, name: str, *, kind: Kind = "egress") -> None:
        """Forget all that is known of it. Raises as `info` does."""
        self._override(name, kind, "reset")

    def _override(self, name: str, kind: Kind, action: str, asked: dict[str, Any] | None = None) -> None:
        self._ask("POST", f"/v1/{_PATHS[kind]}/{quote(name, safe='')}/{action}", asked, None)

    def _ask(
        self, method: str, path: str, asked: dict[str, Any] | None, shape: TypeAdapter[Answer] | None
    ) -> Answer:
        """One request; without a shape, nothing is expected back."""
        given = asked and {name: value for name, value in asked.items() if value}
        response, body = self._send(method, path, given)
        if not response.is_success:
            raise self._refusal(response, body)
        return self._read(response, body, shape) if shape else cast("Answer", None)

    def _read(self, response: httpx.Response, body: bytes, shape: TypeAdapter[Answer]) -> Answer:
        try:
            return shape.validate_python(self._parsed(response, body))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"]) or "the answer"
            message = f"answers JSON of another shape: {field}: {first['msg']}"
            raise OpsServerUnavailable(f"{self._server} {message}") from None

    def _send(self, method: str, path: str, asked: dict[str, Any] | None) -> tuple[httpx.Response, bytes]:
        import httpx

        deadline, body = time.monotonic() + self._timeout_seconds, bytearray()
        try:
            with self._http.stream(method, path, json=asked) as response:
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
        except (ValueError, RecursionError):  # nested deeper than Python goes
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


def version_mismatch(answer: ExtractedInfo) -> str | None:
    """A warning where the yt-dlp that extracted is not the one that is installed here; else nothing."""
    try:
        here = version("yt-dlp")
    except PackageNotFoundError:
        return None
    there = answer.yt_dlp_version
    if not there or _numbers(here) == _numbers(there):
        return None
    return f"yt-dlp {there} extracted and {here} downloads: install the same on the ops server and the workers"


def _numbers(version: str) -> list[int]:
    """A package's version has no leading zeros, yt-dlp's own has: 2026.1.5, 2026.01.05."""
    return [int(part) for part in re.findall(r"\d+", version)]
