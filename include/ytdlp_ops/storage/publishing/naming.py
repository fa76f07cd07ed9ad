"""Where a published file lies below its destination: yt-dlp's output templates, confined."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from include.ytdlp_ops.errors import ConfigurationError
from include.ytdlp_ops.storage.placing import confined

_MAX_DEPTH = 16


def stem_for(template: str, public: dict[str, Any], ext: str) -> PurePosixPath:
    """
    The relative path that a template gives, without the ending; each part is one plain name of at most 200 bytes.

    Whatever an info holds, the path stays below the destination: values never make directories, only the
    template's own slashes do.

    :param template: yt-dlp's output template, such as ``%(uploader)s/%(title)s [%(id)s].%(ext)s``.
    :param public: from `public_info`.
    :param ext: what ``%(ext)s`` becomes; it is left out at the end.
    :raises ConfigurationError: if the template is none.
    """
    import yt_dlp  # type: ignore[import-untyped]  # ships no types

    fields = {**public, "ext": ext, "title": public.get("title") or public.get("id") or "untitled"}
    with yt_dlp.YoutubeDL({"quiet": True, "cachedir": False}, auto_init=False) as ydl:
        try:
            # not prepare_filename: that one expands ~ and $NAME
            path = ydl.evaluate_outtmpl(template, fields, True)
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigurationError(f"the output template {template!r} can't be filled in: {error}") from None
    parts = [part for part in path.split("/") if part.strip(". ")] or [str(fields["title"])]
    *directories, name = parts
    stem = confined(name.removesuffix(f".{ext}"))
    return PurePosixPath(*(confined(part) for part in directories[:_MAX_DEPTH]), stem)
