"""Airflow as in production, each part of which can be killed alone: a scheduler, a broker, Celery on two hosts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx  # noqa: TID253 - a test's module, no DAG file imports it

from include.ytdlp_ops.local import keeper, servers
from include.ytdlp_ops.local.airflow_client import AirflowClient
from include.ytdlp_ops.local.environment import ADMIN, airflow_environment, base_environment, settings_environment
from include.ytdlp_ops.local.folder import REPOSITORY, Folder, write_private
from include.ytdlp_ops.local.parts import HeldPort, Part, Parts
from include.ytdlp_ops.queues.connecting import address_of, connect
from include.ytdlp_ops.queues.keys import Stage
from include.ytdlp_ops.queues.queue import Queue
from tests.faults.outcomes import until
from tests.servers import Valkey

HOSTS = ("host1", "host2")
LEASE_SECONDS = 12
VISIBILITY_SECONDS = 5
WORKER_QUEUES = "ytdlp-auth,ytdlp-dl,ytdlp-publish"
PROFILES = {
    "profiles": {
        "quick": {"formats": "140"},
        "long": {"formats": "299", "rate_limit": "12k"},  # 22 s
    }
}
TIMED_DAG = """
from datetime import timedelta
from airflow.sdk import DAG
from include.ytdlp_ops.dag_shapes import START, worker_defaults, worker_params
from include.ytdlp_ops.operators.working import DownloadFormatOperator

def dag(name, dag_timeout, task_timeout):
    with DAG(name, schedule=None, start_date=START, dagrun_timeout=dag_timeout, params=worker_params(url=False),
             default_args=worker_defaults()) as made:
        DownloadFormatOperator(task_id="download_format", queue="ytdlp-dl", execution_timeout=task_timeout)
    return made

run_timed = dag("run_timed", timedelta(seconds=6), None)
task_timed = dag("task_timed", None, timedelta(seconds=4))
"""
"""Workers by hand whose run, and whose task, times out in the middle of a long download."""


class Fleet:
    """
    The servers, Airflow with the CeleryExecutor, and one Celery worker for each of `HOSTS`.

    :param root: an empty folder.
    """

    def __init__(self, root: Path) -> None:
        self._exits = ExitStack()
        self.folder = Folder(root)
        self._parts: dict[str, Part] = {}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._exits.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    # -- start -------------------------------------------------------------------------------------------------
    def _start(self) -> None:
        folder = self.folder
        lock = folder.lock()
        self._exits.callback(os.close, lock)
        folder.prepare(needed_bytes=0)
        write_private(folder.root / "profiles.yaml", PROFILES)  # JSON is YAML
        shutil.copytree(REPOSITORY / "dags", folder.root / "dags")
        (folder.root / "dags" / "timed.py").write_text(TIMED_DAG)
        self._supervised = self._exits.enter_context(Parts(lock))
        redis = self._exits.enter_context(Valkey(folder.redis, appendfsync="always"))
        broker = self._exits.enter_context(Valkey(folder.root / "broker"))
        postgres = servers.PostgresFiles(folder)
        self._exits.callback(postgres.remove_socket)
        ports = {name: self._exits.enter_context(closing(HeldPort())) for name in ("ops", "api")}
        self.env = self._environment(postgres, redis, broker, {name: port.number for name, port in ports.items()})
        self.client = connect(address_of(redis.url))
        self._exits.callback(self.client.close)
        self._api = self._exits.enter_context(httpx.Client(base_url=self.url, timeout=60, trust_env=False))
        self._start_servers(postgres, ports["ops"].number)
        self.started_at = time.time()
        self._start_airflow()

    def _environment(
        self, postgres: servers.PostgresFiles, redis: Valkey, broker: Valkey, ports: Mapping[str, int]
    ) -> dict[str, str]:
        folder, self.secrets = self.folder, self.folder.secrets()
        write_private(folder.passwords, {ADMIN: self.secrets.admin_password})
        self.url = f"http://127.0.0.1:{ports['api']}"
        airflow = airflow_environment(
            folder,
            self.secrets,
            postgres_socket=postgres.socket,
            api_port=ports["api"],
            redis_port=redis.port,
            ops_port=ports["ops"],
        )
        connection = {"conn_type": "redis", "host": "127.0.0.1", "port": redis.port, "extra": {"db": 0}}
        return (
            base_environment()
            | airflow
            | {
                "AIRFLOW_CONN_YTDLP_OPS_REDIS": json.dumps(connection),
                "AIRFLOW__CORE__DAGS_FOLDER": str(folder.root / "dags"),
                "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
                "AIRFLOW__CELERY__BROKER_URL": broker.url,
                "AIRFLOW__CELERY__RESULT_BACKEND": f"redis://127.0.0.1:{broker.port}/1",
                "AIRFLOW__CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT": str(VISIBILITY_SECONDS),
                "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
                "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "10",
                "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "20",
                "YTDLP_OPS_LEASE_SECONDS": str(LEASE_SECONDS),
                "YTDLP_OPS_PROFILES_FILE": str(folder.root / "profiles.yaml"),
            }
        )

    def _start_servers(self, postgres: servers.PostgresFiles, ops_port: int) -> None:
        parts, env = self._supervised, base_environment()
        servers.start_site(parts, self.folder, env)
        postgres.make(env)
        postgres.start(parts, env)
        servers.wait_until(parts, "PostgreSQL", postgres.answers)
        postgres.make_database()
        servers.wait_until(parts, "the site", lambda: servers.read_ready_file(self.folder, "site") is not None)
        site = servers.read_ready_file(self.folder, "site") or {}
        settings = settings_environment(self.folder, ca_file=Path(site["bundle_file"]))
        self.env |= {**settings, "YTDLP_OPS_PROFILES_FILE": self.env["YTDLP_OPS_PROFILES_FILE"]}
        egresses = [
            {"name": name, "proxy": f"http://{name}:x@127.0.0.1:{site['port']}"} for name in ("one", "two")
        ]
        token = self.secrets.ops_server_token
        servers.start_ops_server(
            parts, self.folder, token=token, port=ops_port, egresses=egresses, env=env | settings
        )

    def _start_airflow(self) -> None:
        migrate = self.start("db-migrate", "db", "migrate")
        assert migrate.process.wait() == 0, migrate.log.read_text()
        self.start("api-server", "api-server")
        self.start("dag-processor", "dag-processor")
        self.start("triggerer", "triggerer", "--skip-serve-logs")
        self.start_scheduler()
        for host in (*HOSTS, "default"):
            self.start_worker(host)

    def start(self, name: str, *arguments: str, **env: str) -> Part:
        """Start one command of Airflow's, under this name."""
        command = [sys.executable, "-m", "airflow", *arguments]
        log = self.folder.log(name)
        part = self._supervised.start(name, command, log=log, env=self.env | env, cwd=REPOSITORY)
        self._parts[name] = part
        return part

    def start_scheduler(self, executor: str = "CeleryExecutor") -> None:
        """Start the scheduler, with this executor."""
        self.start("scheduler", "scheduler", "--skip-serve-logs", AIRFLOW__CORE__EXECUTOR=executor)

    def restart_scheduler(self, executor: str) -> None:
        """Give the scheduler another executor."""
        self._supervised.end(self._parts["scheduler"])
        self.start_scheduler(executor)

    def start_worker(self, host: str, **env: str) -> None:
        """Start the Celery worker of a host; `default`, on the first one, runs what is no work on items."""
        name = HOSTS[0] if host == "default" else host
        queues = "default" if host == "default" else WORKER_QUEUES
        options = ["--queues", queues, "--celery-hostname", host, "--concurrency", "3", "--skip-serve-logs"]
        pid_file = str(self.folder.run / f"{host}.pid")
        Path(pid_file).unlink(missing_ok=True)
        self.start(host, "celery", "worker", *options, "--pid", pid_file, **{"YTDLP_OPS_HOST": name, **env})

    # -- look and kill -----------------------------------------------------------------------------------------
    def wait_ready(self) -> None:
        """Wait until all of Airflow beats and each DAG has been read."""
        with AirflowClient(self.url, ADMIN, self.secrets.admin_password) as client:
            until(lambda: client.is_healthy(since=self.started_at), 300)
            files = {path.stem for path in (self.folder.root / "dags").glob("*.py")}
            until(lambda: client.has_read(files), 120)
            assert client.import_errors() == []

    def kill(self, name: str) -> None:
        """SIGKILL for a part and all that it started, as when its host is lost."""
        part = self._parts[name]
        keeper.end_sessions({part.session}, signal.SIGKILL)
        part.process.wait()

    def processes(self, name: str) -> dict[int, str]:
        """A part's processes with what they call themselves."""
        found = {}
        for pid in keeper.members({self._parts[name].session}):
            found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        return found

    def queue(self, stage: Stage) -> Queue:
        """One stage's queue."""
        return Queue(self.client, stage, patience_seconds=30)

    def submit(self, video_id: str, profile: str) -> str:
        """Push one URL, as a producer would; the item id of its only format."""
        self.client.rpush(self.queue(Stage.AUTH).keys.inbox, json.dumps({"url": video_id, "profile": profile}))
        return f"youtube:{video_id}:{299 if profile == 'long' else 140}"

    def running(self, item_id: str) -> dict[str, Any]:
        """Wait until a worker downloads the format; its record."""
        return self.record(item_id, lambda place, record: record.get("state") == "running", 60)

    def record(
        self, item_id: str, wanted: Callable[[str, dict[str, Any]], bool], seconds: float = 120
    ) -> dict[str, Any]:
        """Wait until the format job's place and record are as wanted."""
        seen: list[dict[str, Any]] = []

        def found() -> bool:
            place, record = self.queue(Stage.DL).find(item_id) or ("", {})
            seen[:] = [record]
            return wanted(str(place), record)

        until(found, seconds)
        return seen[0]

    def ask(self, method: str, path: str, **how: Any) -> Any:
        """Ask Airflow's public API; its JSON."""
        if "Authorization" not in self._api.headers:
            login = {"username": ADMIN, "password": self.secrets.admin_password}
            token = self._api.post("/auth/token", json=login).raise_for_status().json()["access_token"]
            self._api.headers["Authorization"] = f"Bearer {token}"
        return self._api.request(method, f"/api/v2{path}", **how).raise_for_status().json()

    def trigger(self, dag_id: str, run_id: str | None = None) -> None:
        """Trigger one run by hand, with nothing in its form."""
        self.ask("POST", f"/dags/{dag_id}/dagRuns", json={"dag_run_id": run_id, "logical_date": None, "conf": {}})

    def count(self, dag_id: str, *states: str) -> int:
        """How many runs of a DAG are in one of these states."""
        params: dict[str, Any] = {"state": states, "limit": 1}
        return int(self.ask("GET", f"/dags/{dag_id}/dagRuns", params=params)["total_entries"])
