"""What an operator asks of the queues: one validated request, whoever asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.queues.filtering import HOUR_MS, Filter, pattern
from include.ytdlp_ops.queues.keys import Place, QueueKeys, Stage
from include.ytdlp_ops.queues.listing import INBOX
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.surveying import installation_exists

if TYPE_CHECKING:
    from redis import Redis

ALL = "all"
WHERE = (INBOX, *Place)
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class Files(Protocol):
    """Where lists, backups and exports go, and imports come from."""

    def create(self, name: str) -> IO[bytes]:
        """A new file; one of that name is never overwritten."""

    def open(self, name: str) -> IO[bytes]:
        """A file to read."""

    def address(self, name: str) -> str:
        """What a person finds the file by."""


class LocalFiles:
    """
    Files in one directory of this host.

    :param directory: made when first needed, for its owner alone.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def create(self, name: str) -> IO[bytes]:
        """See `Files`."""
        path = self._path(name)

        def made() -> IO[bytes]:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            return path.open("xb")

        return self._at(name, made)

    def open(self, name: str) -> IO[bytes]:
        """See `Files`."""
        path = self._path(name)
        return self._at(name, lambda: path.open("rb"))

    def address(self, name: str) -> str:
        """See `Files`."""
        return str(self._path(name))

    def _path(self, name: str) -> Path:
        if not _FILE_NAME.fullmatch(name):
            raise BadInput(
                f"file {name!r} must be a bare name of A-Z a-z 0-9 . _ - (it lies in {self._directory})"
            )
        return self._directory / name

    def _at(self, name: str, action: Callable[[], IO[bytes]]) -> IO[bytes]:
        try:
            return action()
        except FileExistsError:
            raise BadInput(f"file {name!r} exists in {self._directory}; give another name") from None
        except OSError as error:
            raise BadInput(f"file {name!r} in {self._directory}: {error.strerror}") from None


class Request(BaseModel):
    """
    An action with all that it may need.

    :param action: one of `managing.ACTIONS`.
    :param stage: a stage, or ``all``.
    :param source: ``inbox`` or a place: where the items are.
    :param target: the place to move them to.
    :param item: for show and cancel: a URL, a YouTube id or an item id.
    :param limit: most items to list or change.
    :param cursor: for list: where the last page ended.
    :param file: the name of a file to write or read; written under a name of its own if not given.
    :param file_format: of a list: ``jsonl`` or ``csv``.
    :param confirm: for clear: the key's name.
    :param because: kept with what is cancelled, moved or paused.
    :param dry_run: say what would be done, and do nothing.
    :param queue_base: the installation, if not the default one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, str_max_length=4096)

    action: str = "inspect"
    stage: str = ALL
    source: str = Place.FAIL.value
    target: str = Place.SKIPPED.value
    item: str = ""
    code: str = ""
    reason: str = ""
    url_pattern: str = ""
    host: str = ""
    egress: str = ""
    tag: str = ""
    older_than_hours: float | None = Field(default=None, ge=0)
    newer_than_hours: float | None = Field(default=None, ge=0)
    limit: int = Field(default=1000, ge=1)
    cursor: str = "0"
    file: str = ""
    file_format: str = "jsonl"
    confirm: str = ""
    because: str = "by hand"
    dry_run: bool = True
    queue_base: str | None = None

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """
        A request from a form or a command line; what is None or missing keeps its default.

        :raises BadInput: names the field, its value and what is wrong.
        """
        try:
            request = cls.model_validate({name: value for name, value in fields.items() if value is not None})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise BadInput(f"{'.'.join(map(str, first['loc']))} {first['input']!r}: {first['msg']}") from None
        _refuse_other("stage", request.stage, (*Stage, ALL))
        _refuse_other("source", request.source, WHERE)
        _refuse_other("target", request.target, tuple(Place))
        _refuse_other("file_format", request.file_format, ("jsonl", "csv"))
        request.filter()
        return request

    def filter(self) -> Filter:
        """Which items are meant."""
        return Filter(
            code=self.code,
            reason=self.reason,
            url=pattern(self.url_pattern),
            host=self.host,
            egress=self.egress,
            tag=self.tag,
            older_than_ms=None if self.older_than_hours is None else round(self.older_than_hours * HOUR_MS),
            newer_than_ms=None if self.newer_than_hours is None else round(self.newer_than_hours * HOUR_MS),
        )

    def queues(self, client: Redis) -> list[Queue]:
        """
        The queues of the stages that are meant.

        :raises BadInput: for a base that is not an installation in this Redis.
        """
        stages = list(Stage) if self.stage == ALL else [self.stage]
        for stage in stages:
            QueueKeys.of(stage, self.queue_base)
        if self.queue_base and self.action != "import" and not installation_exists(client, self.queue_base):
            raise BadInput(
                f"queue_base {self.queue_base!r} has no key in this Redis: look for a typing error, "
                "or for the wrong connection"
            )
        return [Queue(client, stage, queue_base=self.queue_base) for stage in stages]

    def queue(self, client: Redis) -> Queue:
        """
        The queue of the one stage that is meant.

        :raises BadInput: if it is ``all``.
        """
        if self.stage == ALL:
            raise BadInput(f"action {self.action!r} needs one stage, not 'all': give one of {', '.join(Stage)}")
        return self.queues(client)[0]


def _refuse_other(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise BadInput(f"{name} {value!r} is none of {', '.join(known)}")
