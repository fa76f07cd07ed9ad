"""From a claimed item to its end, whatever the stage: begin, work, and one record for every way it can go."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import (
    BadInput,
    CancelRequested,
    ConfigurationError,
    OpsServerUnavailable,
    QueueError,
    Refusal,
)
from include.ytdlp_ops.queues.queue import Queue
from include.ytdlp_ops.queues.records import Record
from include.ytdlp_ops.queues.resting import rest
from include.ytdlp_ops.stages.running import HOST_AGAIN_SECONDS, Ended, RunningItem, Terminated

log = logging.getLogger(__name__)
StageWork = Callable[[RunningItem], Ended]


@dataclass(frozen=True, kw_only=True)
class Runner:
    """
    Who works: this host and this Airflow run.

    :param host: this host's name.
    :param dag_id: of the run.
    :param run_id: of the run.
    :param node: the Celery worker that runs it, if one does.
    :param celery_queue: that it took the run from.
    :param take_no_more: has this host's worker take nothing more from there, until its rest is over.
    """

    host: str = ""
    dag_id: str | None = None
    run_id: str | None = None
    node: str | None = None
    celery_queue: str | None = None
    take_no_more: Callable[[], None] | None = None


def claim_by_hand(queue: Queue, url: str | None) -> Record | None:
    """
    The item of a run that was triggered by hand: the given URL, or else the next that waits.

    :raises BadInput: if the URL is none.
    """
    if url:
        return queue.take(queue.stage.model.from_inbox(url.encode()))
    records = queue.claim(1).records
    return records[0] if records else None


def work_on(queue: Queue, item_id: str, token: str, work: StageWork, *, runner: Runner) -> Ended:
    """
    Begin an item, work on it, and see to it that it ends.

    :param work: what the stage does; ends the item itself where it succeeds.
    :raises LeaseLost: if the item was no longer this run's, at its begin or end; nothing was touched then.
    """
    record = queue.begin(item_id, token, host=runner.host, dag_id=runner.dag_id, run_id=runner.run_id)
    with RunningItem(queue, record) as running:
        try:
            return work(running)
        except Terminated as error:
            return running.hand_back(str(error))
        except CancelRequested as error:
            return running.refused(Refusal(Code.CANCELLED, str(error)))
        except QueueError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever happens, the item gets a record
            return _given_up(running, as_refusal(error), runner)


def _given_up(running: RunningItem, refusal: Refusal, runner: Runner) -> Ended:
    """
    What is this host's fault goes back to the others, unchanged, and this host rests.

    Where it comes to this host again all the same, since the claimer is another host, it is put off: handed back
    it would go round and round.
    """
    if refusal.outcome is not Outcome.OPERATOR:
        return running.refused(refusal)
    why = f"{refusal.code} on {runner.host}: {refusal.message}"
    rest(running.queue, runner.host, why, node=runner.node, celery_queue=runner.celery_queue)
    if runner.take_no_more:  # before the item can be claimed again, and come back to here
        runner.take_no_more()
    if runner.host in (running.item.not_hosts or {}):
        refusal.retry_after = refusal.retry_after or HOST_AGAIN_SECONDS
        return running.refused(refusal)
    return running.hand_back(why, not_host=runner.host)


def as_refusal(error: Exception) -> Refusal:
    """The code and outcome of an error that a stage raised; what is not ours is unknown, and retried."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, OpsServerUnavailable):
        return Refusal(Code.OPS_SERVER_UNAVAILABLE, str(error))
    if isinstance(error, BadInput):
        return Refusal(Code.BAD_INPUT, str(error))
    if isinstance(error, ConfigurationError):
        return Refusal(Code.CONFIGURATION, str(error))
    where = traceback.extract_tb(error.__traceback__)[-1]
    log.error("unexpected error, the item will be tried again", exc_info=error)
    return Refusal(Code.UNKNOWN, f"{type(error).__name__} in {where.name}: {error}"[:500])
