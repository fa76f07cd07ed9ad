"""One host without Airflow: its directories, and the stages auth, dl and publish run one after the other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.ytdlp_ops.downloading.profiles import Profiles
from include.ytdlp_ops.ops_server.client import OpsServerClient
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.records import Record
from include.ytdlp_ops.settings import Settings
from include.ytdlp_ops.stages.auth import run_auth
from include.ytdlp_ops.stages.dl import run_dl
from include.ytdlp_ops.stages.publish import open_without_connection, run_publish
from include.ytdlp_ops.stages.running import Ended, RunningItem
from include.ytdlp_ops.stages.working import Runner, work_on
from include.ytdlp_ops.storage.info_store import open_info_store
from tests.offline_youtube import OfflineYouTube

if TYPE_CHECKING:
    from redis import Redis


class Pipeline:
    """
    The host.

    :param home: all of its directories are in here.
    """

    def __init__(
        self, client: Redis, site: OfflineYouTube, server: OpsServerClient, home: Path, profiles: Profiles
    ) -> None:
        self.settings = Settings(
            output_dir=home / "output",
            staging_dir=home / "staging",
            work_dir=home / "work",
            info_store=f"file://{home}/infos",
            ca_file=site.bundle_file,
            reserve_bytes=0,
        )
        self.site, self.server, self.home, self.profiles = site, server, home, profiles
        self.store = open_info_store(self.settings.info_store)
        self._claimed: Record | None = None
        self.auth, self.dl, self.publish = (
            Queue(client, stage) for stage in (Stage.AUTH, Stage.DL, Stage.PUBLISH)
        )

    def extract(self, video_id: str, **asked: Any) -> Record:
        """A video through auth; its record, wherever it is."""
        self.auth.submit([json.dumps({"url": video_id, **asked})])
        return self.extract_next()

    def extract_next(self) -> Record:
        """The next video through auth; its record, wherever it is."""
        (record,) = self.auth.claim(1).records
        self._work(self.auth, record, self._auth)
        return self.record(self.auth, record["id"])

    def download(self) -> Ended:
        """The next format job through dl; what it claims for publish is kept for `publish_next`."""
        (record,) = self.dl.claim(1).records
        ended = self._work(self.dl, record, self._dl)
        self._claimed = ended.publishes or self._claimed
        return ended

    def publish_next(self) -> Record:
        """The video whose last format has come, through publish; its record, wherever it is."""
        record, self._claimed = self._claimed, None
        assert record
        self._work(self.publish, record, self._publish)
        return self.record(self.publish, record["id"])

    def archive(self, video_id: str, **asked: Any) -> Record:
        """A video through all stages; its record in publish, wherever it is."""
        self.auth.submit([json.dumps({"url": video_id, **asked})])
        return self.archive_next()

    def archive_next(self) -> Record:
        """The next video through all stages; its record in publish, wherever it is."""
        record = self.extract_next()
        assert record["place"] == Place.RESULT, (record["code"], record["message"])
        ended = [self.download() for _ in record["jobs"]]
        assert ended[-1].publishes, [(each.code, each.message) for each in ended]
        return self.publish_next()

    def record(self, queue: Queue, item_id: str) -> Record:
        """An item's record, with the place that it is in."""
        found = queue.find(item_id)
        assert found, f"{item_id} is nowhere"
        return {**found[1], "place": found[0]}

    def _work(self, queue: Queue, record: Record, work: Callable[[RunningItem], Ended]) -> Ended:
        return work_on(queue, record["id"], record["token"], work, runner=Runner(host="here"))

    def _auth(self, item: RunningItem) -> Ended:
        return run_auth(item, server=self.server, store=self.store, settings=self.settings, profiles=self.profiles)

    def _dl(self, item: RunningItem) -> Ended:
        return run_dl(item, store=self.store, settings=self.settings, profiles=self.profiles)

    def _publish(self, item: RunningItem) -> Ended:
        return run_publish(
            item,
            store=self.store,
            settings=self.settings,
            profiles=self.profiles,
            opener=open_without_connection,
        )


def files_in(folder: Path) -> list[Path]:
    """Every file below a folder, also where it isn't there."""
    return sorted(path for path in folder.rglob("*") if path.is_file())
