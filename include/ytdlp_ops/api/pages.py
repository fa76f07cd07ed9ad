"""The page in Airflow's navigation: how deep every key is, and what stands still. Behind Airflow's login."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import requires_access_view
from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import HTMLResponse

from include.ytdlp_ops.errors import QueueError
from include.ytdlp_ops.queues.inspecting import all_depths
from include.ytdlp_ops.queues.keys import Place, QueueKeys, Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.resting import resting

if TYPE_CHECKING:
    from redis import Redis


def create_app() -> FastAPI:
    """The app that the plugin mounts; a plugin's app has no login of its own, so every route asks for one."""
    app = FastAPI(title="ytdlp-ops", dependencies=[Depends(requires_access_view(AccessView.PLUGINS))])

    @app.get("/", response_class=HTMLResponse)
    def page() -> str:
        return files("include.ytdlp_ops.api").joinpath("queues.html").read_text(encoding="utf-8")

    @app.get("/depths")
    def depths() -> list[dict[str, object]]:
        with _redis() as client:
            counted = all_depths(client)
        return [
            {"stage": stage, "place": place, "key": _key(stage, place), "depth": depth}
            for stage, counts in counted.items()
            for place, depth in counts.items()
        ]

    @app.get("/notices")
    def notices() -> list[dict[str, str]]:
        """Why a stage, or a host, takes nothing now."""
        with _redis() as client:
            queues = [Queue(client, stage) for stage in Stage]
            said = [(queue.stage, str(queue.circuit())) for queue in queues]
            said += [(queue.stage, str(rest)) for queue in queues for rest in resting(queue)]
        return [{"stage": stage, "text": text} for stage, text in said if text]

    return app


@contextmanager
def _redis() -> Iterator[Redis]:
    from include.ytdlp_ops.hooks.redis_queue import RedisQueueHook

    try:
        client = RedisQueueHook().get_conn()
        try:
            yield client
        finally:
            client.close()
    except QueueError as error:
        raise HTTPException(status_code=503, detail=str(error)) from None


def _key(stage: str, place: str) -> str:
    keys = QueueKeys.of(stage)
    return keys.inbox if place == "inbox" else keys.hash_of(Place(place))
