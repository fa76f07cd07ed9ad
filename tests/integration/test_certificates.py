"""TLS contexts are made once for each set of wishes, and anew when what is trusted changes."""

from __future__ import annotations

import shutil
import ssl
from pathlib import Path
from typing import Any

import certifi
import pytest

from include.ytdlp_ops.certificates import share_contexts


def make(**wanted: Any) -> ssl.SSLContext:
    from yt_dlp.networking import common  # type: ignore[import-untyped]  # ships no types

    share_contexts()
    context: ssl.SSLContext = common.make_ssl_context(**wanted)
    return context


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy = Path(shutil.copy(certifi.where(), tmp_path / "bundle.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(copy))
    return copy


def test_one_context_serves_all_downloads_of_one_kind(bundle: Path) -> None:
    first = make(verify=True, use_certifi=False)

    assert make(verify=True, use_certifi=False) is first
    assert make(verify=False, use_certifi=False) is not first
    assert len(first.get_ca_certs()) > 50
    assert bundle.exists()


def test_a_bundle_that_was_replaced_is_read_again(bundle: Path) -> None:
    first = make(verify=True, use_certifi=False)

    one = bundle.read_text().partition("-----END CERTIFICATE-----")
    bundle.write_text(one[0] + one[1] + "\n")

    assert len(make(verify=True, use_certifi=False).get_ca_certs()) == 1
    assert len(first.get_ca_certs()) > 50


def test_a_download_finds_the_context_that_was_warmed_up(tmp_path: Path) -> None:
    import yt_dlp  # type: ignore[import-untyped]  # ships no types
    from yt_dlp.networking import common

    from include.ytdlp_ops.downloading.options import Transfer, download_options, isolated, warm_up

    copy = Path(shutil.copy(certifi.where(), tmp_path / "bundle.pem"))
    warm_up(copy)
    with isolated(copy):
        warmed = common.make_ssl_context(verify=True, legacy_support=False, use_certifi=False)
        options = download_options(
            target=tmp_path / "x.mp4",
            proxy=None,
            ca_file=copy,
            transfer=Transfer(),
            needs_ffmpeg=False,
            pause=lambda _: 0,
        )
        with yt_dlp.YoutubeDL(options, auto_init=False) as ydl:
            handler = ydl._request_director.handlers["Requests"]

            assert handler._make_sslcontext() is warmed
