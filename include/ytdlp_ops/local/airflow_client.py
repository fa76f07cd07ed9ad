"""What the stack asks Airflow: is everything up, and has every DAG been read?"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from pathlib import PurePath
from types import TracebackType
from typing import Any, Self

PARTS = {
    "metadatabase": None,
    "scheduler": "latest_scheduler_heartbeat",
    "triggerer": "latest_triggerer_heartbeat",
    "dag_processor": "latest_dag_processor_heartbeat",
}


class AirflowClient:
    """
    A client of Airflow's public API; past any proxy, since it is on loopback.

    :param url: the API server's.
    :param user: who asks; the token is fetched when it is first needed.
    """

    def __init__(self, url: str, user: str, password: str) -> None:
        import httpx

        self._http = httpx.Client(base_url=url, timeout=10, trust_env=False)
        self._user = {"username": user, "password": password}

    def is_healthy(self, *, since: float) -> bool:
        """Whether all of Airflow has beaten after `since` (unix seconds): an older beat is a dead one's."""
        import httpx

        try:
            health = self._http.get("/api/v2/monitor/health").raise_for_status().json()
        except httpx.HTTPError:
            return False
        return all(_beats(health[part], heartbeat, since) for part, heartbeat in PARTS.items())

    def has_read(self, files: Collection[str]) -> bool:
        """Whether each of these files of ``dags/`` (their stems) has given a DAG or an import error."""
        import httpx

        try:
            read = [error["filename"] for error in self._import_errors()]
            read += [dag["relative_fileloc"] or "" for dag in self._get("/api/v2/dags", limit=100)["dags"]]
        except httpx.TransportError:  # a busy machine: ask again
            return False
        return set(files) <= {PurePath(path).stem for path in read}

    def is_idle(self) -> bool:
        """Whether no run is under way: what has ended is noted down then, assets' events included."""
        import httpx

        try:
            found = self._get("/api/v2/dags/~/dagRuns", state=["queued", "running"], limit=1)
        except httpx.HTTPError:  # a busy machine: ask again
            return False
        return not found["total_entries"]

    def import_errors(self) -> list[str]:
        """The files that can't be imported, each with the last line of its traceback."""
        return [
            f"{error['filename']}: {error['stack_trace'].strip().splitlines()[-1]}"
            for error in self._import_errors()
        ]

    def _import_errors(self) -> list[dict[str, Any]]:
        errors: list[dict[str, Any]] = self._get("/api/v2/importErrors", limit=100)["import_errors"]
        return errors

    def _get(self, path: str, **params: Any) -> dict[str, Any]:
        if "Authorization" not in self._http.headers:
            token = self._http.post("/auth/token", json=self._user).raise_for_status().json()["access_token"]
            self._http.headers["Authorization"] = f"Bearer {token}"
        answer: dict[str, Any] = self._http.get(path, params=params).raise_for_status().json()
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()


def _beats(part: dict[str, Any], heartbeat: str | None, since: float) -> bool:
    if part.get("status") != "healthy":
        return False
    return heartbeat is None or datetime.fromisoformat(part[heartbeat]).timestamp() > since
