"""The ops server's configuration file: what is taken, and what a wrong one is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.ytdlp_ops.errors import ConfigurationError
from include.ytdlp_ops.ops_server import config as config_module
from include.ytdlp_ops.ops_server.config import TOKEN_VARIABLE, OpsServerConfig, read_token
from include.ytdlp_ops.ops_server.config_file import ConfigFile, load_config

EXAMPLE = Path(config_module.__file__).with_name("ops_server.example.yaml")
SECRET = "hunter2"


def write(folder: Path, text: str) -> Path:
    path = folder / "ops_server.yaml"
    path.write_text(text)
    return path


def test_the_example_file_is_a_configuration() -> None:
    config = load_config(EXAMPLE)

    assert [egress.name for egress in config.egresses] == ["own"]
    assert config.egresses[0].proxy_url is None


def test_what_a_file_leaves_out_has_safe_defaults(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, "egresses: [{name: own, proxy: null}]"))

    assert config.extractors == ["youtube.*"]
    assert config.deadline_seconds == 60
    assert config.allow_private_targets is False


def test_a_proxy_keeps_its_credentials_and_shows_them_to_nobody(tmp_path: Path) -> None:
    config = load_config(
        write(tmp_path, f"egresses: [{{name: a, proxy: 'socks5h://user:{SECRET}@proxy.example:1080'}}]")
    )

    assert config.egresses[0].proxy_url == f"socks5h://user:{SECRET}@proxy.example:1080"
    assert SECRET not in f"{config!r} {config} {config.model_dump()} {config.model_dump_json()}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1: egresses: is missing"),
        ("[]", "1: Input should be"),
        ("egresses: []", "1: egresses: List should have at least 1 item"),
        ("workers: 2\negresses:\n  - proxy: null", "3: egresses.0.name: is missing"),
        (
            "egresses:\n  - name: a\n\nworker: 2",
            "4: worker: unknown field; known are egresses, accounts, profiles",
        ),
        ("egresses:\n  - name: a\n    prxy: x", "3: egresses.0.prxy: unknown field; known are name, tags, hourly"),
        ("egresses: [{name: a}]\nworkers: many", "2: workers: Input should be a valid integer"),
        ("egresses: [{name: a}]\nworkers: many", "found 'many'"),
        ("egresses: [{name: a}]\ndeadline_seconds: 0", "2: deadline_seconds: Input should be greater than 0"),
        ("egresses: [{name: 'a b'}]", "1: egresses.0.name: String should match"),
        ("egresses: [{name: a}, {name: a}]", "more than one is named a; give each its own name"),
        ("egresses: [{name: a}]\nextractors: ['(']", "2: extractors: '(' is no regular expression"),
        ("egresses: [{name: a, proxy: 'ftp://h:1'}]", "write scheme://user:password@host:port with http, https"),
        ("egresses: [{name: a, proxy: 'http://h:x'}]", "1: egresses.0.proxy: not a proxy URL"),
        ("egresses: [{name: a, country: de}]", "1: egresses.0.country: String should match"),
        ("egresses: [{name: a, hourly: 0}]", "1: egresses.0.hourly: Input should be greater than or equal to 1"),
        ("egresses: [{name: a}]\naccounts:\n  - name: x", "3: accounts.0.cookies: is missing"),
        (
            "egresses: [{name: a}]\naccounts: [{name: x, cookies: c, egress: b}]",
            "accounts: x is bound to egress 'b', which is not listed; there are a",
        ),
        ("egresses: [{name: a}]\nprofiles: {p: {exec: rm}}", "2: profiles.p.exec: unknown field; known are extr"),
        ("egresses: [{name: a}]\nplugins: [../x]", "2: plugins.0: String should match"),
        ("egresses: [{name: a}]\nworkers: [", "2: not YAML"),
        (
            "egresses: [{name: a}]\nx: !!python/object:os.system {}",
            "2: not YAML: could not determine a constructor",
        ),
    ],
)
def test_a_wrong_file_is_told_where_and_how(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)

    with pytest.raises(ConfigurationError) as caught:
        load_config(path)

    assert said in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"egresses: [{{name: a, proxy: 'user:{SECRET}@proxy.example:80'}}]",
        f"egresses: [{{name: a, proxy: 'http://user:{SECRET}@proxy.example:99999'}}]",
        f"egresses: [{{name: a, proxy: 'http://user:{SECRET}/x@proxy.example:80'}}]",
        f"egresses: [{{name: a, proxy_url: 'http://user:{SECRET}@proxy.example'}}]",
        f"egresses: [{{proxy: 'http://user:{SECRET}@proxy.example'}}]",
        f"egresses: [{{name: a, proxy: ['http://user:{SECRET}@proxy.example']}}]",
        f"egresses: ['http://user:{SECRET}@proxy.example']",
        f"egresses: [{{name: 'http://user:{SECRET}@proxy.example'}}]",
        f"egresses: [{{name: a, proxy: 'http://user:{SECRET}@proxy.example'}}\nworkers: 2",
        f"token: {SECRET}",
    ],
)
def test_no_error_shows_a_secret(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)

    with pytest.raises(ConfigurationError) as caught:
        load_config(path)

    assert SECRET not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.yaml: can't be read: No such file"):
        load_config(tmp_path / "nowhere.yaml")


def test_the_token_comes_from_the_environment_first(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    config = load_config(write(tmp_path, "egresses: [{name: a}]\ntoken_file: token"))

    assert read_token(config, {TOKEN_VARIABLE: "from-environment"}) == "from-environment"
    assert read_token(config, {}) == "from-file"


def test_no_token_is_told_where_to_put_one() -> None:
    config = OpsServerConfig.model_validate({"egresses": [{"name": "a"}]})

    with pytest.raises(ConfigurationError, match="set YTDLP_OPS_SERVER_TOKEN or token_file"):
        read_token(config, {})


def test_a_token_that_no_header_can_carry_is_refused_unseen() -> None:
    config = OpsServerConfig.model_validate({"egresses": [{"name": "a"}]})

    with pytest.raises(ConfigurationError, match="blanks or characters") as caught:
        read_token(config, {TOKEN_VARIABLE: f"{SECRET} and more"})

    assert SECRET not in str(caught.value)


def test_a_missing_token_file_is_named(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, "egresses: [{name: a}]\ntoken_file: nowhere"))

    with pytest.raises(ConfigurationError, match=r"token_file .*nowhere: can't be read: No such file"):
        read_token(config, {})


def test_cookies_are_found_beside_the_file(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, "egresses: [{name: a}]\naccounts: [{name: x, cookies: x.txt}]"))

    assert config.accounts[0].cookies == tmp_path / "x.txt"


def test_a_changed_file_is_read_again_and_a_broken_one_changes_nothing_but_says_so(tmp_path: Path) -> None:
    path = write(tmp_path, "egresses: [{name: a}]")
    file = ConfigFile(path)

    path.write_text("egresses:\n  - name: a\n  - name: b\n    prxy: x")
    broken, problem = file.reload(), file.problem
    path.write_text("egresses: [{name: a}, {name: b}]")
    mended = file.reload()

    assert (broken, mended, file.problem) == (False, True, None)
    assert problem
    assert "ops_server.yaml:4: egresses.1.prxy: unknown field" in problem
    assert [egress.name for egress in file.current.egresses] == ["a", "b"]
    assert not file.reload()


def test_what_only_a_restart_changes_is_said_and_the_rest_is_taken_over(tmp_path: Path) -> None:
    path = write(tmp_path, "egresses: [{name: a}]\nworkers: 2")
    file = ConfigFile(path)

    path.write_text("egresses: [{name: b}]\nworkers: 3\ndeadline_seconds: 9")
    file.reload()

    assert (file.current.workers, file.current.deadline_seconds) == (2, 9)
    assert file.current.egresses[0].name == "b"
    assert file.problem
    assert "workers changed in" in file.problem


def test_a_redis_in_the_environment_comes_first_and_none_is_shown(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, f"egresses: [{{name: a}}]\nredis_url: redis://:{SECRET}@r:6379/0"))

    assert config.read_redis_url({}) == f"redis://:{SECRET}@r:6379/0"
    assert config.read_redis_url({"YTDLP_OPS_SERVER_REDIS_URL": "redis://other"}) == "redis://other"
    assert SECRET not in repr(config)
