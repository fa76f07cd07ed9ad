"""What yt-dlp is told for a download, and what surrounds it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from include.ytdlp_ops.downloading.options import download_options, isolated, pause_before_retry

TARGET = Path("/work/100%/item/token/299.mp4")


def test_a_percent_sign_in_the_path_is_no_template() -> None:
    assert download_options(target=TARGET, proxy=None)["outtmpl"] == {"default": "/work/100%%/item/token/299.mp4"}


def test_certificates_are_always_checked() -> None:
    for ca_file in (None, Path("/etc/ca.pem")):
        options = download_options(target=TARGET, proxy=None, ca_file=ca_file)

        assert not {"nocheckcertificate", "legacyserverconnect"} & set(options)
        assert options.get("compat_opts") == ({"no-certifi"} if ca_file else None)


def test_no_egress_means_no_proxy_of_ours() -> None:
    assert "proxy" not in download_options(target=TARGET, proxy=None)
    assert download_options(target=TARGET, proxy="http://one:1")["proxy"] == "http://one:1"


def test_pauses_before_retries_grow_to_ten_seconds() -> None:
    assert [pause_before_retry(n) for n in (0, 1, 2, 20)] == [0.25, 0.5, 1.0, 10.0]


def test_the_environment_is_given_back_also_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/theirs.pem")
    monkeypatch.delenv("YTDLP_NO_PLUGINS", raising=False)

    def fail_inside() -> None:
        with isolated(Path("/ours.pem")):
            raise OSError(os.environ["SSL_CERT_FILE"], os.environ["YTDLP_NO_PLUGINS"])

    with pytest.raises(OSError, match="1") as failed:
        fail_inside()

    assert failed.value.args == ("/ours.pem", "1")
    assert os.environ["SSL_CERT_FILE"] == "/theirs.pem"
    assert "YTDLP_NO_PLUGINS" not in os.environ
