"""
Lists, page by page: playlists, channels, handles, galleries; flat, and never more of one in memory than a page.

A cursor holds all that is needed to go on, so that any server may be asked for the next page. For YouTube that is
the continuation of the page that was read last: going on costs one request, however far down it is.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from include.ytdlp_ops.codes import Code
from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.ops_server.jobs import SiteRefused

MAX_LISTS = 32
"""Lists within a list that are still to be read; a channel has four tabs."""
MAX_REDIRECTS = 5


class Cursor(BaseModel):
    """
    Where to go on.

    :param lists: URLs of what is still to be read, the first one next.
    :param read: entries read of the first.
    :param query: YouTube's continuation that brought the page which was read last.
    :param of_page: entries read of that page.
    """

    model_config = ConfigDict(extra="forbid")

    lists: list[str] = Field(min_length=1, max_length=MAX_LISTS + 1)
    read: int = Field(default=0, ge=0)
    query: dict[str, Any] | None = None
    of_page: int = Field(default=0, ge=0)

    def to_text(self) -> str:
        """As callers see it."""
        return base64.urlsafe_b64encode(self.model_dump_json(exclude_defaults=True).encode()).decode()

    @classmethod
    def from_text(cls, text: str) -> Cursor:
        """
        The cursor that was given out.

        :raises BadInput: if it is none.
        """
        try:
            return cls.model_validate(json.loads(base64.urlsafe_b64decode(text.encode("ascii"))))
        except (binascii.Error, UnicodeError, ValidationError, ValueError, RecursionError):
            raise BadInput("cursor: is none of this server's; leave it out to begin anew") from None


def expand(ydl: Any, page: dict[str, Any], tab: Any) -> dict[str, Any]:
    """
    One page of the list that the cursor is at; it ends where that list does, also when it is not full.

    :param page: ``cursor``, as a dict, and ``limit``.
    :param tab: the `resumable_tab_ie` that `ydl` uses.
    :return: ``entries``, ``cursor`` and ``title`` of the answer.
    """
    at, limit = Cursor.model_validate(page["cursor"]), int(page["limit"])
    found = _opened(ydl, at.lists[0])
    entries: list[dict[str, Any]] = []
    lists = at.lists[1:]
    next_at = None
    read = _read(found, at, tab)
    for entry, position in read:
        if _is_list(entry):
            if (url := _url_of(entry)) and len(lists) < MAX_LISTS:
                lists.append(url)
        elif shown := _shown(entry):
            entries.append(shown)
        if len(entries) == limit:
            next_at = position.model_copy(update={"lists": [at.lists[0], *lists]})
            break
    if next_at is None and lists:
        next_at = Cursor(lists=lists)
    return {"entries": entries, "cursor": next_at.to_text() if next_at else None, "title": found.get("title")}


def _opened(ydl: Any, url: str) -> dict[str, Any]:
    """The list behind a URL, its entries not yet read."""
    key = None
    for _ in range(MAX_REDIRECTS):
        found: dict[str, Any] | None = ydl.extract_info(url, download=False, process=False, ie_key=key)
        if not found:
            break
        if found.get("_type") not in ("url", "url_transparent"):
            return found
        url, key = found["url"], found.get("ie_key")
    raise SiteRefused(Code.BAD_URL, f"{url}: leads from one page to another, and to no list")


def _read(found: dict[str, Any], at: Cursor, tab: Any) -> Iterator[tuple[dict[str, Any], Cursor]]:
    """What comes after the cursor, each with the cursor behind it."""
    if found.get("_type", "video") not in ("playlist", "multi_video"):
        yield found, Cursor(lists=at.lists, read=1)  # a video is a list of itself
        return
    entries = found.get("entries") or ()
    tab.resume(at.query)
    read = at.read
    if at.query is None:
        entries = _after(entries, read)
    query, of_page = at.query, 0
    for entry in entries:
        if tab.is_resuming:
            continue
        if tab.query != query:
            query, of_page = tab.query, 0
        of_page += 1
        if at.query is not None and query == at.query and of_page <= at.of_page:
            continue
        read += 1
        if entry:
            yield entry, Cursor(lists=at.lists, read=read, query=query, of_page=of_page if query else 0)


def _after(entries: Any, read: int) -> Iterable[Any]:
    slice_of = getattr(entries, "getslice", None)  # yt-dlp's paged lists need not read what comes before
    return slice_of(read, None) if slice_of else islice(iter(entries), read, None)


def _is_list(entry: dict[str, Any]) -> bool:
    kind = str(entry.get("ie_key") or "")
    return entry.get("_type") in ("playlist", "multi_video") or kind.endswith(("Tab", "Playlist", "Channel"))


def _url_of(entry: dict[str, Any]) -> str | None:
    from yt_dlp.utils import unsmuggle_url  # type: ignore[import-untyped]  # yt-dlp has no types

    url = unsmuggle_url(str(entry.get("webpage_url") or entry.get("url") or ""))[0]
    return url if url.startswith(("http://", "https://")) else None


def _shown(entry: dict[str, Any]) -> dict[str, Any] | None:
    url = _url_of(entry)
    return url and {"url": url, **{name: entry.get(name) for name in ("id", "title", "duration")}}  # type: ignore[return-value]  # None where there is no URL


def resumable_tab_ie() -> Any:
    """
    A `YoutubeTabIE` for `YoutubeDL.add_info_extractor` that can go on from a continuation.

    Its ``query`` is the continuation that brought the page it reads.
    """
    return _resumable_class()()


@cache
def _resumable_class() -> Any:
    from yt_dlp.extractor.youtube import YoutubeTabIE  # type: ignore[import-untyped]  # as above

    class ResumableTabIE(YoutubeTabIE):  # type: ignore[misc]  # as above
        query: dict[str, Any] | None = None
        _resume_at: dict[str, Any] | None = None

        @classmethod
        def ie_key(cls) -> str:
            return "YoutubeTab"

        @property
        def is_resuming(self) -> bool:
            """Whether what is read now lies before the place to go on from."""
            return self._resume_at is not None

        def resume(self, query: dict[str, Any] | None) -> None:
            """Ask for this page instead of the second one."""
            self._resume_at, self.query = query, None

        def _extract_response(self, item_id: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
            if "continuation" in query:
                query, self._resume_at = self._resume_at or query, None
                self.query = query
            return super()._extract_response(item_id, query, *args, **kwargs)

    return ResumableTabIE
