"""What the parts find in their environment, as data: for the stack, for tests and for benchmarks."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from include.ytdlp_ops.local.folder import REPOSITORY, Folder, Secrets

ADMIN = "admin"
PARALLELISM = 24
"""Processes. Long downloads, 16 of one DAG at most, leave some for what is short: auth, dispatch, sweep."""
_NOT_PASSED_ON = ("AIRFLOW_", "_AIRFLOW_", "YTDLP_OPS_", "PG", "PYTHON")
"""Prefixes of what the caller's own set-up must not change; PYTHONDONTWRITEBYTECODE would double each start."""


def base_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """
    The caller's environment without what would change the stack, and with loopback outside any proxy.

    The environment's ``bin`` comes first on PATH, so that yt-dlp finds `deno` without an activated venv.
    """
    environ = os.environ if environ is None else environ
    env = {name: value for name, value in environ.items() if not name.startswith(_NOT_PASSED_ON)}
    no_proxy = ",".join(filter(None, [env.get("NO_PROXY", env.get("no_proxy", "")), "127.0.0.1,localhost"]))
    return {
        **env,
        "NO_PROXY": no_proxy,
        "no_proxy": no_proxy,
        "PATH": os.pathsep.join(filter(None, [str(Path(sys.executable).parent), env.get("PATH", "")])),
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "config")]),
        "PYTHONUNBUFFERED": "1",
    }


def airflow_environment(
    folder: Folder, secrets: Secrets, *, postgres_socket: Path, api_port: int, redis_port: int, ops_port: int
) -> dict[str, str]:
    """Airflow's configuration and its connections to the other parts."""
    database = f"postgres@/airflow?host={postgres_socket}"
    return {
        "AIRFLOW_HOME": str(folder.airflow),
        "AIRFLOW__CORE__DAGS_FOLDER": str(REPOSITORY / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": str(PARALLELISM),
        "AIRFLOW__CORE__MP_START_METHOD": "fork",  # also on Python 3.14: children inherit what is imported
        "AIRFLOW__CORE__FERNET_KEY": secrets.fernet_key,
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{ADMIN}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(folder.passwords),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{api_port}/execution/",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{database}",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": f"postgresql+asyncpg://{database}",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(api_port),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{api_port}",
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__SECRET_KEY": secrets.api_secret_key,
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.jwt_secret,
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",  # half of the wait from a trigger to its run
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "60",
        "AIRFLOW__DAG_PROCESSOR__PRINT_STATS_INTERVAL": "300",
        "AIRFLOW__WORKERS__MAX_FAILED_HEARTBEATS": "30",  # a busy laptop is no reason to kill a download
        "AIRFLOW__WORKERS__EXECUTION_API_RETRIES": "60",  # an earlier run's tasks start before the API server
        "AIRFLOW__WORKERS__EXECUTION_API_RETRY_WAIT_MAX": "1",
        "AIRFLOW_CONN_YTDLP_OPS_REDIS": json.dumps(
            {
                "conn_type": "redis",
                "host": "127.0.0.1",
                "port": redis_port,
                "password": secrets.redis_password,
                "extra": {"db": 0},
            }
        ),
        "AIRFLOW_CONN_YTDLP_OPS_LEDGER": json.dumps(
            {"conn_type": "postgres", "host": str(postgres_socket), "login": "postgres", "schema": "airflow"}
        ),
        "AIRFLOW_CONN_YTDLP_OPS_SERVER": json.dumps(
            {
                "conn_type": "http",
                "host": "127.0.0.1",
                "port": ops_port,
                "schema": "http",
                "password": secrets.ops_server_token,
            }
        ),
    }


def settings_environment(folder: Folder, *, ca_file: Path | None) -> dict[str, str]:
    """What `Settings.from_env` reads, for the ops server and for Airflow's workers."""
    env = {
        "YTDLP_OPS_OUTPUT_DIR": str(folder.output),
        "YTDLP_OPS_STAGING_DIR": str(folder.staging),
        "YTDLP_OPS_WORK_DIR": str(folder.work),
        "YTDLP_OPS_INFO_STORE": folder.infos.as_uri(),
    }
    return {**env, "YTDLP_OPS_CA_FILE": str(ca_file)} if ca_file else env
