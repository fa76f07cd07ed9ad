"""What an ops server needs to know, as values; `config_file` reads them from YAML."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from include.ytdlp_ops.errors import ConfigurationError

TOKEN_VARIABLE = "YTDLP_OPS_SERVER_TOKEN"  # noqa: S105 -- the variable's name, not a token
PROXY_SCHEMES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")
REDIS_VARIABLE = "YTDLP_OPS_SERVER_REDIS_URL"

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
ClientName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
Tag = Annotated[str, Field(min_length=1, max_length=128)]
Budget = Annotated[int, Field(ge=1)]
Extractors = Annotated[list[str], Field(min_length=1)]
HOURLY_VIDEOS = 300
"""What one session may ask within an hour, by yt-dlp's wiki (Extractors, "Common YouTube errors")."""


class _Limited(BaseModel):
    """
    What egresses and accounts have in common.

    :param name: what requests, answers and logs call it.
    :param tags: words of items that it is for.
    :param hourly: most videos within an hour; None: any number.
    :param daily: most videos within 24 hours.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    tags: list[Tag] = []
    hourly: Budget | None = HOURLY_VIDEOS
    daily: Budget | None = None


class Egress(_Limited):
    """
    One way out to the site; an item with a tag of some egresses goes out through those only.

    :param proxy: URL of a proxy, a secret; None: the host's own address.
    :param country: where it comes out, two letters: for videos that play in some countries only.
    :param concurrency: most videos at once; one, until it has worked.
    """

    proxy: SecretStr | None = None
    country: Annotated[str, Field(pattern=r"^[A-Z]{2}$")] | None = None
    concurrency: Annotated[int, Field(ge=1, le=64)] = 4

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
                f"not a proxy URL; write scheme://user:password@host:port with {', '.join(PROXY_SCHEMES)}"
            )
        return proxy

    @property
    def proxy_url(self) -> str | None:
        """The proxy with its credentials: for yt-dlp and for the answer to the worker, never for a log."""
        return self.proxy.get_secret_value() if self.proxy else None


class Account(_Limited):
    """
    Cookies that sign in; one with tags is for items that have one of them.

    :param cookies: a file in Netscape's format; rewritten when the site rotates them. A relative path counts from
        the folder of the configuration file.
    :param egress: the egress that it is bound to; None: the one it is first used through.
    """

    cookies: Path
    egress: Name | None = None
    concurrency: Annotated[int, Field(ge=1, le=1)] = 1  # a second run would write older cookies back


class Profile(BaseModel):
    """
    What requests that name this profile may do.

    :param extractors: instead of the configuration's own.
    :param min_height: instead of the configuration's own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    extractors: Extractors | None = None
    min_height: Annotated[int, Field(ge=1, le=8640)] | None = None

    @field_validator("extractors")
    @classmethod
    def _compile(cls, extractors: list[str] | None) -> list[str] | None:
        return extractors and _compiled(extractors)


class OpsServerConfig(BaseModel):
    """
    One ops server's configuration.

    :param egresses: the ways out, at least one.
    :param accounts: what signs in, where the site asks for it.
    :param profiles: by the name that a request may give.
    :param extractors: yt-dlp's ``allowed_extractors``: regular expressions on extractor names.
    :param player_clients: YouTube's player clients to ask, unless a request names one; empty: yt-dlp's choice.
    :param extractor_args: yt-dlp's, by extractor and argument: ``{youtube: {player_skip: [configs]}}``.
    :param plugins: yt-dlp plugins to load, as modules of ``yt_dlp_plugins.extractor``; no others are.
    :param services: ``host:port`` of plugins' own servers, which the guard lets extractions connect to.
    :param min_height: a video with less is ``low_quality``, unless the request or its profile says otherwise.
    :param workers: extraction processes; each needs about 70 MB.
    :param deadline_seconds: most that one request may take, all its egresses together.
    :param attempt_seconds: most that one egress may take of it.
    :param socket_timeout_seconds: most that one read of the site may take.
    :param max_info_bytes: a longer info is refused.
    :param max_waiting: requests at once; more are told to come again.
    :param redis_url: a Redis that keeps the pool's standings, shared by several servers; None: this server's own
        memory does. ``YTDLP_OPS_SERVER_REDIS_URL`` comes first.
    :param redis_base: what the keys there begin with.
    :param allow_private_targets: take URLs of private and loopback addresses.
    :param token_file: a file that holds the bearer token, where the environment does not; a relative path
        counts from the folder of the configuration file.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    egresses: list[Egress] = Field(min_length=1)
    accounts: list[Account] = []
    profiles: dict[Name, Profile] = {}
    extractors: Extractors = ["youtube.*"]
    player_clients: list[ClientName] = []
    extractor_args: dict[str, dict[str, list[str]]] = {}
    plugins: list[Annotated[str, Field(pattern=r"^[A-Za-z]\w*$")]] = []
    services: list[Annotated[str, Field(pattern=r"^[\w.\[\]:-]+:\d{1,5}$")]] = []
    min_height: Annotated[int, Field(ge=1, le=8640)] | None = None
    workers: int = Field(default=4, ge=1, le=64)
    deadline_seconds: float = Field(default=60, gt=0, le=600)
    attempt_seconds: float = Field(default=25, gt=0, le=600)
    socket_timeout_seconds: float = Field(default=15, gt=0, le=600)
    max_info_bytes: int = Field(default=32 << 20, ge=1 << 16, le=64 << 20)
    max_waiting: int = Field(default=256, ge=1, le=4096)
    redis_url: SecretStr | None = None
    redis_base: Name = "ytdlp_ops_server"
    allow_private_targets: bool = False
    token_file: Path | None = None

    @field_validator("extractors")
    @classmethod
    def _compile(cls, extractors: list[str]) -> list[str]:
        return _compiled(extractors)

    @model_validator(mode="after")
    def _names_are_unique_and_known(self) -> Self:
        egresses = {egress.name for egress in self.egresses}
        for kind, listed in (("egresses", self.egresses), ("accounts", self.accounts)):
            names = [one.name for one in listed]
            if doubles := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"{kind}: more than one is named {', '.join(doubles)}; give each its own name")
        for account in self.accounts:
            if account.egress and account.egress not in egresses:
                raise ValueError(
                    f"accounts: {account.name} is bound to egress {account.egress!r}, which is not listed; "
                    f"there are {', '.join(sorted(egresses))}"
                )
        return self

    def profile(self, name: str | None) -> Profile:
        """
        The profile of this name, with the configuration's own values where it has none.

        :raises KeyError: if there is none.
        """
        named = self.profiles[name] if name else Profile()
        return Profile(
            extractors=named.extractors or self.extractors, min_height=named.min_height or self.min_height
        )

    def read_redis_url(self, environ: Mapping[str, str] | None = None) -> str | None:
        """Where standings are kept, a secret: from ``YTDLP_OPS_SERVER_REDIS_URL``, else from `redis_url`."""
        environ = os.environ if environ is None else environ
        given = environ.get(REDIS_VARIABLE, "").strip()
        return given or (self.redis_url.get_secret_value() if self.redis_url else None)


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


def _compiled(extractors: list[str]) -> list[str]:
    for pattern in extractors:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    return extractors
