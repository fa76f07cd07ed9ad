"""What is written beside a media file: its description, and its info without credentials."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from include.ytdlp_ops.local_io import local_failure

DESCRIPTION, INFO_JSON = ".description", ".info.json"


def write_description(public: dict[str, Any], directory: Path) -> Path | None:
    """
    Write the description; None if there is none.

    :param public: from `public_info`.
    :raises DownloadFailed: `DISK` or `LOCAL_IO`.
    """
    text = public.get("description")
    return _written(directory / f"sidecar{DESCRIPTION}", text) if text else None


def write_info_json(public: dict[str, Any], directory: Path) -> Path:
    """
    Write the info, in one spelling, so that the same info is the same file.

    :param public: from `public_info`.
    :raises DownloadFailed: `DISK` or `LOCAL_IO`.
    """
    text = json.dumps(public, ensure_ascii=False, indent=1, sort_keys=True)
    return _written(directory / f"sidecar{INFO_JSON}", f"{text}\n")


def _written(path: Path, text: str) -> Path:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise local_failure(error, f"{str(path)!r} can't be written") from None
    return path
