"""The ops server's YAML file: read, refused with its line, and read again when it has changed."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # PyYAML ships no types
from pydantic import BaseModel, ValidationError

from include.ytdlp_ops.errors import ConfigurationError
from include.ytdlp_ops.ops_server.config import Account, Egress, OpsServerConfig, Profile
from include.ytdlp_ops.yaml_lines import line_of

log = logging.getLogger(__name__)

_USERINFO = re.compile(r".*@", re.DOTALL)
_MODELS: dict[str, type[BaseModel]] = {"egresses": Egress, "accounts": Account, "profiles": Profile}
_FIXED = ("workers", "plugins", "redis_url", "redis_base", "token_file", "max_waiting")


class ConfigFile:
    """
    A configuration that follows its file.

    :param path: read now.
    :raises ConfigurationError: if it can't be used.

    ``current`` is the last that could be used; ``problem`` says what is wrong with the file as it is now.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = self._stamp()
        self.current = load_config(path)
        self.problem: str | None = None
        self._started = self.current

    def reload(self) -> bool:
        """Read the file again if it has changed; whether there is another configuration now."""
        stamp = self._stamp()
        if stamp == self._seen:
            return False
        self._seen = stamp
        try:
            config = load_config(self._path)
        except ConfigurationError as error:
            self.problem = f"the configuration was not reloaded, the last good one holds: {error}"
            log.error("%s", self.problem)
            return False
        fixed = [name for name in _FIXED if getattr(config, name) != getattr(self._started, name)]
        self.problem = f"{', '.join(fixed)} changed in {self._path}; restart the server for it" if fixed else None
        self.current = config.model_copy(update={name: getattr(self._started, name) for name in _FIXED})
        names = ", ".join(one.name for one in config.egresses)
        log.info("configuration reloaded: egresses %s; %d accounts", names, len(config.accounts))
        if self.problem:
            log.warning("%s", self.problem)
        return True

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


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
    accounts = [one.model_copy(update={"cookies": path.parent / one.cookies}) for one in config.accounts]
    token_file = path.parent / config.token_file if config.token_file else None
    return config.model_copy(update={"accounts": accounts, "token_file": token_file})


def _first_problem(path: Path, node: Any, error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    loc, kind = first["loc"], first["type"]
    field = ".".join(str(part) for part in loc)
    where = f"{path}:{line_of(node, loc)}: " + (f"{field}: " if field else "")
    if kind == "extra_forbidden":  # its value may be a secret that was given a wrong name
        model = _MODELS.get(str(loc[0]), OpsServerConfig) if len(loc) > 1 else OpsServerConfig
        return f"{where}unknown field; known are {_list(model.model_fields)}"
    if kind == "missing":
        return f"{where}is missing; ops_server.example.yaml shows a whole file"
    said = first["msg"].removeprefix("Value error, ")
    value = first["input"]
    if isinstance(value, str):
        value = _USERINFO.sub("***@", value)
    return f"{where}{said}; found {value!r}" if isinstance(value, (str, int, float)) else f"{where}{said}"


def _list(names: Any) -> str:
    return ", ".join(names)
