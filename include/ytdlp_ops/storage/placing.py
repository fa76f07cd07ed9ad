"""Puts finished files where they are wanted: whole or not at all, and never onto another file."""

from __future__ import annotations

import errno
import filecmp
import itertools
import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import DownloadFailed
from include.ytdlp_ops.local_io import local_failure

MAX_NAME_BYTES = 200
"""Of the 255 that file systems take: room for ``(2)``, for sidecars' endings and for temporary names."""

_MAX_NAMESAKES = 100
_NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
# what shells, Windows and other file systems take for their own
_FORBIDDEN = str.maketrans(dict.fromkeys('/\\:*?"<>|', "_"))
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)


def safe_name(title: str, video_id: str, format_id: str, ext: str) -> str:
    """
    A file name for people, ``Title [VIDEOID].299.mp4``, of at most 200 bytes: the title is cut, the rest stays.

    The id keeps names of different videos apart, and the format id those of one video.
    """
    ending = f" [{_clean(video_id)[:64]}].{_clean(format_id)[:32]}.{_clean(ext)[:16]}"
    return confined(_cut(_clean(title) or "untitled", MAX_NAME_BYTES - len(ending.encode())) + ending)


def confined(name: str) -> str:
    """A name that is one plain path component, on any file system; what already is one stays as it is."""
    name = _clean(name).lstrip(". ") or "unnamed"
    if _RESERVED.fullmatch(name) or name.startswith("-"):  # a device on Windows; an option to a program
        name = f"_{name}"
    if len(name.encode()) <= MAX_NAME_BYTES:
        return name
    suffix = _cut(Path(name).suffix, 32)
    return _cut(name.removesuffix(suffix), MAX_NAME_BYTES - len(suffix.encode())) + suffix


def place(source: Path, output_dir: Path, name: str) -> Path:
    """
    Move a file into the output directory, in one step and durably; where it is now.

    If a file of that name has the same content, it is the one, so a second try after a crash changes nothing; if
    it has another, the new one becomes ``name (2).ext``.

    :param name: made `confined` first.
    :raises DownloadFailed: `DISK` or `LOCAL_IO`.
    """
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        sync(source)
        target = _move_to_free_name(source, output_dir, confined(name))
        sync(output_dir)
    except OSError as error:
        raise local_failure(error, f"{source.name!r} can't be moved to {str(output_dir)!r}") from None
    return target


def _move_to_free_name(source: Path, output_dir: Path, name: str) -> Path:
    for target in _namesakes(output_dir, name):
        try:
            _move(source, target)
        except FileExistsError:
            if not _is_same(source, target):
                continue
            source.unlink()
        return target
    raise DownloadFailed(Code.LOCAL_IO, f"{str(output_dir)!r} has {_MAX_NAMESAKES} other files named {name!r}")


def _namesakes(output_dir: Path, name: str) -> Iterator[Path]:
    path = output_dir / name
    yield path
    for number in itertools.islice(itertools.count(2), _MAX_NAMESAKES - 1):
        yield path.with_name(f"{path.stem} ({number}){path.suffix}")


def _move(source: Path, target: Path) -> None:
    try:
        rename_to_new(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy = _copy_beside(source, target)
        try:
            rename_to_new(copy, target)
        finally:
            copy.unlink(missing_ok=True)
        source.unlink()


def rename_to_new(source: Path, target: Path) -> None:
    """Rename, but never onto a file: a link fails where a rename would replace."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        source.rename(target)
    else:
        source.unlink()


def _copy_beside(source: Path, target: Path) -> Path:
    if os.path.lexists(target):  # before the work, not after it
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    descriptor, name = tempfile.mkstemp(prefix=".placing-", dir=target.parent)
    copy = Path(name)
    try:
        with open(descriptor, "wb") as writer, source.open("rb") as reader:  # noqa: PTH123 - a descriptor
            shutil.copyfileobj(reader, writer, 1 << 20)
            writer.flush()
            os.fchmod(writer.fileno(), os.fstat(reader.fileno()).st_mode & 0o777)
            os.fsync(writer.fileno())
            written, wanted = os.fstat(writer.fileno()).st_size, os.fstat(reader.fileno()).st_size
        if written != wanted:
            raise OSError(errno.EIO, f"{written} of {wanted} bytes arrived")
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    return copy


def _is_same(source: Path, target: Path) -> bool:
    return not target.is_symlink() and target.is_file() and filecmp.cmp(source, target, shallow=False)


def sync(path: Path) -> None:
    """Have a file or directory written to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _clean(text: str) -> str:
    """Without control characters and invisible ones, such as those that turn the direction of writing."""
    kept = "".join(char for char in text if char.isprintable())
    return unicodedata.normalize("NFC", kept).translate(_FORBIDDEN).strip().rstrip(". ")


def _cut(text: str, max_bytes: int) -> str:
    return text.encode()[:max_bytes].decode("utf-8", "ignore").rstrip(". ")
