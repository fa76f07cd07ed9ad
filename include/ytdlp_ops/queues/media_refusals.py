"""What the fleet remembers of media that were refused (403): is it the video, the egress or the client?"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from include.ytdlp_ops.errors import QueueError
from include.ytdlp_ops.queues.scripts import Scripts

if TYPE_CHECKING:
    from redis import Redis

    from include.ytdlp_ops.queues.keys import QueueKeys

log = logging.getLogger(__name__)
VIDEOS_IN_A_ROW = 3
"""As many videos refused to one client, and none served meanwhile: it is not the videos."""


class MediaRefusals:
    """
    The memory of one installation; while Redis does not answer, it remembers nothing.

    Two that write at once may count one refusal less; no more hangs on it.

    :param client: from `connecting.connect`.
    :param keys: of any of its stages.
    """

    def __init__(self, client: Redis, keys: QueueKeys) -> None:
        self._keys = keys
        self._scripts = Scripts(client, patience_seconds=0)

    def extracted(self, egress: str, address: str) -> None:
        """The address that an egress had at its newest extraction."""
        self._ask("hset", self._keys.egress_addresses, egress, address)

    def address_of(self, egress: str) -> str | None:
        """As `extracted` was told last; None if it isn't known."""
        found: bytes | None = self._ask("hget", self._keys.egress_addresses, egress)
        return found.decode() if found else None

    def served(self, player_client: str) -> None:
        """A player client's media came."""
        self._ask("hdel", self._keys.refused_clients, player_client)

    def refused(self, player_client: str, video: str) -> int:
        """A player client's media were refused: of how many videos in a row, this one included."""
        found: bytes | None = self._ask("hget", self._keys.refused_clients, player_client)
        count, _, last = (found or b"0 ").decode().partition(" ")
        in_a_row = int(count) + (last != video)
        self._ask("hset", self._keys.refused_clients, player_client, f"{in_a_row} {video}")
        return in_a_row

    def _ask(self, command: str, *args: str) -> Any:
        try:
            return self._scripts.command(command, *args)
        except QueueError as error:
            log.warning("refusals of media are not remembered: %s", error)
            return None
