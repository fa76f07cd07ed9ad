"""Leftovers of dead attempts on this host: removed by age, never those of an item in progress."""

from __future__ import annotations

import time

from include.ytdlp_ops.downloading.cleaning import clean_work_dir
from include.ytdlp_ops.queues.keys import Place, Stage
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.reading import pages
from include.ytdlp_ops.queues.records import read_record
from include.ytdlp_ops.settings import Settings

EVERY_SECONDS = 3600.0
OLD_SECONDS = 24 * 3600.0
_MARK = ".cleaned"


def clean_leftovers(queue: Queue, settings: Settings) -> int:
    """
    Clean the work directory, once an hour whoever asks; how many attempts' directories were removed.

    :param queue: any stage's; the tokens of all stages are looked at.
    """
    mark = settings.work_dir / _MARK
    if not settings.work_dir.is_dir() or (mark.exists() and mark.stat().st_mtime > time.time() - EVERY_SECONDS):
        return 0
    mark.touch()
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
