"""
Where downloads grow: ``<work dir>/<item>/<token>/``, one directory for each attempt, never shared.

A new attempt copies what a dead one of the same item left. It never moves it: the dead one may only be asleep, and
would then write into a file of ours.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.downloading.fragments import ledger_of, read_ledger
from include.ytdlp_ops.downloading.infos import PLAIN_PROTOCOLS, protocol_of
from include.ytdlp_ops.errors import DownloadFailed
from include.ytdlp_ops.local_io import local_failure

_VERSION_FILE = "version.json"
_UNSAFE = re.compile(r"[^0-9A-Za-z._-]+")
_FICLONE = 0x40049409  # linux/fs.h: share the blocks, copy on write


def directory_for(work_dir: Path, item_id: str, token: str) -> Path:
    """
    The attempt's own directory, made with mode 0700 if it isn't there.

    Names are ASCII, under 100 bytes, and differ where ids differ.

    :raises DownloadFailed: `DISK` or `LOCAL_IO` if it can't be made.
    """
    directory = work_dir / component(item_id) / component(token)
    try:
        work_dir.mkdir(parents=True, exist_ok=True)
        for made in (directory.parent, directory):
            made.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise local_failure(error, f"the directory {str(directory)!r} can't be made") from None
    return directory


def target_in(directory: Path, fmt: dict[str, Any]) -> Path:
    """The file that a format becomes: named by the format's id, never by a title."""
    return directory / f"{component(fmt['format_id'])}.{fmt['ext']}"


def write_version(directory: Path, fmt: dict[str, Any]) -> None:
    """Say, beside a download that starts, what its bytes belong to."""
    (directory / _VERSION_FILE).write_text(json.dumps(_version(fmt)), encoding="ascii")


def take_over(work_dir: Path, item_id: str, token: str, fmt: dict[str, Any]) -> int:
    """
    Copy the most that a dead attempt at the same bytes left into this attempt's directory.

    Only where size and version agree (``clen=`` and ``lmt=`` of the media URL, else the promised size); of a
    format in fragments, where these are the same, and with the ledger that tells how many of them there are. A
    whole file is taken too, as a part that `is_whole`.

    :param fmt: the format, from `cut_to_format(...)["formats"][0]`.
    :returns: how many bytes; 0 if there was nothing to take.
    :raises DownloadFailed: `DISK` or `LOCAL_IO`.
    """
    own = directory_for(work_dir, item_id, token)
    version, target = _version(fmt), target_in(own, fmt)
    part = target.with_name(f"{target.name}.part")
    if (version["size"] is None and version["fragments"] is None) or part.exists():
        return 0
    others = [other for other in own.parent.iterdir() if other != own and _version_of(other) == version]
    try:
        if version["fragments"] is not None:
            return _take_fragments([other / target.name for other in others], target)
        return _take_most([other / name for other in others for name in (target.name, part.name)], part, version)
    except FileNotFoundError:  # it was no dead attempt, and has just ended
        return 0
    except OSError as error:
        part.unlink(missing_ok=True)
        raise local_failure(error, f"an earlier attempt's bytes can't be copied to {str(part)!r}") from None


def is_whole(target: Path, fmt: dict[str, Any]) -> bool:
    """
    Whether all bytes have come before; a ``.part`` that has them becomes the file.

    To resume a whole one, yt-dlp 2026.10 asks for the range behind its end, twice, and fails on the second 416.

    :param target: the file as it will be called.
    """
    size, part = promised_size(fmt), target.with_name(f"{target.name}.part")
    if part.is_file() and part.stat().st_size == size:
        part.rename(target)
    return target.is_file() and target.stat().st_size == size


def distrust(directory: Path) -> None:
    """
    Have no later attempt take over what any attempt at this item left.

    For bytes that turned out to be none of the media's: they may have come from any of them, and would be copied
    into the next one. Nothing but the version files goes, so an attempt that is still alive is not disturbed.
    """
    for version in directory.parent.glob(f"*/{_VERSION_FILE}"):
        version.unlink(missing_ok=True)


def discard(directory: Path) -> None:
    """Remove an attempt's directory, and its item's if that is empty then; missing is fine."""
    shutil.rmtree(directory, ignore_errors=True)
    with contextlib.suppress(OSError):  # other attempts' directories are not ours to remove
        directory.parent.rmdir()


def check_space(directory: Path, need_bytes: int, reserve_bytes: int) -> None:
    """
    Refuse to begin what the file system can't hold.

    :raises DownloadFailed: `DISK`, naming path, free and needed bytes; `TOO_LARGE` if an empty one could not hold
        it either, which is not the host's fault.
    """
    try:
        total, _, free = shutil.disk_usage(directory)
    except OSError as error:
        raise local_failure(error, f"{str(directory)!r} can't be looked at") from None
    if total < need_bytes:
        what = f"{need_bytes} bytes are promised; the file system of {str(directory)!r} has {total} in all"
        raise DownloadFailed(Code.TOO_LARGE, what)
    if free < need_bytes + reserve_bytes:
        needed = f"{need_bytes} are needed and {reserve_bytes} are to stay free"
        raise DownloadFailed(Code.DISK, f"{str(directory)!r} has {free} bytes free; {needed}")


def component(text: str) -> str:
    """A name for a directory or a file: ASCII, under 100 bytes, and different where texts differ."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{_UNSAFE.sub('_', text)[:64].lstrip('.')}-{digest}"


def promised_size(fmt: dict[str, Any]) -> int | None:
    """Bytes of the whole format: ``clen=`` of its media URL, else what the info says; None if neither does."""
    clen = parse_qs(urlsplit(fmt["url"]).query).get("clen", [""])[0]
    return int(clen) if re.fullmatch(r"[0-9]{1,18}", clen) else fmt.get("filesize")


def _version(fmt: dict[str, Any]) -> dict[str, Any]:
    lmt = parse_qs(urlsplit(fmt["url"]).query).get("lmt", [None])[0]
    plain = protocol_of(fmt) in PLAIN_PROTOCOLS
    return {
        "format_id": fmt["format_id"],
        "size": promised_size(fmt),
        "lmt": lmt,
        "fragments": None if plain else _fragments_digest(fmt),
    }


def _fragments_digest(fmt: dict[str, Any]) -> str:
    """The same where the fragments are the same ones: by their lengths, else by the manifest's own address."""
    if fmt.get("is_live"):
        return "live"  # its segments keep their numbers, wherever the playlist lies
    durations = [part.get("duration") for part in fmt.get("fragments", ())]
    known = durations if durations and None not in durations[1:] else fmt["url"]  # the first may be the header
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]


def _version_of(directory: Path) -> Any:
    try:
        return json.loads((directory / _VERSION_FILE).read_bytes())
    except (OSError, ValueError):  # it has not begun, is being removed, or died while it wrote
        return None


def _take_most(left: list[Path], part: Path, version: dict[str, Any]) -> int:
    sizes = {path: path.stat().st_size for path in left if path.is_file()}
    fitting = [path for path in sizes if sizes[path] <= version["size"]]
    if not fitting:
        return 0
    _copy(max(fitting, key=sizes.__getitem__), part)
    return part.stat().st_size


def _take_fragments(left: list[Path], target: Path) -> int:
    source = max(left, key=lambda path: read_ledger(path)[1], default=None)
    if source is None or not read_ledger(source)[1]:
        return 0
    ledger_of(target).unlink(missing_ok=True)
    # the ledger first: what an attempt that is only asleep appends meanwhile lies behind its end, and is cut off
    _copy(ledger_of(source), ledger_of(target))
    part = source.with_name(f"{source.name}.part")
    _copy(part if part.exists() else source, target.with_name(f"{target.name}.part"))
    return read_ledger(target)[1]


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as reader, target.open("xb") as writer:
        try:
            fcntl.ioctl(writer.fileno(), _FICLONE, reader.fileno())
        except OSError:  # not this file system, or not the same
            shutil.copyfileobj(reader, writer, 1 << 20)
