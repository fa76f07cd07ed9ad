"""Emptying a key by hand: what is deleted has been written to a file before."""

from __future__ import annotations

from typing import Any

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.queues.exporting import KINDS, key_named
from include.ytdlp_ops.queues.importing import Opener, parts_of
from include.ytdlp_ops.queues.keys import Place, QueueKeys
from include.ytdlp_ops.queues.queue import Queue

CLEARED = ("inbox", *Place)


def refuse_unconfirmed(keys: QueueKeys, name: str, confirm: str) -> None:
    """
    A key is emptied only for a person who has written its name.

    :raises BadInput: if `confirm` is not the key's name.
    """
    key = key_named(keys, name)
    if confirm != key:
        raise BadInput(
            f"confirm {confirm!r} is not the key's name, nothing was cleared: write {key!r} to empty it"
        )


def drop_saved(queue: Queue, name: str, open_backup: Opener) -> int:
    """
    Delete what a backup of one key holds, as far as it is still there unchanged.

    :param open_backup: a file with this key's entries, written to its end.
    :returns: how many entries were deleted.
    """
    times = queue.keys.leases if name == Place.PROGRESS else queue.keys.due
    keys = [key_named(queue.keys, name), times]
    dropped = 0
    for _, _, _, entries in parts_of(open_backup):
        args: list[Any] = [KINDS[name], *(value for entry in entries for value in entry)]
        dropped += queue.steps.run("drop", keys, args)
    return dropped
