"""
Infos between auth and dl, at a URI that a job carries.

An info is a credential: it is kept unreadable to others, is deleted with its item, and shows in no log, repr or
error. What is stored is the info.json that yt-dlp would load, with our own key beside its fields::

    {"id": …, "formats": […], "ytdlp_ops": {"proxy": …}}
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import BadInput, ConfigurationError, DownloadFailed
from include.ytdlp_ops.local_io import local_failure

MAX_INFO_BYTES = 16 << 20
REDIS_PREFIX = "ytdlp_ops:info:"

_OUR_KEY = "ytdlp_ops"
KEEP_SECONDS = 7 * 24 * 3600
"""The longest that an info is kept; so is one whose end nobody knows: a video's, until its last format came."""

_MARGIN_SECONDS = 600
_FILE_NAME = re.compile(r"[0-9a-f]{32}\.json")
_TEMPORARY = ".new-"


@dataclass(frozen=True)
class StoredInfo:
    """
    What came out of the store; neither field shows in its repr.

    :param info: a loadable info dict.
    :param proxy: the egress that extracted; media URLs are bound to it.
    """

    info: dict[str, Any] = field(repr=False)
    proxy: str | None = field(repr=False)


class InfoStore(ABC):
    """Keeps infos until their items end. Every URI is this store's own, as `put` gave it."""

    @abstractmethod
    def put(self, name: str, info: dict[str, Any], *, proxy: str | None, expires_at: float | None) -> str:
        """
        Keep an info, in place of what had that name; the URI under which to find it.

        :param expires_at: unix seconds; when its media URLs end. It is kept for `KEEP_SECONDS` at most.
        :raises BadInput: if the info is no JSON, or has more than 16 MB.
        """

    @abstractmethod
    def get(self, uri: str) -> StoredInfo:
        """
        :raises BadInput: if the URI isn't this store's.
        :raises DownloadFailed: `LOCAL_INPUT` (to be extracted again) if it is gone or damaged.
        """

    @abstractmethod
    def delete(self, uri: str) -> None:
        """
        Forget an info; missing is fine.

        :raises BadInput: if the URI isn't this store's.
        """

    @abstractmethod
    def trim(self, over_for_seconds: float) -> int:
        """
        Delete what no item has come for, since a process died between storing it and its item's end; how many.

        :param over_for_seconds: how long ago its end was. What waits longer than its media URLs last is extracted
            again anyway.
        :raises DownloadFailed: `LOCAL_IO`.
        """


def open_info_store(uri: str, *, redis: Any = None) -> InfoStore:
    """
    The store that a setting names: ``file:///dir``, or ``redis:`` for fleets without a shared disk.

    :param redis: the client for ``redis:``.
    :raises ConfigurationError: names the URI and the way out.
    """
    parts = urlsplit(uri)
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return FileInfoStore(Path(unquote(parts.path)))
    if uri == "redis:":
        if redis is None:
            raise ConfigurationError("the info store is 'redis:', and no Redis client was given")
        return RedisInfoStore(redis)
    raise ConfigurationError(
        f"the info store {uri!r} is unknown; give 'file:///an/absolute/directory' or 'redis:'"
    )


class FileInfoStore(InfoStore):
    """
    One file for each info, mode 0600, in a directory of mode 0700, named by a hash.

    Its time of modification is the end of its media URLs, mostly in the future: `trim` goes by it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def put(self, name: str, info: dict[str, Any], *, proxy: str | None, expires_at: float | None) -> str:
        content = _document(info, proxy)
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        path = self._directory / f"{digest}.json"
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_by_rename(path, content, _end_of(expires_at))
        except OSError as error:
            raise local_failure(error, f"the info can't be kept in {str(self._directory)!r}") from None
        return path.as_uri()

    def get(self, uri: str) -> StoredInfo:
        path = self._path(uri)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:  # noqa: PTH123 - a Path can't be opened without following links
                content = file.read(MAX_INFO_BYTES + 1)
        except FileNotFoundError as error:
            if not self._directory.is_dir():  # this host's trouble, not the item's
                raise local_failure(error, f"the info store {str(self._directory)!r} is not there") from None
            raise _extract_again(uri, "is gone") from None
        except OSError as error:
            raise local_failure(error, f"{str(path)!r} can't be read") from None
        return _stored(uri, content)

    def delete(self, uri: str) -> None:
        path = self._path(uri)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise local_failure(error, f"{str(path)!r} can't be removed") from None

    def trim(self, over_for_seconds: float) -> int:
        before, trimmed = time.time() - over_for_seconds, 0
        try:
            for path in self._directory.iterdir():
                ours = _FILE_NAME.fullmatch(path.name) or path.name.startswith(_TEMPORARY)
                with contextlib.suppress(FileNotFoundError):  # its item has just ended
                    if ours and path.lstat().st_mtime < before:
                        path.unlink()
                        trimmed += 1
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise local_failure(error, f"{str(self._directory)!r} can't be cleaned") from None
        return trimmed

    def _path(self, uri: str) -> Path:
        """The file's path, built of its name alone: nothing in a URI leads out of the directory."""
        name = uri.rsplit("/", 1)[-1]
        path = self._directory / name
        if not _FILE_NAME.fullmatch(name) or uri != path.as_uri():
            raise BadInput(f"{uri!r} is not in the info store {self._directory.as_uri()!r}; is it another host's?")
        return path


class RedisInfoStore(InfoStore):
    """One key for each info, which ends with its media URLs."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def put(self, name: str, info: dict[str, Any], *, proxy: str | None, expires_at: float | None) -> str:
        left = int(_end_of(expires_at) - time.time()) + _MARGIN_SECONDS
        key = REDIS_PREFIX + name
        self._client.set(key, _document(info, proxy), ex=max(left, _MARGIN_SECONDS))
        return f"redis:{key}"

    def get(self, uri: str) -> StoredInfo:
        content = self._client.get(self._key(uri))
        if content is None:
            raise _extract_again(uri, "is gone")
        return _stored(uri, content)

    def delete(self, uri: str) -> None:
        self._client.delete(self._key(uri))

    def trim(self, over_for_seconds: float) -> int:  # noqa: ARG002 - keys end by themselves
        return 0

    def _key(self, uri: str) -> str:
        key = uri.removeprefix("redis:")
        if key == uri or not key.startswith(REDIS_PREFIX):
            raise BadInput(f"{uri!r} is not in the info store; its URIs begin with 'redis:{REDIS_PREFIX}'")
        return key


def _end_of(expires_at: float | None) -> float:
    """When an info ends, unix seconds; whatever a server says, not later than `KEEP_SECONDS` from now."""
    latest = time.time() + KEEP_SECONDS
    return latest if expires_at is None else max(0.0, min(latest, expires_at))


def _document(info: dict[str, Any], proxy: str | None) -> bytes:
    try:
        # ASCII: a title may hold half a surrogate pair, which UTF-8 has no bytes for
        content = json.dumps({**info, _OUR_KEY: {"proxy": proxy}}).encode("ascii")
    except (TypeError, ValueError) as error:
        raise BadInput(f"the info is no JSON ({type(error).__name__}); keep a sanitised one") from None
    if len(content) > MAX_INFO_BYTES:
        raise BadInput(f"the info has {len(content)} bytes; {MAX_INFO_BYTES} may be kept")
    return content


def _stored(uri: str, content: bytes | str) -> StoredInfo:
    try:
        info = json.loads(content)
        proxy = info.pop(_OUR_KEY)["proxy"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _extract_again(uri, "is damaged") from None
    return StoredInfo(info, proxy)


def _extract_again(uri: str, what: str) -> DownloadFailed:
    # the item's own trouble, not this host's: the next attempt extracts again
    return DownloadFailed(Code.LOCAL_INPUT, f"the info {uri!r} {what}", outcome=Outcome.RETRY)


def _write_by_rename(path: Path, content: bytes, modified: float) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=_TEMPORARY, dir=path.parent)  # mode 0600
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - mkstemp gives a descriptor
            file.write(content)
            file.flush()
            os.utime(file.fileno(), (modified, modified))
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
