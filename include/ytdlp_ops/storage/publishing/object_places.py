"""Destinations behind fsspec: S3 and other object stores, and what else it knows."""

from __future__ import annotations

import contextlib
import hashlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import Refusal
from include.ytdlp_ops.storage.publishing.places import GROWING, Occupied, Published, blocks_of, digest_of

PART_BYTES = 8 << 20
"""Larger files are sent in parts of at least this size."""

_MAX_PARTS = 9000  # S3 takes 10,000
_S3 = ("s3", "s3a")
# an object is there whole or not at all; elsewhere a file grows under another name
_ATOMIC = (*_S3, "gs", "gcs", "az", "abfs", "abfss", "adl")


@dataclass(frozen=True)
class _Sent:
    bytes: int
    sha256: str
    etags: frozenset[str]


class ObjectPlace:
    """
    A prefix in a file system of fsspec's.

    :param fs: the file system.
    :param root: bucket and prefix.
    """

    def __init__(self, fs: Any, root: str, protocol: str) -> None:
        self._fs, self._root, self._protocol = fs, root.rstrip("/"), protocol

    @property
    def name(self) -> str:
        """Its URI."""
        return f"{self._protocol}://{self._root.lstrip('/')}"

    def put(self, source: Path, name: PurePosixPath, *, replace: bool) -> Published:
        """
        As `Place.put`; each byte is read once here, and once more there where the store keeps no checksum of ours.

        :raises Occupied: if another object has the name, and is not to be replaced.
        :raises Refusal: `CONFIGURATION` (credentials, bucket), `NETWORK` (slow, cut, damaged), `LOCAL_IO`.
        """
        key = f"{self._root}/{name}"
        uri = f"{self.name}/{name}"
        with _told(self.name):
            if there := self._info(key):
                if there["size"] == source.stat().st_size and self._digest(key) == (digest := digest_of(source)):
                    return Published(uri, there["size"], digest)
                if not replace:
                    raise Occupied
            sent = self._send(source, key, replace)
            self._verify(key, sent)
        return Published(uri, sent.bytes, sent.sha256)

    def _send(self, source: Path, key: str, replace: bool) -> _Sent:
        if self._protocol in _ATOMIC:
            exclusive = not replace and self._protocol in _S3
            return self._upload(source, key, "xb" if exclusive else "wb")
        growing = f"{self._root}/{GROWING}/{uuid.uuid4().hex}"
        self._fs.makedirs(growing.rpartition("/")[0], exist_ok=True)
        try:
            sent = self._upload(source, growing, "wb")
            self._fs.makedirs(key.rpartition("/")[0], exist_ok=True)
            self._fs.mv(growing, key)
        except BaseException:
            with contextlib.suppress(Exception):  # the first error is the one to tell
                self._fs.rm_file(growing)
            raise
        return sent

    def _upload(self, source: Path, key: str, mode: str) -> _Sent:
        size = source.stat().st_size
        part = max(PART_BYTES, -(-size // _MAX_PARTS))
        whole, md5, parts = hashlib.sha256(), hashlib.md5(usedforsecurity=False), []
        # in parts it is there only at the commit; in one go it is there at once
        several = size > part
        file = self._fs.open(key, mode, block_size=part, autocommit=not several)
        try:
            for block in blocks_of(source, part):
                whole.update(block)
                md5.update(block)
                parts.append(hashlib.md5(block, usedforsecurity=False).digest())
                file.write(block)
            file.close()
            if several:
                file.commit()
        except BaseException:
            _abandon(file)
            raise
        joined = hashlib.md5(b"".join(parts), usedforsecurity=False).hexdigest()
        return _Sent(size, whole.hexdigest(), frozenset({md5.hexdigest(), f"{joined}-{len(parts)}"}))

    def _verify(self, key: str, sent: _Sent) -> None:
        """What the store says it has; its checksum is that of the bytes sent, else they are read back."""
        there = self._info(key) or {"size": None}
        etag = str(there.get("ETag") or "").strip('"')
        if there["size"] == sent.bytes and (etag in sent.etags or self._digest(key) == sent.sha256):
            return
        # not removed: where a store knows no conditional writes, it may be another's, that came at the same time
        what = f"{key!r} holds {there['size']} bytes that are not the {sent.bytes} bytes that were sent"
        raise Refusal(Code.NETWORK, what)

    def _info(self, key: str) -> dict[str, Any] | None:
        self._fs.invalidate_cache()
        try:
            found: dict[str, Any] = self._fs.info(key)
        except FileNotFoundError:
            return None
        return found

    def _digest(self, key: str) -> str:
        digest = hashlib.sha256()
        with self._fs.open(key, "rb", block_size=PART_BYTES, cache_type="readahead") as file:
            while block := file.read(PART_BYTES):
                digest.update(block)
        return digest.hexdigest()


def _abandon(file: Any) -> None:
    """fsspec would send the rest of a broken file when it is closed or collected."""
    with contextlib.suppress(Exception):  # the first error is the one to tell
        file.discard()
    file.buffer, file.closed = None, True


@contextlib.contextmanager
def _told(name: str) -> Iterator[None]:
    """Errors of the store, with what they mean for the item; their own texts may hold secrets."""
    try:
        yield
    except (Refusal, Occupied):
        raise
    except FileExistsError:  # it came while ours was being sent
        raise Occupied from None
    except Exception as error:  # noqa: BLE001 - each store has its own
        kind = type(error).__name__
        if isinstance(error, PermissionError) or "Credential" in kind:
            what = f"{name!r} refuses this host's credentials ({kind}); mend the destination's connection"
            raise Refusal(Code.CONFIGURATION, what) from None
        if isinstance(error, FileNotFoundError):
            what = f"{name!r} has no such bucket or container; make it, or mend the destination's path"
            raise Refusal(Code.CONFIGURATION, what) from None
        raise Refusal(Code.NETWORK, f"{name!r} did not take the file ({kind}); it is tried again") from None
