"""What lies on disk: the usual media at once, everything else when it is first asked for."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable
from pathlib import Path

from tests.offline_youtube.media import ITAGS, Media, by_ffmpeg, made_once, make_media
from tests.offline_youtube.shapes import SHAPES


class Stock:
    """
    The site's files.

    :param folder: they are made here once, and may be shared by many processes.
    """

    def __init__(self, folder: Path) -> None:
        self.usual = made_once(folder / "media", make_media)
        self._more = folder / "more"
        self._lock = threading.Lock()

    def path(self, media: Media) -> Path:
        """A format's file."""
        if ITAGS.get(media.itag) is media:
            return self.usual / media.name
        return self.file(media.name, media.make)

    def content(self, media: Media) -> memoryview:
        """A format's bytes; they are read as they are used."""
        with self.path(media).open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def thumbnail(self, ext: str) -> bytes:
        """A picture, ``jpg`` or ``webp``."""
        name = f"cover.{ext}"
        return self.file(name, lambda target: by_ffmpeg(SHAPES[name], target)).read_bytes()

    def file(self, name: str, make: Callable[[Path], None]) -> Path:
        """The file of this name, in a folder of its own, which is made where it isn't there."""
        with self._lock:  # of several that ask at once, one makes it
            return made_once(self._more / name, lambda folder: make(folder / name)) / name
