"""Puts the page of the queues into Airflow's navigation."""

from airflow.plugins_manager import AirflowPlugin

from include.ytdlp_ops.api.pages import create_app


class YtdlpOpsPlugin(AirflowPlugin):
    """One page, one API."""

    name = "ytdlp_ops"
    fastapi_apps = [{"app": create_app(), "url_prefix": "/ytdlp-ops", "name": "ytdlp-ops"}]  # noqa: RUF012 - Airflow's shape
    external_views = [  # noqa: RUF012 - Airflow's shape
        {
            "name": "Archive queues",
            "href": "ytdlp-ops/",
            "destination": "nav",
            "category": "browse",
            "url_route": "ytdlp-ops-queues",
        }
    ]
