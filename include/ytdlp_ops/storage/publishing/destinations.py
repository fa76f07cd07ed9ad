"""
Moves finished files to where they belong, and believes only what is there.

A file is published when the destination holds its size and its SHA-256. Nothing is removed here: the caller
deletes its staging afterwards. Publishing the same files again, also after a kill at any point, changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import ConfigurationError, Refusal
from include.ytdlp_ops.storage.publishing.local_places import LocalPlace
from include.ytdlp_ops.storage.publishing.merging import EXTENSIONS
from include.ytdlp_ops.storage.publishing.object_places import ObjectPlace
from include.ytdlp_ops.storage.publishing.places import Occupied, Place, Published

__all__ = ["Files", "Place", "Published", "open_destination", "publish"]

_MAX_NAMESAKES = 100
_LOCAL = ("", "file", "local")


@dataclass(frozen=True)
class Files:
    """
    One video's files.

    :param stem: relative path, without the endings, from `stem_for`.
    :param main: ending and path of the media file, which claims the name: ``(".mp4", path)``.
    :param sidecars: ending -> path: ``.info.json``, ``.en.vtt``; they replace those of an earlier time.
    :param others_may_have_stem: the stem does not tell which video it is, so another's sidecars may have it.
    """

    stem: PurePosixPath
    main: tuple[str, Path]
    sidecars: Mapping[str, Path]
    others_may_have_stem: bool = False


def open_destination(path: str, options: Mapping[str, Any] | None = None, *, mounted: bool = False) -> Place:
    """
    The place that an absolute directory or a URI names; nothing is asked of it yet.

    Where an Airflow connection holds the credentials, `hooks.destinations` opens it instead.

    :param options: for fsspec: ``endpoint_url`` …
    :param mounted: refuse a directory in which nothing is mounted.
    :raises ConfigurationError: if no file system is known for it.
    """
    protocol, _, rest = path.rpartition("://")
    if protocol in _LOCAL:
        return LocalPlace(Path(rest), mounted=mounted)
    from fsspec.core import url_to_fs  # type: ignore[import-untyped]  # ships no types

    try:
        fs, root = url_to_fs(path, **(options or {}))
    except (ImportError, ValueError, TypeError) as error:
        what = f"the destination {path!r} can't be opened: {error}; install what its protocol needs, or mend it"
        raise ConfigurationError(what) from None
    return ObjectPlace(fs, root, protocol)


def publish(files: Files, place: Place) -> list[Published]:
    """
    Put a video's files into a place, the media file first; what is there now, in that order.

    A media file of that name with the same content is the one; with another, ours becomes ``name (2).ext``, its
    sidecars too.

    :raises Refusal: `DISK`, `LOCAL_IO` or `CONFIGURATION` (operator) or `NETWORK` (retry); names the destination
        and the way out, and holds no secrets.
    """
    (ending, path), stem = files.main, files.stem
    for number in range(1, _MAX_NAMESAKES + 1):
        named = stem if number == 1 else stem.with_name(f"{stem.name} ({number})")
        if files.sidecars and files.others_may_have_stem and _is_anothers(place, named, ending):
            continue
        try:
            made = [place.put(path, _with_ending(named, ending), replace=False)]
        except Occupied:
            continue
        sidecars = files.sidecars.items()
        return made + [place.put(path, _with_ending(named, ending), replace=True) for ending, path in sidecars]
    what = (
        f"{place.name!r} has {_MAX_NAMESAKES} other files named {str(stem)!r}; let the output template tell more"
    )
    raise Refusal(Code.CONFIGURATION, what)


def _with_ending(stem: PurePosixPath, ending: str) -> PurePosixPath:
    return stem.with_name(f"{stem.name}{ending}")


def _is_anothers(place: Place, stem: PurePosixPath, ending: str) -> bool:
    """Whether a video in another container has the stem, whose sidecars ours would replace."""
    return any(place.has(_with_ending(stem, f".{ext}")) for ext in EXTENSIONS if f".{ext}" != ending)
