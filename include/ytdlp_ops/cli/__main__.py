"""
``python -m include.ytdlp_ops.cli``: the queues and the ledger from a terminal.

Where they are is read from the environment, since a command line shows its secrets to everybody on the host:
``YTDLP_OPS_REDIS_URL`` (``redis://:PASSWORD@HOST:PORT/DB``) and ``YTDLP_OPS_LEDGER_URL``
(``postgresql+psycopg2://USER:PASSWORD@HOST/DB``).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.ytdlp_ops.errors import ConfigurationError, YtdlpOpsError
from include.ytdlp_ops.queues.asking import LocalFiles, Request
from include.ytdlp_ops.queues.connecting import address_of, connect
from include.ytdlp_ops.queues.keys import Stage
from include.ytdlp_ops.queues.managing import ACTIONS, perform
from include.ytdlp_ops.queues.queue import Queue

if TYPE_CHECKING:
    import sqlalchemy as sa
    from redis import Redis

REDIS_URL, LEDGER_URL = "YTDLP_OPS_REDIS_URL", "YTDLP_OPS_LEDGER_URL"
_FIELDS = [name for name in Request.model_fields if name not in ("action", "dry_run")]


def main(argv: Sequence[str] | None = None) -> int:
    """Do one command; 1 where it was refused, with one line that says why."""
    args = _parser().parse_args(argv)
    try:
        for line in args.do(args):
            print(line)
    except YtdlpOpsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `| head`
        return 0
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m include.ytdlp_ops.cli", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the summary as JSON instead of text")
    parser.add_argument("--directory", type=Path, default=Path(), help="where files are written and read")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for action in ACTIONS:
        command = commands.add_parser(action, help=f"queues: {action}")
        command.set_defaults(do=_manage, action=action)
        for name in _FIELDS:
            command.add_argument(f"--{name.replace('_', '-')}", metavar="VALUE")
        command.add_argument("--really", action="store_true", help="change something; without it, a dry run")
    archive = commands.add_parser("archive", help="ledger: archive what ended")
    archive.add_argument("--keep-hours", type=float, default=168.0)
    archive.add_argument("--everything", action="store_true", help="look at all records again")
    archive.set_defaults(do=_archive)
    report = commands.add_parser("report", help="ledger: report")
    report.add_argument("name", nargs="?", default="all")
    report.add_argument("--since-hours", type=float, default=168.0)
    report.add_argument("--chart", help="png or svg: write a picture of each, and JSON")
    report.set_defaults(do=_report)
    for command in (archive, report):
        command.add_argument("--queue-base")
    return parser


def _manage(args: argparse.Namespace) -> list[str]:
    given = {name: getattr(args, name) for name in _FIELDS}
    request = Request.of({**given, "action": args.action, "dry_run": not args.really})
    done = perform(_redis(), request, LocalFiles(args.directory))
    return [_as_json(done.summary)] if args.json else done.lines


def _archive(args: argparse.Namespace) -> list[str]:
    from include.ytdlp_ops.ledger.archiving import archive

    client, engine, counted = _redis(), _ledger(), dict[str, Any]()
    for stage in Stage:
        queue = Queue(client, stage, queue_base=args.queue_base)
        done = archive(queue, engine, keep_seconds=args.keep_hours * 3600, everything=args.everything)
        counted[stage] = asdict(done)
    return [_as_json(counted)] if args.json else [f"{stage}: {counts}" for stage, counts in counted.items()]


def _report(args: argparse.Namespace) -> list[str]:
    from include.ytdlp_ops.ledger.presenting import reports_of, written

    reports = reports_of(_ledger(), args.name, since_hours=args.since_hours, queue_base=args.queue_base)
    if args.json:
        return [_as_json([each.as_json() for each in reports])]
    lines = [line for each in reports for line in each.as_table()]
    return lines + (written(reports, LocalFiles(args.directory), chart=args.chart) if args.chart else [])


def _redis() -> Redis:
    return connect(address_of(_from_environment(REDIS_URL, "redis://:PASSWORD@HOST:PORT/DB")))


def _ledger() -> sa.Engine:
    from include.ytdlp_ops.ledger.connecting import migrate, open_engine

    engine = open_engine(_from_environment(LEDGER_URL, "postgresql+psycopg2://USER:PASSWORD@HOST/DB"))
    migrate(engine)
    return engine


def _from_environment(name: str, example: str) -> str:
    if not (value := os.environ.get(name)):
        raise ConfigurationError(f"{name} is not set; export {name}={example}")
    return value


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
