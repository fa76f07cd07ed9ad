"""Destinations in this host's file systems, mounted ones included."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import tempfile
import time
from pathlib import Path, PurePosixPath

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import Refusal
from include.ytdlp_ops.local_io import local_failure
from include.ytdlp_ops.storage.placing import rename_to_new, sync
from include.ytdlp_ops.storage.publishing.places import GROWING, Occupied, Published, blocks_of, digest_of

_LEFT_SECONDS = 24 * 3600.0
_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class LocalPlace:
    """
    A directory, which must be there: one made in place of a mount that is missing would fill the root disk.

    :param mounted: and must lie in a file system that is mounted, not in the one of ``/``.
    """

    def __init__(self, root: Path, *, mounted: bool = False) -> None:
        self._root, self._mounted = root, mounted

    @property
    def name(self) -> str:
        """Its path."""
        return str(self._root)

    def check(self) -> None:
        """As `Place.check`; raises `LOCAL_IO`."""
        try:
            there, mounted = self._root.is_dir(), not self._mounted or _is_mounted(self._root)
        except OSError as error:
            raise local_failure(error, f"the destination {self.name!r} can't be looked at") from None
        if not there:
            what = f"the destination {self.name!r} is not there; mount it, or make the directory once: mkdir -p"
            raise Refusal(Code.LOCAL_IO, what)
        if not mounted:
            what = f"the destination {self.name!r} has 'mount: true', and nothing is mounted there; mount it"
            raise Refusal(Code.LOCAL_IO, what)

    def has(self, name: PurePosixPath) -> bool:
        """As `Place.has`."""
        return os.path.lexists(self._root / name)

    def put(self, source: Path, name: PurePosixPath, *, replace: bool) -> Published:
        """
        As `Place.put`. In one file system a second name is made for the same bytes; else they are copied.

        :raises Occupied: if another file has the name, and is not to be replaced.
        :raises Refusal: `DISK` or `LOCAL_IO`.
        """
        target = self._root / name
        self.check()
        try:
            self._make_directories(name)
            sync(source)
            if not replace and (there := _found(source, target)):
                return there
            made = None if replace else self._linked(source, target)
            made = made or self._copied(source, target, replace)
            sync(target.parent)
        except OSError as error:
            raise local_failure(error, f"{source.name!r} can't be published to {str(target)!r}") from None
        return made

    def _make_directories(self, name: PurePosixPath) -> None:
        """Those below the root, never the root: it may have been unmounted this moment."""
        directory = self._root
        for part in name.parent.parts:
            directory /= part
            directory.mkdir(exist_ok=True)

    def _linked(self, source: Path, target: Path) -> Published | None:
        try:
            os.link(source, target, follow_symlinks=False)
        except FileExistsError:
            raise Occupied from None
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            return None
        return Published(str(target), target.stat().st_size, digest_of(target))

    def _copied(self, source: Path, target: Path, replace: bool) -> Published:
        growing = self._root / GROWING
        growing.mkdir(mode=0o700, exist_ok=True)
        _forget_old(growing)
        descriptor, name = tempfile.mkstemp(dir=growing)
        copy = Path(name)
        try:
            sent = _copy(source, descriptor)
            if digest_of(copy) != sent:
                what = f"{source.name!r} came to {str(growing)!r} with other bytes; check the disk or the mount"
                raise Refusal(Code.LOCAL_IO, what)
            if replace:
                copy.replace(target)
            else:
                rename_to_new(copy, target)
        except FileExistsError:
            raise Occupied from None
        finally:
            copy.unlink(missing_ok=True)
        return Published(str(target), target.stat().st_size, sent)


def _is_mounted(root: Path) -> bool:
    real = root.resolve()
    return any(path.is_mount() for path in (real, *real.parents) if path != path.parent)


def _found(source: Path, target: Path) -> Published | None:
    """What is there already, if it is this file."""
    if not os.path.lexists(target):
        return None
    if target.is_symlink() or not target.is_file() or target.stat().st_size != source.stat().st_size:
        raise Occupied
    there = digest_of(target)
    if not target.samefile(source) and digest_of(source) != there:
        raise Occupied
    return Published(str(target), target.stat().st_size, there)


def _copy(source: Path, descriptor: int) -> str:
    """Copy, each byte read once; the SHA-256 of what was read. What is read next comes from the disk."""
    digest = hashlib.sha256()
    with open(descriptor, "wb", buffering=0) as writer:
        for block in blocks_of(source):
            digest.update(block)
            writer.write(block)
        os.fchmod(writer.fileno(), source.stat().st_mode & 0o777)
        os.fsync(writer.fileno())
        os.posix_fadvise(writer.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return digest.hexdigest()


def _forget_old(growing: Path) -> None:
    """Copies that a killed process left."""
    before = time.time() - _LEFT_SECONDS
    for left in growing.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if left.stat().st_mtime < before:
                left.unlink()
