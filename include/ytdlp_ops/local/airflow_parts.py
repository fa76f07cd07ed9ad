"""
Airflow's four processes, forked from one that has imported what they share.

    python -m include.ytdlp_ops.local.airflow_parts LOG_FOLDER ENDED_FILE [--migrate] < SETTINGS

Importing Airflow four times is half of the time to its first page on two cores, so it is done once, with the
garbage collector off. The last environment variables, one line of JSON, come when the servers are up; imports
don't wait for them. If a process ends by itself, its name is written to ENDED_FILE, and all of them end.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import json
import os
import signal
import sys
from pathlib import Path

from include.ytdlp_ops.local.launch import end_with_parent

MIGRATE = "db-migrate"
PROCESSES = {
    "api-server": ["api-server"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
    "triggerer": ["triggerer", "--skip-serve-logs"],
}
"""Name of the log → arguments. Logs are read from files: no server for them is needed on one machine."""


def main() -> None:
    """Import, read the environment, start all; end with the first that ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", type=Path)
    parser.add_argument("ended", type=Path)
    parser.add_argument("--migrate", action="store_true", help="make or upgrade the database's tables first")
    args = parser.parse_args()
    gc.disable()
    _import_shared()
    gate = os.pipe()
    running = {_fork("api-server", args.logs, gate): "api-server"}
    settings = sys.stdin.readline()
    os.environ.update(json.loads(settings))
    if args.migrate:
        _migrate(args)
    os.write(gate[1], settings.encode())  # the tables are there: the API server may go on
    os.close(gate[1])
    _import_rest()
    gc.freeze()  # what all share is never collected, and stays shared
    running |= {_fork(name, args.logs): name for name in PROCESSES if name != "api-server"}
    pid, status = os.wait()
    _give_up(args.ended, running.get(pid, "airflow"), os.waitstatus_to_exitcode(status))


def _import_shared() -> None:
    import airflow.api_fastapi.app
    import airflow.cli.cli_parser
    import airflow.cli.commands.api_server_command
    import airflow.settings  # noqa: F401 - imported for those that are forked


def _import_rest() -> None:
    import airflow.cli.commands.dag_processor_command
    import airflow.cli.commands.scheduler_command
    import airflow.cli.commands.triggerer_command
    import airflow.executors.local_executor  # noqa: F401 - imported for those that are forked

    importlib.import_module("airflow_local_settings").preload()  # for tasks, and for what reads DAG files


def _migrate(args: argparse.Namespace) -> None:
    pid = _fork(MIGRATE, args.logs)
    _, status = os.waitpid(pid, 0)
    if code := os.waitstatus_to_exitcode(status):
        _give_up(args.ended, MIGRATE, code)


def _fork(name: str, logs: Path, gate: tuple[int, int] | None = None) -> int:
    """Fork one process of Airflow; the API server imports its own until the settings come through the gate."""
    parent = os.getpid()
    if pid := os.fork():
        return pid
    try:
        end_with_parent(parent, signal.SIGTERM)
        output = os.open(logs / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if gate:
            asyncio.run(_warm_up_api_server())
            os.close(gate[1])
            with os.fdopen(gate[0]) as stream:
                os.environ.update(json.load(stream))
            gc.freeze()
        gc.enable()
        _run_airflow(["db", "migrate"] if name == MIGRATE else PROCESSES[name])
    except SystemExit as error:
        os._exit(error.code if isinstance(error.code, int) else 1)
    except BaseException:  # noqa: BLE001 - a forked process must not go on as its parent
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


async def _warm_up_api_server() -> None:
    """
    Build the API's 825 routes, and by a first request those of each version of the tasks' API.

    The latter takes some 5 s of CPU, in which nobody else is answered; without this, the first task pays it.
    """
    import httpx
    from airflow.api_fastapi.main import app

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        await client.get("/execution/health")


def _run_airflow(arguments: list[str]) -> None:
    from airflow.__main__ import main as airflow

    sys.argv = ["airflow", *arguments]
    airflow()  # type: ignore[no-untyped-call]  # Airflow leaves it untyped


def _give_up(ended: Path, name: str, code: int) -> None:
    ended.write_text(json.dumps({"name": name, "status": code}))
    sys.exit(1)


if __name__ == "__main__":
    main()
