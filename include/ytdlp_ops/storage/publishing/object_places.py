"""Destinations behind fsspec: S3 and other object stores, and what else it knows."""

from __future__ import annotations

import contextlib
import hashlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import Refusal
from include.ytdlp_ops.local_io import local_failure
from include.ytdlp_ops.storage.publishing.places import GROWING, Occupied, Published, blocks_of, digest_of

PART_BYTES = 8 << 20
"""Larger files are sent in parts of at least this size."""

DEAD_UPLOAD_SECONDS = 100.0
"""An upload in parts to which none came for so long is a dead attempt's, whose lease has ended."""

_MAX_PARTS = 9000  # S3 takes 10,000
_S3 = ("s3", "s3a")
# an object is there whole or not at all; elsewhere a file grows under another name
_ATOMIC = (*_S3, "gs", "gcs", "az", "abfs", "abfss", "adl")
# S3's words and botocore's for what no later attempt changes
_MISCONFIGURED = frozenset(
    {
        *("InvalidBucketName", "PermanentRedirect", "301", "AuthorizationHeaderMalformed", "InvalidToken"),
        *("TokenRefreshRequired", "ParamValidationError", "NoRegionError", "InvalidRegionError", "TypeError"),
    }
)


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
    :param conn_id: the Airflow connection that holds its credentials, for messages.
    """

    def __init__(self, fs: Any, root: str, protocol: str, conn_id: str | None = None) -> None:
        self._fs, self._root, self._protocol, self._conn_id = fs, root.rstrip("/"), protocol, conn_id

    @property
    def name(self) -> str:
        """Its URI."""
        return f"{self._protocol}://{self._root.lstrip('/')}"

    def check(self) -> None:
        """As `Place.check`; nothing is asked of a store before there is something to send."""

    def has(self, name: PurePosixPath) -> bool:
        """As `Place.has`; raises as `put`."""
        with self._told():
            return self._info(f"{self._root}/{name}") is not None

    def put(self, source: Path, name: PurePosixPath, *, replace: bool) -> Published:
        """
        As `Place.put`; each byte is read once here, and once more there where the store keeps no checksum of ours.

        :raises Occupied: if another object has the name, and is not to be replaced.
        :raises Refusal: `CONFIGURATION` (credentials, bucket), `NETWORK` (slow, cut, damaged), `LOCAL_IO`.
        """
        key = f"{self._root}/{name}"
        uri = f"{self.name}/{name}"
        size = _size_of(source)
        with self._told():
            made = self._found(source, size, key, uri, replace) or self._sent(source, key, uri, replace)
        if size > PART_BYTES and self._protocol in _S3:
            self._abort_dead_uploads(key)
        return made

    def _found(self, source: Path, size: int, key: str, uri: str, replace: bool) -> Published | None:
        """What is there already, if it is this file."""
        if not (there := self._info(key)):
            return None
        if there["size"] == size and self._digest(key) == (digest := digest_of(source)):
            return Published(uri, size, digest)
        if not replace:
            raise Occupied
        return None

    def _sent(self, source: Path, key: str, uri: str, replace: bool) -> Published:
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
        size = _size_of(source)
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

    def _abort_dead_uploads(self, key: str) -> None:
        """What killed attempts sent of this object: S3 keeps it, and has it paid for, until it is told."""
        bucket, name, _ = self._fs.split_path(key)
        with contextlib.suppress(Exception):  # the file is there; who may not list uploads has a lifecycle rule
            found = self._fs.call_s3("list_multipart_uploads", Bucket=bucket, Prefix=name).get("Uploads", ())
            for upload in (each for each in found if each["Key"] == name):
                which = {"Bucket": bucket, "Key": name, "UploadId": upload["UploadId"]}
                idle = datetime.now(UTC) - max([upload["Initiated"], *self._times_of_parts(which)])
                if idle.total_seconds() >= DEAD_UPLOAD_SECONDS:
                    self._fs.call_s3("abort_multipart_upload", **which)

    def _times_of_parts(self, which: dict[str, str]) -> Iterator[datetime]:
        page: dict[str, Any] = {"IsTruncated": True, "NextPartNumberMarker": 0}
        while page["IsTruncated"]:
            page = self._fs.call_s3("list_parts", **which, PartNumberMarker=page["NextPartNumberMarker"])
            yield from (part["LastModified"] for part in page.get("Parts", ()))

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of the store, with what they mean for the item; their own texts may hold secrets."""
        try:
            yield
        except (Refusal, Occupied):
            raise
        except FileExistsError:  # it came while ours was being sent
            raise Occupied from None
        except Exception as error:  # noqa: BLE001 - each store has its own
            raise self._refusal(error) from None

    def _refusal(self, error: Exception) -> Refusal:
        said = _said_by(error)
        mend = f"the connection {self._conn_id!r}" if self._conn_id else "its credentials, or name a conn_id"
        if isinstance(error, PermissionError) or "Credential" in said:
            what = f"the destination {self.name!r} refuses this host's credentials ({said}); mend {mend}"
        elif isinstance(error, FileNotFoundError) and said != "NoSuchUpload":
            what = f"the destination {self.name!r} has no such bucket or container; make it, or mend its path"
        elif said in _MISCONFIGURED:
            what = f"the destination {self.name!r} can't be used ({said}); mend its path, its options or {mend}"
        else:
            by = f" by the connection {self._conn_id!r}" if self._conn_id else ""
            what = f"the destination {self.name!r} did not take the file{by} ({said}); it is tried again"
            return Refusal(Code.NETWORK, what)
        return Refusal(Code.CONFIGURATION, what)


def _said_by(error: Exception) -> str:
    """The store's own word for an error, such as ``SlowDown``; else its class."""
    answer = getattr(error.__cause__ or error, "response", None)
    code = answer.get("Error", {}).get("Code") if isinstance(answer, dict) else None
    return str(code or type(error).__name__)


def _size_of(source: Path) -> int:
    try:
        return source.stat().st_size
    except OSError as error:
        raise local_failure(error, f"{str(source)!r} can't be read") from None


def _abandon(file: Any) -> None:
    """fsspec would send the rest of a broken file when it is closed or collected."""
    with contextlib.suppress(Exception):  # the first error is the one to tell
        file.discard()
    file.buffer, file.closed = None, True
