"""Leftovers of dead attempts on this host: removed by age, never those of an item in progress."""

from __future__ import annotations

import logging
import time

from include.ytdlp_ops.downloading.cleaning import clean_work_dir
from include.ytdlp_ops.errors import DownloadFailed
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.reading import pages
from include.ytdlp_ops.queues.records import read_record
from include.ytdlp_ops.settings import Settings
from include.ytdlp_ops.storage.info_store import open_info_store

log = logging.getLogger(__name__)
EVERY_SECONDS = 3600.0
OLD_SECONDS = 24 * 3600.0
_MARK = ".cleaned"


def clean_leftovers(queue: Queue, settings: Settings) -> int:
    """
    Clean the work directory and the info store, once an hour whoever asks; how many attempts' directories went.

    Of the infos those go whose media URLs ended a day ago, and those of videos a day after `KEEP_SECONDS`.

    :param queue: any stage's; the tokens of all stages are looked at.
    """
    mark = settings.work_dir / _MARK
    if not settings.work_dir.is_dir() or (mark.exists() and mark.stat().st_mtime > time.time() - EVERY_SECONDS):
        return 0
    mark.touch()
    _trim_infos(queue, settings)
    base = queue.keys.queue_base
    queues = [Queue(queue.client, stage, queue_base=base) for stage in (Stage.DL, Stage.PUBLISH)]
    queues.append(Queue(queue.client, Stage.V01))
    tokens = {
        str(read_record(raw).get("token"))
        for each in queues
        for page in pages(each, Place.PROGRESS)
        for _, raw in page
    }
    return clean_work_dir(settings.work_dir, tokens, OLD_SECONDS)


def _trim_infos(queue: Queue, settings: Settings) -> None:
    try:
        trimmed = open_info_store(settings.info_store, redis=queue.client).trim(OLD_SECONDS)
    except DownloadFailed as error:  # no work of this run's
        log.warning("infos that nobody came for were not removed: %s", error)
    else:
        if trimmed:
            log.info("removed %d infos that nobody came for", trimmed)
