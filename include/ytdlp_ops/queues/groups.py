"""The join: a video is published when all of its wanted formats have ended."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from include.ytdlp_ops.models import PublishItem
from include.ytdlp_ops.queues.keys import QueueKeys, Stage

if TYPE_CHECKING:
    from include.ytdlp_ops.queues.queue import Queue


@dataclass(frozen=True, kw_only=True)
class Group:
    """
    What the end of an item means for the video that it belongs to.

    :param video: the video's item id.
    :param item: auth's: what is published when all of its jobs have ended.
    :param gone: jobs that auth gives up on.
    :param in_place: the caller can reach the files, and publishes itself if this end completes the group.
    """

    video: str
    item: PublishItem | None = None
    gone: Sequence[str] = ()
    in_place: bool = False


def join_keys(keys: QueueKeys) -> list[str]:
    """The keys of the join, in the order of join.lua."""
    dl, publish = (QueueKeys.of(stage, keys.queue_base) for stage in (Stage.DL, Stage.PUBLISH))
    of_dl = [keys.groups, dl.result, dl.skipped, dl.fail]
    return [
        *of_dl,
        *(publish.inbox, publish.progress, publish.leases),
        *(publish.result, publish.skipped, publish.fail, publish.deferred),
    ]


def join_arguments(group: Group | None, lease_ms: int) -> list[Any]:
    """The arguments of the finish step that tell of the group; `lease_ms` is for what is published in place."""
    if group is None:
        return ["", "", "[]", "", 0]
    item = group.item.to_inbox() if group.item else ""
    token = secrets.token_hex(16) if group.in_place else ""
    return [group.video, item, json.dumps(list(group.gone)), token, lease_ms]


def join(queue: Queue, videos: Iterable[str]) -> int:
    """Let videos leave for publish whose formats have all ended otherwise than by a finish; how many did."""
    listed = sorted(set(videos))
    return int(queue.steps.run("join", join_keys(queue.keys), listed)) if listed else 0
