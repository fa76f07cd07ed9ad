"""What the parts find in their environment."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from include.ytdlp_ops.local.environment import airflow_environment, base_environment, settings_environment
from include.ytdlp_ops.local.folder import REPOSITORY, Folder, Secrets
from include.ytdlp_ops.settings import Settings


@pytest.fixture
def airflow() -> dict[str, str]:
    ports = {"api_port": 1001, "redis_port": 1002, "ops_port": 1003}
    return airflow_environment(Folder(Path("/data")), Secrets.make(), postgres_socket=Path("/data/pg"), **ports)


@pytest.mark.parametrize(
    "name", ["AIRFLOW__CORE__DAGS_FOLDER", "PYTHONDONTWRITEBYTECODE", "PGHOST", "YTDLP_OPS_HOST"]
)
def test_what_the_caller_has_set_for_other_installations_is_not_passed_on(name: str) -> None:
    assert name not in base_environment({name: "theirs"})


def test_loopback_is_outside_any_proxy_and_other_exceptions_stay() -> None:
    env = base_environment({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "example.org"})

    assert env["HTTPS_PROXY"] == "http://proxy:3128"
    assert env["NO_PROXY"] == env["no_proxy"] == "example.org,127.0.0.1,localhost"


def test_the_project_and_its_config_are_importable() -> None:
    assert base_environment({})["PYTHONPATH"].split(os.pathsep) == [str(REPOSITORY), str(REPOSITORY / "config")]


def test_both_connections_are_complete(airflow: dict[str, str]) -> None:
    redis = json.loads(airflow["AIRFLOW_CONN_YTDLP_OPS_REDIS"])
    server = json.loads(airflow["AIRFLOW_CONN_YTDLP_OPS_SERVER"])

    assert (redis["conn_type"], redis["host"], redis["port"], redis["extra"]) == (
        "redis",
        "127.0.0.1",
        1002,
        {"db": 0},
    )
    assert (server["conn_type"], server["host"], server["port"], server["schema"]) == (
        "http",
        "127.0.0.1",
        1003,
        "http",
    )
    assert redis["password"] != server["password"]


def test_a_command_line_would_show_no_secret_of_the_database(airflow: dict[str, str]) -> None:
    assert (
        airflow["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] == "postgresql+psycopg2://postgres@/airflow?host=/data/pg"
    )


def test_the_settings_read_back_what_the_stack_sets() -> None:
    folder = Folder(Path("/data"))

    settings = Settings.from_env(settings_environment(folder, ca_file=Path("/data/ca.pem")))

    assert (settings.output_dir, settings.staging_dir, settings.work_dir, settings.ca_file) == (
        folder.output,
        folder.staging,
        folder.work,
        Path("/data/ca.pem"),
    )
    assert settings.info_store == "file:///data/infos"


def test_without_the_sample_site_no_other_authority_is_trusted() -> None:
    assert "YTDLP_OPS_CA_FILE" not in settings_environment(Folder(Path("/data")), ca_file=None)
