"""A live stream as its playlist shows it: each time it is asked for, one segment more."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.media_site import MediaSite

HEADER, CHUNKS = "init.m4s", [f"chunk-{number}.m4s" for number in range(1, 9)]


@dataclass
class Live:
    """
    A stream of `make_segments`' files, one second each.

    :param names: its segments.
    :param first: number of the first one.
    :param window: as many are listed, the newest; 0: all (an EVENT).
    :param ends: whether the last one is followed by the end.
    :param head: further lines.
    :param listed: how many there are now.
    """

    names: list[str] = field(default_factory=lambda: list(CHUNKS))
    first: int = 0
    window: int = 0
    ends: bool = True
    head: str = f'#EXT-X-MAP:URI="{HEADER}"\n'
    listed: int = 1

    def playlist(self) -> str:
        """Now; the next time there is more."""
        names = self.names[: self.listed]
        gone = max(0, len(names) - self.window) if self.window else 0
        over = self.ends and self.listed > len(self.names)
        self.listed += 1
        return "".join(
            [
                f"#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:0\n#EXT-X-MEDIA-SEQUENCE:{self.first + gone}\n",
                self.head,
                *(f"#EXTINF:1.0,\n{name}\n" for name in names[gone:]),
                "#EXT-X-ENDLIST\n" if over else "",
            ]
        )


def is_on(site: MediaSite, live: Live, name: str = "live.m3u8") -> str:
    """Have a site show it; where."""
    site.made[name] = live.playlist
    return site.url(name)


def whole(folder: Path, names: list[str] | None = None) -> bytes:
    """The header and the segments, as a recording holds them."""
    return b"".join((folder / name).read_bytes() for name in [HEADER, *(CHUNKS if names is None else names)])
