"""The fixed names of keys (DESIGN §2)."""

from __future__ import annotations

import pytest

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.queues.keys import Place, QueueKeys, Stage


@pytest.mark.parametrize(
    ("stage", "inbox", "hashes"),
    [
        ("v01", "video_queue_inbox", "video_queue"),
        ("auth", "queue2_auth_inbox", "queue2_auth"),
        ("dl", "queue_dl_format_tasks", "queue2_dl"),
        ("publish", "queue2_publish_inbox", "queue2_publish"),
    ],
)
def test_the_names_that_other_tools_use_are_these(stage: str, inbox: str, hashes: str) -> None:
    keys = QueueKeys.of(stage)

    assert keys.inbox == inbox
    assert (keys.progress, keys.result) == (f"{hashes}_progress", f"{hashes}_result")
    assert (keys.fail, keys.skipped) == (f"{hashes}_fail", f"{hashes}_skipped")
    assert (keys.leases, keys.due, keys.deferred) == (f"{hashes}_leases", f"{hashes}_due", f"{hashes}_deferred")


def all_keys(queue_base: str | None) -> list[str]:
    names = [name for name in vars(QueueKeys) if isinstance(getattr(QueueKeys, name), property)]
    return [getattr(QueueKeys.of(stage, queue_base), name) for stage in Stage for name in names if name != "base"]


def test_two_installations_share_no_key() -> None:
    assert set(all_keys("one")).isdisjoint(all_keys("two"))
    assert set(all_keys("one")).isdisjoint(all_keys(None))


def test_two_stages_share_only_what_belongs_to_the_installation() -> None:
    keys = all_keys("one")

    shared = ("limits", "buckets", "groups", "egress_addresses", "refused_clients")
    assert {key for key in keys if keys.count(key) > 1} == {f"one_{name}" for name in shared}


def test_places_have_a_hash_each() -> None:
    keys = QueueKeys.of("auth", "b")

    assert {keys.hash_of(place) for place in Place} == {f"b_auth_{place}" for place in Place}


def test_an_unknown_stage_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match="'upload' is none of v01, auth, dl, publish"):
        QueueKeys.of("upload")


@pytest.mark.parametrize("queue_base", [" ", "_x", "a b", "a:b", "a*", "ü", "x" * 65, "a\n"])
def test_a_base_that_can_be_no_part_of_a_key_is_refused(queue_base: str) -> None:
    with pytest.raises(BadInput, match="queue_base"):
        QueueKeys.of("auth", queue_base)
