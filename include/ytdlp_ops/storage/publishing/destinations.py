"""
Moves finished files to where they belong, and believes only what is there.

A file is published when the destination holds its size and its SHA-256. Nothing is removed here: the caller
deletes its staging afterwards. Publishing the same files again, also after a kill at any point, changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import ConfigurationError, Refusal
from include.ytdlp_ops.storage.publishing.local_places import LocalPlace
from include.ytdlp_ops.storage.publishing.object_places import ObjectPlace
from include.ytdlp_ops.storage.publishing.places import Occupied, Place, Published

__all__ = ["Published", "open_destination", "publish"]

_MAX_NAMESAKES = 100
_LOCAL = ("", "file", "local")


class RemotePath(Protocol):
    """What is needed of an `ObjectStoragePath` or a `UPath`."""

    @property
    def fs(self) -> Any:
        """The fsspec file system."""

    @property
    def path(self) -> str:
        """The path in it, without the protocol."""

    @property
    def protocol(self) -> str:
        """``s3``, ``file`` …"""


@dataclass(frozen=True)
class Files:
    """
    One video's files.

    :param stem: relative path, without the endings, from `stem_for`.
    :param main: ending and path of the media file, which claims the name: ``(".mp4", path)``.
    :param sidecars: ending -> path: ``.info.json``, ``.en.vtt``; they replace those of an earlier time.
    """

    stem: PurePosixPath
    main: tuple[str, Path]
    sidecars: Mapping[str, Path]


def open_destination(path: str, options: Mapping[str, Any] | None = None) -> Path | RemotePath:
    """
    The place that an absolute directory or a URI names, for `publish`; nothing is asked of it yet.

    Where an Airflow connection holds the credentials, ``ObjectStoragePath(path, conn_id=…)`` is given instead.

    :param options: for fsspec: ``endpoint_url`` …
    :raises ConfigurationError: if no file system is known for it.
    """
    if path.startswith("/"):
        return Path(path)
    from upath import UPath

    try:
        remote: RemotePath = UPath(path, **(options or {}))
        _ = remote.fs
    except (ImportError, ValueError, TypeError) as error:
        what = f"the destination {path!r} can't be opened: {error}; install what its protocol needs, or mend it"
        raise ConfigurationError(what) from None
    return remote


def publish(files: Files, destination: Path | RemotePath) -> list[Published]:
    """
    Put a video's files below a destination, the media file first; what is there now, in that order.

    A media file of that name with the same content is the one; with another, ours becomes ``name (2).ext``, its
    sidecars too.

    :raises Refusal: `DISK`, `LOCAL_IO` or `CONFIGURATION` (operator) or `NETWORK` (retry); names the destination
        and the way out, and holds no secrets.
    """
    place = _place(destination)
    (ending, path), stem = files.main, files.stem
    for number in range(1, _MAX_NAMESAKES + 1):
        named = stem if number == 1 else stem.with_name(f"{stem.name} ({number})")
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


def _place(destination: Path | RemotePath) -> Place:
    if isinstance(destination, Path):
        return LocalPlace(destination)
    if destination.protocol in _LOCAL:
        return LocalPlace(Path(destination.path))
    return ObjectPlace(destination.fs, destination.path, destination.protocol)
