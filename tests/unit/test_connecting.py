"""Addresses and servers that are not taken."""

from __future__ import annotations

import logging

import pytest

from include.ytdlp_ops.errors import ConfigurationError, UnsafeRedis
from include.ytdlp_ops.queues.connecting import address_of, refuse_unsafe

SAFE = {"redis_version": "7.2.4", "cluster_enabled": 0, "maxmemory_policy": "noeviction", "aof_enabled": 1}


def test_a_plain_url_is_read() -> None:
    address = address_of("redis://me:s%23cret@db.example:6380/3")

    assert (address.host, address.port, address.db) == ("db.example", 6380, 3)
    assert (address.username, address.password, address.ssl) == ("me", "s#cret", False)


def test_tls_options_travel_in_the_query() -> None:
    address = address_of("rediss://db.example/0?ssl_ca_certs=/etc/ca.pem&ssl_cert_reqs=required")

    assert address.ssl
    assert address.options == {"ssl_ca_certs": "/etc/ca.pem", "ssl_cert_reqs": "required"}


def test_sentinels_are_named_with_their_service() -> None:
    address = address_of("redis+sentinel://me:pw@one:26380,two/videos/2")

    assert address.sentinels == (("one", 26380), ("two", 26379))
    assert (address.service, address.db, address.username, address.password) == ("videos", 2, "me", "pw")
    assert str(address) == "videos@one:26380,two:26379/2"


@pytest.mark.parametrize(
    "url", ["", "http://x", "unix:///run/redis.sock", "redis+sentinel://one:26379", "redis://x:y"]
)
def test_what_is_no_address_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(ConfigurationError, match="write redis://"):
        address_of(url)


def test_a_password_is_shown_nowhere() -> None:
    address = address_of("redis://me:hunter2@db.example/0")

    assert "hunter2" not in f"{address} {address!r}"


@pytest.mark.parametrize(
    ("found", "way_out"),
    [
        ({"redis_version": "6.0.16"}, "6.2 or newer"),
        ({"redis_version": "5.0"}, "6.2 or newer"),
        ({"cluster_enabled": 1}, "single server"),
        ({"maxmemory_policy": "allkeys-lru"}, "set it to noeviction"),
        ({"maxmemory_policy": "volatile-ttl"}, "set it to noeviction"),
    ],
)
def test_a_server_that_would_lose_items_is_refused_with_the_way_out(
    found: dict[str, object], way_out: str
) -> None:
    with pytest.raises(UnsafeRedis, match=way_out):
        refuse_unsafe({**SAFE, **found}, "db:6379/0")


@pytest.mark.parametrize("version", ["6.2.0", "7.0.15", "8.4.0", "10.0"])
def test_newer_servers_are_taken(version: str) -> None:
    refuse_unsafe({**SAFE, "redis_version": version}, "db:6379/0")


def test_missing_persistence_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        refuse_unsafe({**SAFE, "aof_enabled": 0}, "db:6379/0")

    assert "set appendonly yes" in caplog.text
