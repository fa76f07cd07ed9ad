"""
``python -m include.ytdlp_ops.local [URL …]``: the whole system on this machine, and URLs on their way through it.

Ends with 0 when every URL has ended, failed ones included; 1 when a part died or the time was over; 2 when the
input or the data folder can't be used; 128 and the signal's number when it was told to end before that.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from include.ytdlp_ops.errors import BadInput, ConfigurationError, YtdlpOpsError
from include.ytdlp_ops.local.archiving import Run
from include.ytdlp_ops.local.folder import REPOSITORY
from include.ytdlp_ops.local.stack import Stack
from include.ytdlp_ops.local.telling import Screen
from include.ytdlp_ops.models import UrlItem

SAMPLES = ("ok-00000001", "private-001", "bot-0000001")
"""Videos of the sample site: one plays, one is private, one asks whether this is a bot."""
SAMPLE_FORMATS = "299+140"
_ASK_FOR_THE_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ToldToEnd(BaseException):
    """A signal asked for the end; not an `Exception`, so that nothing takes it for a failure."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and give the exit status."""
    args = _parser().parse_args(arguments)
    for number in _ASK_FOR_THE_END:
        signal.signal(number, _end)
    try:
        return _run(args)
    except ToldToEnd as error:
        return 128 + error.number
    except YtdlpOpsError as error:
        print(f"ytdlp-ops: {error}", file=sys.stderr)
        return 2 if isinstance(error, (BadInput, ConfigurationError)) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m include.ytdlp_ops.local",
        description="Start everything on this machine and archive URLs; without any, three samples.",
    )
    parser.add_argument("urls", nargs="*", metavar="URL", help="an http(s) URL or an 11-character YouTube id")
    parser.add_argument("--once", action="store_true", help="end when every URL has ended")
    parser.add_argument("--data-dir", type=Path, default=REPOSITORY / ".local", help="keeps what outlives a run")
    parser.add_argument("--formats", help="yt-dlp's format selector")
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds for the URLs to end")
    return parser


def _run(args: argparse.Namespace) -> int:
    started = time.monotonic()
    items = _items(args.urls, args.formats)
    screen = Screen(started)
    with Stack(args.data_dir, sample=not args.urls, say=screen.say) as stack:
        try:
            run = Run(stack, screen, started)
            ended = run.archive(items, timeout_seconds=args.timeout)
            if args.once:
                run.settle()
            else:
                _stay(run)
        finally:
            _ignore_signals()
        screen.say("ending")
    return 0 if ended else 1


def _items(urls: Sequence[str], formats: str | None) -> list[UrlItem]:
    if not urls:
        return [UrlItem(url=video_id, formats=formats or SAMPLE_FORMATS) for video_id in SAMPLES]
    wanted = {"formats": formats} if formats else {}
    return [UrlItem.from_inbox(json.dumps({"url": url, **wanted}).encode()) for url in urls]


def _stay(run: Run) -> None:
    """Until a signal, which is then a good end."""
    try:
        run.stay()
    except ToldToEnd:
        return


def _end(number: int, _frame: FrameType | None) -> None:
    _ignore_signals()
    raise ToldToEnd(number)


def _ignore_signals() -> None:
    """The end takes a moment, and must not be cut short."""
    for number in _ASK_FOR_THE_END:
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
