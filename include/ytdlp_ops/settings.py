"""
What a host needs to know, read from the environment when asked, never at import.

Every name starts with ``YTDLP_OPS_``; `docs/configuration.md` lists them.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from include.ytdlp_ops.errors import ConfigurationError

PREFIX = "YTDLP_OPS_"

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kMG]?)(?:i?B)?(?:/s)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _bytes(value: Any) -> Any:
    match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if isinstance(value, str) and not match:
        raise ValueError("give bytes as a number or like '500k', '2.5M', '1G'")
    return round(float(match[1]) * _UNITS[match[2].lower()]) if match else value


Bytes = Annotated[int, BeforeValidator(_bytes)]
"""A number of bytes, also spelled ``500k``, ``2.5M``, ``1G``."""


class Settings(BaseModel):
    """
    One host's settings.

    :param output_dir: where published files go, unless profiles name another destination.
    :param staging_dir: where verified formats wait for their video's others; shared by the hosts that publish.
    :param work_dir: where downloads grow; best on the same file system as `staging_dir`.
    :param profiles_file: YAML with profiles and destinations; without one there are the built-in profiles.
    :param info_store: URI under which info dicts are kept between auth and dl: ``file:///dir`` or ``redis:``.
    :param host: this host's name in records.
    :param formats: the format selector of items that name neither one nor a profile.
    :param ca_file: a PEM bundle to trust instead of certifi's, for networks with their own authority.
    :param allow_private_targets: take URLs of private and loopback addresses.
    :param lease_seconds: how long an item stays with a worker that is not heard of.
    :param reserve_bytes: free space that a download must leave on the file system.
    :param host_rate_limit: bytes a second of all downloads that share `work_dir` on this host; None: no limit.
    """

    output_dir: Path = Path("/srv/ytdlp-ops/output")
    staging_dir: Path = Path("/srv/ytdlp-ops/staging")
    work_dir: Path = Path("/srv/ytdlp-ops/work")
    profiles_file: Path | None = None
    info_store: str = "file:///srv/ytdlp-ops/infos"
    host: str = Field(default_factory=socket.gethostname)
    formats: str | None = None
    ca_file: Path | None = None
    allow_private_targets: bool = False
    lease_seconds: float = Field(default=120, ge=6)
    reserve_bytes: int = Field(default=1 << 30, ge=0)
    host_rate_limit: Bytes | None = Field(default=None, ge=1024)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """
        The settings that the environment gives; what it leaves out keeps its default.

        :raises ConfigurationError: names the variable, its value and what is wrong.
        """
        environ = os.environ if environ is None else environ
        given = {
            name: environ[PREFIX + name.upper()] for name in cls.model_fields if environ.get(PREFIX + name.upper())
        }
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = f"{PREFIX}{str(first['loc'][0]).upper()}"
            raise ConfigurationError(f"{name}={first['input']!r}: {first['msg']}") from None
