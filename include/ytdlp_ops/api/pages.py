"""The page in Airflow's navigation: how deep every key is. Behind Airflow's login."""

from __future__ import annotations

from importlib.resources import files

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import requires_access_view
from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import HTMLResponse

from include.ytdlp_ops.errors import QueueError
from include.ytdlp_ops.queues.inspecting import all_depths
from include.ytdlp_ops.queues.keys import Place, QueueKeys


def create_app() -> FastAPI:
    """The app that the plugin mounts; a plugin's app has no login of its own, so every route asks for one."""
    app = FastAPI(title="ytdlp-ops", dependencies=[Depends(requires_access_view(AccessView.PLUGINS))])

    @app.get("/", response_class=HTMLResponse)
    def page() -> str:
        return files("include.ytdlp_ops.api").joinpath("queues.html").read_text(encoding="utf-8")

    @app.get("/depths")
    def depths() -> list[dict[str, object]]:
        from include.ytdlp_ops.hooks.redis_queue import RedisQueueHook

        try:
            client = RedisQueueHook().get_conn()
        except QueueError as error:
            raise HTTPException(status_code=503, detail=str(error)) from None
        try:
            counted = all_depths(client)
        finally:
            client.close()
        return [
            {"stage": stage, "place": place, "key": _key(stage, place), "depth": depth}
            for stage, counts in counted.items()
            for place, depth in counts.items()
        ]

    return app


def _key(stage: str, place: str) -> str:
    keys = QueueKeys.of(stage)
    return keys.inbox if place == "inbox" else keys.hash_of(Place(place))
