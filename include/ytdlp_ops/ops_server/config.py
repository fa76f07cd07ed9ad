"""What an ops server needs to know: one YAML file, and a bearer token that stands in no file with it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

import yaml  # type: ignore[import-untyped]  # PyYAML ships no types
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator

from include.ytdlp_ops.errors import ConfigurationError

TOKEN_VARIABLE = "YTDLP_OPS_SERVER_TOKEN"  # noqa: S105 -- the variable's name, not a token
PROXY_SCHEMES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")
_USERINFO = re.compile(r".*@", re.DOTALL)

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
ClientName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


class Egress(BaseModel):
    """
    One way out to the site.

    :param name: what requests, answers and logs call it.
    :param proxy: URL of a proxy, a secret; None: the host's own address.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    proxy: SecretStr | None = None

    @field_validator("proxy")
    @classmethod
    def _is_a_proxy(cls, proxy: SecretStr | None) -> SecretStr | None:
        if proxy is None:
            return None
        try:
            parts = urlsplit(proxy.get_secret_value())
            usable = parts.scheme in PROXY_SCHEMES and bool(parts.hostname) and parts.port != 0
        except ValueError:  # a port that is no number; its message would show part of the URL
            usable = False
        if not usable:
            raise ValueError(
                f"not a proxy URL; write scheme://user:password@host:port with {_list(PROXY_SCHEMES)}"
            )
        return proxy

    @property
    def proxy_url(self) -> str | None:
        """The proxy with its credentials: for yt-dlp and for the answer to the worker, never for a log."""
        return self.proxy.get_secret_value() if self.proxy else None


class OpsServerConfig(BaseModel):
    """
    One ops server's configuration.

    :param egresses: the ways out, at least one.
    :param extractors: yt-dlp's ``allowed_extractors``: regular expressions on extractor names.
    :param player_clients: YouTube's player clients to ask, unless a request names one; empty: yt-dlp's choice.
    :param extractor_args: yt-dlp's, by extractor and argument: ``{youtube: {player_skip: [configs]}}``.
    :param workers: extraction processes; each needs about 70 MB.
    :param deadline_seconds: most that one request may take, all its egresses together.
    :param socket_timeout_seconds: most that one read of the site may take.
    :param allow_private_targets: take URLs of private and loopback addresses.
    :param token_file: a file that holds the bearer token, where the environment does not; a relative path
        counts from the folder of the configuration file.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    egresses: list[Egress] = Field(min_length=1)
    extractors: list[str] = Field(default=["youtube.*"], min_length=1)
    player_clients: list[ClientName] = []
    extractor_args: dict[str, dict[str, list[str]]] = {}
    workers: int = Field(default=4, ge=1, le=64)
    deadline_seconds: float = Field(default=60, gt=0, le=600)
    socket_timeout_seconds: float = Field(default=15, gt=0, le=600)
    allow_private_targets: bool = False
    token_file: Path | None = None

    @field_validator("extractors")
    @classmethod
    def _compile(cls, extractors: list[str]) -> list[str]:
        for pattern in extractors:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
        return extractors

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [egress.name for egress in self.egresses]
        if doubles := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"egresses: more than one is named {_list(doubles)}; give each its own name")
        return self


def load_config(path: Path) -> OpsServerConfig:
    """
    Read a configuration file.

    :raises ConfigurationError: names file, line, field, value and the way out; never a proxy's credentials.
    """
    try:
        node = yaml.compose(path.read_text("utf-8"), Loader=yaml.SafeLoader)
        fields = yaml.SafeLoader("").construct_document(node) if node else None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: can't be read: {getattr(error, 'strerror', None) or error}") from None
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        raise ConfigurationError(
            f"{path}:{mark.line + 1 if mark else 1}: not YAML: {problem or 'unreadable'}"
        ) from None
    try:
        config = OpsServerConfig.model_validate({} if fields is None else fields)
    except ValidationError as error:
        raise ConfigurationError(_first_problem(path, node, error)) from None
    if config.token_file:
        config = config.model_copy(update={"token_file": path.parent / config.token_file})
    return config


def read_token(config: OpsServerConfig, environ: Mapping[str, str] | None = None) -> str:
    """
    The bearer token: from ``YTDLP_OPS_SERVER_TOKEN``, else from the configuration's `token_file`.

    :raises ConfigurationError: if there is none, or it could not stand in an HTTP header.
    """
    environ = os.environ if environ is None else environ
    token, source = environ.get(TOKEN_VARIABLE, "").strip(), TOKEN_VARIABLE
    if not token and config.token_file:
        source = f"token_file {config.token_file}"
        try:
            token = config.token_file.read_text("ascii").strip()
        except OSError as error:
            raise ConfigurationError(f"{source}: can't be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigurationError(f"{source}: holds more than ASCII; write the token alone") from None
    if not token:
        raise ConfigurationError(f"{source} holds no bearer token; set {TOKEN_VARIABLE} or token_file")
    if not re.fullmatch(r"[\x21-\x7e]+", token):
        raise ConfigurationError(f"{source}: the token holds blanks or characters that are not printable ASCII")
    return token


def _first_problem(path: Path, node: Any, error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    loc, kind = first["loc"], first["type"]
    field = ".".join(str(part) for part in loc)
    where = f"{path}:{_line(node, loc)}: " + (f"{field}: " if field else "")
    if kind == "extra_forbidden":  # its value may be a secret that was given a wrong name
        model = Egress if loc[0] == "egresses" else OpsServerConfig
        return f"{where}unknown field; known are {_list(model.model_fields)}"
    if kind == "missing":
        return f"{where}is missing; ops_server.example.yaml shows a whole file"
    said = first["msg"].removeprefix("Value error, ")
    value = first["input"]
    if isinstance(value, str):
        value = _USERINFO.sub("***@", value)
    return f"{where}{said}; found {value!r}" if isinstance(value, (str, int, float)) else f"{where}{said}"


def _line(node: Any, loc: tuple[int | str, ...]) -> int:
    """The line of a field, counted from 1; of what should hold it, where it is missing."""
    line = node.start_mark.line if node else 0
    for step in loc:
        if isinstance(node, yaml.MappingNode):
            found = next((pair for pair in node.value if pair[0].value == str(step)), None)
            if found is None:
                break
            line, node = found[0].start_mark.line, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line
    return int(line) + 1


def _list(names: Any) -> str:
    return ", ".join(names)
