"""Reads profiles from a YAML file, and says of what is wrong where it stands and how to mend it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import yaml  # type: ignore[import-untyped]  # PyYAML ships no types
from pydantic import BaseModel, ValidationError

from include.ytdlp_ops.downloading.profiles import Profile, Profiles
from include.ytdlp_ops.errors import ConfigurationError
from include.ytdlp_ops.yaml_lines import line_of

BUILT_IN = Path(__file__).with_name("profiles.example.yaml")

_USERINFO = re.compile(r"//[^/@]*@")
_SAYS_MORE = "docs/profiles.md lists what there is"


def load_profiles(path: Path | None) -> Profiles:
    """
    The built-in profiles and, given a file, what it adds to them or replaces.

    :raises ConfigurationError: names file, line, field, value and the way out.
    """
    built_in, node = _parsed(BUILT_IN)
    own, source = built_in, BUILT_IN
    if path is not None:
        (own, node), source = _parsed(path), path
    _check(source, node, own)
    merged = {name: {**(built_in.get(name) or {}), **(own.get(name) or {})} for name in Profiles.model_fields}
    profiles = Profiles.model_validate(merged)
    for name in own.get("profiles") or {}:
        _check_by_ytdlp(profiles.profiles[name], f"{source}:{line_of(node, ('profiles', name))}: profiles.{name}")
    return profiles


def _parsed(path: Path) -> tuple[dict[str, Any], Any]:
    try:
        node = yaml.compose(path.read_text("utf-8"), Loader=yaml.SafeLoader)
        fields = yaml.SafeLoader("").construct_document(node) if node else {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: can't be read: {getattr(error, 'strerror', None) or error}") from None
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        line = mark.line + 1 if mark else 1
        raise ConfigurationError(f"{path}:{line}: not YAML: {problem or 'unreadable'}") from None
    if not isinstance(fields, dict):
        raise ConfigurationError(f"{path}:1: 'profiles:' and 'destinations:' are expected; {_SAYS_MORE}")
    return fields, node


def _check(source: Path, node: Any, fields: dict[str, Any]) -> None:
    try:
        Profiles.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        loc = first["loc"]
        where = f"{source}:{line_of(node, loc)}: " + ".".join(str(part) for part in loc)
        if first["type"] == "extra_forbidden":  # the value of what has no name here may be a secret
            known = ", ".join(_model_at(loc[:-1]).model_fields)
            raise ConfigurationError(f"{where}: is not allowed; known are {known}") from None
        said, value = first["msg"].removeprefix("Value error, "), first["input"]
        value = _USERINFO.sub("//***@", value) if isinstance(value, str) else value
        found = f"; found {value!r}" if isinstance(value, str | int | float) else ""
        raise ConfigurationError(f"{where.rstrip(': ')}: {said}{found}; {_SAYS_MORE}") from None


def _check_by_ytdlp(profile: Profile, where: str) -> None:
    """What only yt-dlp can tell; at use it would look like the video's fault."""
    import yt_dlp  # type: ignore[import-untyped]  # ships no types

    with yt_dlp.YoutubeDL({"quiet": True, "cachedir": False}, auto_init=False) as ydl:
        try:
            ydl.build_format_selector(profile.formats)
        except SyntaxError as error:
            said = str(error.msg).removeprefix("Invalid format specification: ").splitlines()[0]
            raise ConfigurationError(
                f"{where}.formats: {profile.formats!r} is no format selector: {said}; give one such as 'bv*+ba/b'"
            ) from None
        if wrong := ydl.validate_outtmpl(profile.output):
            raise ConfigurationError(f"{where}.output: {profile.output!r} is no output template: {wrong}")


def _model_at(loc: tuple[int | str, ...]) -> type[BaseModel]:
    """The model that a location lies in, through dicts of models."""
    model: type[BaseModel] = Profiles
    for step in loc:
        field = model.model_fields.get(str(step))
        if field is not None:
            kinds = (field.annotation, *get_args(field.annotation))
            model = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), model)
    return model
