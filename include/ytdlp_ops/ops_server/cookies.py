"""Accounts' cookie files: each run gets its own copy, and what the site rotated is written back."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
from pathlib import Path

log = logging.getLogger(__name__)

SIGNED_IN = "LOGIN_INFO"
"""YouTube's cookie; it takes it away from a session that it has ended."""


class CookieCopies:
    """
    Copies of cookie files for runs, in a folder of their own that only this user may look into.

    yt-dlp writes a cookie file anew when it ends, also where the site has just signed the account out.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None

    def close(self) -> None:
        """Remove the folder."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def lend(self, cookies: Path) -> Path:
        """
        A copy for one run.

        :raises OSError: if the file can't be read.
        """
        self._folder = self._folder or Path(tempfile.mkdtemp(prefix="ytdlp-ops-cookies-"))
        descriptor, name = tempfile.mkstemp(dir=self._folder)  # mode 0600
        with os.fdopen(descriptor, "wb") as copy:
            copy.write(cookies.read_bytes())
        return Path(name)

    def take_back(self, copy: Path, cookies: Path, *, ended: bool) -> bool:
        """
        Remove a copy, and write back what has changed in it.

        :param ended: whether its run came to its end; what a killed one leaves may be half a file.
        :return: whether the account is still signed in. The cookies of one that is not are left as they were.
        """
        try:
            if not ended:
                return True
            before, after = cookies.read_text("utf-8"), copy.read_text("utf-8")
            if is_signed_in(before) and not is_signed_in(after):
                return False
            if _names(after) and before != after:
                _write(cookies, after)
        except (OSError, UnicodeDecodeError) as error:
            log.warning(
                "cookies %s can't be written back: %s; they last until the site rotates them", cookies, error
            )
        finally:
            copy.unlink(missing_ok=True)
        return True


def is_signed_in(text: str) -> bool:
    """Whether cookies in Netscape's format hold a sign-in at YouTube that has not expired."""
    now = time.time()
    fields = (line.split("\t") for line in text.splitlines() if line.count("\t") >= 6)
    return any(each[5] == SIGNED_IN and (each[4] in ("", "0") or _number(each[4]) > now) for each in fields)


def _names(text: str) -> list[str]:
    return [line.split("\t")[5] for line in text.splitlines() if line.count("\t") >= 6]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _write(path: Path, text: str) -> None:
    """At once or not at all, with the mode that the file has."""
    growing = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(growing, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        growing.chmod(path.stat().st_mode & 0o777)
        growing.replace(path)
    except BaseException:
        growing.unlink(missing_ok=True)
        raise
