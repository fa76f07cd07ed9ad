"""What every kind of destination does."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from include.ytdlp_ops.local_io import local_failure

BLOCK_BYTES = 1 << 20
GROWING = ".publishing"
"""Directory at a destination's root in which files grow that can't appear at once."""


class Occupied(Exception):
    """Another file has that name."""


@dataclass(frozen=True)
class Published:
    """
    A file at its destination, verified there.

    :param uri: an absolute path, or a URI.
    :param sha256: hexadecimal.
    """

    uri: str
    bytes: int
    sha256: str


class Place(Protocol):
    """One destination."""

    @property
    def name(self) -> str:
        """For people: path or URI, without secrets."""

    def check(self) -> None:
        """
        See whether files can go there, as far as that costs nothing: before the work, not after it.

        :raises Refusal: why they can't.
        """

    def has(self, name: PurePosixPath) -> bool:
        """
        Whether anything has that name.

        :raises Refusal: why it can't be told.
        """

    def put(self, source: Path, name: PurePosixPath, *, replace: bool) -> Published:
        """
        Have the file there under that name, whole or not at all.

        :raises Occupied: if another file has it, and is not to be replaced.
        :raises Refusal: why it can't be.
        """


def blocks_of(path: Path, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """
    The content of a local file.

    :raises DownloadFailed: `LOCAL_IO`.
    """
    try:
        with path.open("rb", buffering=0) as file:
            while block := file.read(size):
                yield block
    except OSError as error:
        raise local_failure(error, f"{str(path)!r} can't be read") from None


def digest_of(path: Path) -> str:
    """SHA-256 of a local file; raises as `blocks_of`."""
    digest = hashlib.sha256()
    for block in blocks_of(path):
        digest.update(block)
    return digest.hexdigest()
