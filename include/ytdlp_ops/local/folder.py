"""The data folder of one stack: its places, its lock, and its secrets."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from include.ytdlp_ops.errors import ConfigurationError

REPOSITORY = Path(__file__).resolve().parents[3]
NEEDED_BYTES = (1 << 30) + (256 << 20)
"""Free space to start with: what the databases take, and what a download leaves free by default."""


class Secrets(BaseModel):
    """Passwords and keys, made at the first start and kept."""

    model_config = ConfigDict(extra="forbid")

    redis_password: str = Field(min_length=16, repr=False)
    ops_server_token: str = Field(min_length=16, repr=False)
    admin_password: str = Field(min_length=8, repr=False)
    fernet_key: str = Field(min_length=44, repr=False)
    jwt_secret: str = Field(min_length=64, repr=False)
    api_secret_key: str = Field(min_length=16, repr=False)

    @classmethod
    def make(cls) -> Self:
        """New ones."""
        return cls(
            redis_password=secrets.token_urlsafe(24),
            ops_server_token=secrets.token_urlsafe(24),
            admin_password=secrets.token_urlsafe(12),
            fernet_key=base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            jwt_secret=secrets.token_urlsafe(64),
            api_secret_key=secrets.token_urlsafe(32),
        )


@dataclass(frozen=True)
class Folder:
    """
    Where the stack keeps what outlives it.

    :param root: absolute; only its owner may look into it.
    """

    root: Path

    @property
    def logs(self) -> Path:
        """One log for each part."""
        return self.root / "logs"

    @property
    def airflow(self) -> Path:
        """AIRFLOW_HOME."""
        return self.root / "airflow"

    @property
    def passwords(self) -> Path:
        """Passwords of the UI's users."""
        return self.root / "passwords.json"

    @property
    def postgres(self) -> Path:
        """PostgreSQL's files."""
        return self.root / "pg"

    @property
    def redis(self) -> Path:
        """Valkey's append-only file."""
        return self.root / "redis"

    @property
    def site(self) -> Path:
        """The sample site's media and certificates."""
        return self.root / "site"

    @property
    def run(self) -> Path:
        """What the parts say about themselves while they run; empty at each start."""
        return self.root / "run"

    @property
    def output(self) -> Path:
        """Published files."""
        return self.root / "output"

    @property
    def work(self) -> Path:
        """Files that grow; on the same file system as `output`."""
        return self.root / "work"

    @property
    def staging(self) -> Path:
        """Verified formats that wait for their video's others."""
        return self.root / "staging"

    @property
    def infos(self) -> Path:
        """Info dicts between auth and dl."""
        return self.root / "infos"

    @property
    def _files(self) -> tuple[Path, ...]:
        return (self.output, self.work, self.staging, self.infos)

    def log(self, name: str) -> Path:
        """The log of one part."""
        return self.logs / f"{name}.log"

    def lock(self) -> int:
        """
        Take the folder for this process, until the descriptor that is returned is closed.

        :raises FolderInUse: if another stack runs on it.
        :raises ConfigurationError: if it can't be written.
        """
        with self._writing():
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.root.chmod(0o700)
            descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip()
            os.close(descriptor)
            raise FolderInUse(
                f"another stack (process {holder or 'unknown'}) runs on {self.root}; "
                "end it, or give another folder with --data-dir"
            ) from None
        os.truncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        return descriptor

    def prepare(self, *, needed_bytes: int = NEEDED_BYTES) -> None:
        """
        Make what is missing; the caller holds the lock.

        :raises ConfigurationError: if it can't be written, or the file system is too full.
        """
        kept = (self.logs, self.airflow, self.redis, self.site, self.run, *self._files)
        with self._writing():
            shutil.rmtree(self.run, ignore_errors=True)
            for folder in kept:
                folder.mkdir(mode=0o700, exist_ok=True)
            free = shutil.disk_usage(self.root).free
        if free < needed_bytes:
            raise ConfigurationError(
                f"{self.root} has {free >> 20} MiB free and {needed_bytes >> 20} MiB are needed; "
                "make room, or give another folder with --data-dir"
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ConfigurationError(
                f"the data folder {self.root} can't be used: {error.strerror} ({error.filename}); "
                "give one that you may write with --data-dir"
            ) from None

    def secrets(self) -> Secrets:
        """
        The secrets of this folder, made when there are none.

        :raises ConfigurationError: if the file can't be read as what was written; it is never made anew, since
            what lies in the databases is encrypted with it.
        """
        path = self.root / "secrets.json"
        try:
            return Secrets.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            made = Secrets.make()
            write_private(path, made.model_dump())
            return made
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            wrong = f"{'.'.join(str(part) for part in first['loc']) or 'the file'}: {first['msg']}"
        except OSError as error:
            wrong = str(error.strerror)
        raise ConfigurationError(
            f"{path} is damaged ({wrong}); put the old one back, or remove the folder {self.root} to start afresh"
        )


class FolderInUse(ConfigurationError):
    """Another stack runs on this folder."""


def write_private(path: Path, content: Any) -> None:
    """Write JSON that only the owner may read, at once or not at all."""
    growing = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(growing, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
        json.dump(content, stream, indent=2)
        stream.write("\n")
    growing.rename(path)
