"""
``python -m include.ytdlp_ops.diagnosis``: signals in, diagnoses out, one JSON object a line.

Reads ``{"id", "stage", "signal"}``, where the signal is an object with any of ``text``, ``class`` (``A < B``) or
``classes``, ``status``, ``host``, ``errno``, ``playability``, ``warned``, ``countries``, ``media_url``, or a plain
text. Prints ``{"id", "code", "outcome"}``. A line that can't be read is named on stderr, nothing is printed, and
the exit status is 2.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, ValidationError

from include.ytdlp_ops.codes import Outcome
from include.ytdlp_ops.diagnosis.classification import diagnose
from include.ytdlp_ops.diagnosis.values import Playability, Signal

OUTCOME_WORDS: Mapping[Outcome, str] = {
    Outcome.SKIP: "skip-content",
    Outcome.RETRY: "fail-retryable",
    Outcome.ROTATE: "fail-needs-different-proxy-or-account",
    Outcome.DEFER: "defer-until-time",
    Outcome.OPERATOR: "fail-operator",
}


def _none_is_empty(value: Any) -> Any:
    return () if value is None else value


def _class_names(value: Any) -> Any:
    return tuple(name.strip() for name in value.split("<")) if isinstance(value, str) else _none_is_empty(value)


class _Playability(BaseModel):
    status: str | None = None
    reason: str | None = None
    screen: str | None = None
    starts: str | None = None
    client: str | None = None


class _Signal(BaseModel):
    text: str | None = None
    classes: Annotated[tuple[str, ...], BeforeValidator(_class_names)] = Field(
        default=(), validation_alias=AliasChoices("class", "classes")
    )
    status: int | None = None
    host: str | None = Field(default=None, validation_alias=AliasChoices("host", "url_host"))
    errno: int | None = None
    playability: Annotated[tuple[_Playability, ...], BeforeValidator(_none_is_empty)] = ()
    warned: Annotated[tuple[str, ...], BeforeValidator(_none_is_empty)] = ()
    countries: Annotated[tuple[str, ...], BeforeValidator(_none_is_empty)] = ()
    media_url: str | None = None


class _Line(BaseModel):
    id: str | int
    stage: Literal["auth", "download"]
    signal: _Signal | str

    def as_signal(self) -> Signal:
        """The signal as `diagnose` takes it."""
        if isinstance(self.signal, str):
            return Signal(stage=self.stage, text=self.signal)
        said = self.signal.model_dump(exclude={"playability", "text"})
        told = tuple(Playability(**each.model_dump()) for each in self.signal.playability)
        return Signal(stage=self.stage, text=self.signal.text or "", playability=told, **said)


def main(lines: Iterable[bytes]) -> int:
    """Diagnose every line, or none; the exit status."""
    read: list[_Line] = []
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                read.append(_Line.model_validate_json(line))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            sys.stderr.write(f"line {number}: {where + ': ' if where else ''}{first['msg']}\n")
            return 2
    for each in read:
        found = diagnose(each.as_signal())
        said = {"id": each.id, "code": found.code, "outcome": OUTCOME_WORDS[found.outcome]}
        sys.stdout.write(json.dumps(said, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin.buffer))
