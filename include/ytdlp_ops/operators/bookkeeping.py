"""The tasks that keep the ledger: archive, report, and take jobs in from SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException, AirflowSkipException

from include.ytdlp_ops.hooks.ledger import DEFAULT_LEDGER_CONN_ID, LedgerHook
from include.ytdlp_ops.hooks.redis_queue import DEFAULT_REDIS_CONN_ID, RedisQueueHook

if TYPE_CHECKING:
    import sqlalchemy as sa
    from airflow.sdk import Context


class _LedgerOperator(BaseOperator):
    """
    What the ledger's tasks share. Without a connection to a ledger there is nothing to do: skipped.

    :param ledger_conn_id: where the ledger is.
    :param redis_conn_id: where the queues are.
    """

    def __init__(
        self,
        *,
        ledger_conn_id: str = DEFAULT_LEDGER_CONN_ID,
        redis_conn_id: str = DEFAULT_REDIS_CONN_ID,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.ledger_conn_id = ledger_conn_id
        self.redis_conn_id = redis_conn_id

    def work(self, engine: sa.Engine, params: dict[str, Any]) -> dict[str, Any]:
        """What the task does with the ledger; returns counts."""
        raise NotImplementedError

    def execute(self, context: Context) -> dict[str, Any]:
        """Open the ledger and work; returns counts."""
        import sqlalchemy as sa

        from include.ytdlp_ops.errors import YtdlpOpsError

        try:
            engine = LedgerHook(self.ledger_conn_id).get_engine()
        except AirflowNotFoundException:
            raise AirflowSkipException(
                f"there is no ledger: make a connection {self.ledger_conn_id!r} to have one"
            ) from None
        except YtdlpOpsError as error:
            raise AirflowFailException(str(error)) from None
        try:
            return self.work(engine, dict(context["params"]))
        except YtdlpOpsError as error:
            raise AirflowFailException(str(error)) from None
        except sa.exc.SQLAlchemyError as error:
            raise AirflowFailException(f"the ledger's database refused: {error}; run it again") from None
        finally:
            engine.dispose()


class KeepLedgerOperator(_LedgerOperator):
    """Do what the run's form asks for: ``archive``, or ``report``."""

    def work(self, engine: sa.Engine, params: dict[str, Any]) -> dict[str, Any]:
        """Archive every stage and forget what is too old; or report."""
        actions = {"archive": self._archive, "report": self._report}
        if params["action"] not in actions:
            raise AirflowFailException(f"action {params['action']!r} is none of {', '.join(actions)}")
        return actions[params["action"]](engine, params)

    def _archive(self, engine: sa.Engine, params: dict[str, Any]) -> dict[str, Any]:
        from dataclasses import asdict
        from datetime import timedelta

        from include.ytdlp_ops.ledger.archiving import archive, forget
        from include.ytdlp_ops.queues.keys import Stage

        hook, counted = RedisQueueHook(self.redis_conn_id), dict[str, Any]()
        for stage in Stage:
            queue = hook.get_queue(stage, params["queue_base"])
            keep_seconds = float(params["keep_hours"]) * 3600
            archived = archive(queue, engine, keep_seconds=keep_seconds, everything=params["everything"])
            counted[stage] = asdict(archived)
            self.log.info("stage %s: %s", stage, ", ".join(f"{n} {what}" for what, n in counted[stage].items()))
        if params["retention_days"]:
            counted["rows_forgotten"] = forget(engine, older_than=timedelta(days=float(params["retention_days"])))
            self.log.info("%d rows of the ledger were older than %s days", counted["rows_forgotten"],
                          params["retention_days"])  # fmt: skip
        return counted

    def _report(self, engine: sa.Engine, params: dict[str, Any]) -> dict[str, Any]:
        from include.ytdlp_ops.hooks.exchange_files import files_for
        from include.ytdlp_ops.ledger.presenting import reports_of, written
        from include.ytdlp_ops.settings import Settings

        reports = reports_of(
            engine, params["report"], since_hours=float(params["since_hours"]), queue_base=params["queue_base"]
        )
        for report in reports:
            for line in report.as_table():
                self.log.info("%s", line)
        files = files_for("", Settings.from_env())
        return {"files": written(reports, files, chart=params["chart"])}


class TakeInJobsOperator(_LedgerOperator):
    """Take rows of `pending_jobs` into an inbox, and write back what became of those taken before."""

    def work(self, engine: sa.Engine, params: dict[str, Any]) -> dict[str, Any]:
        """Write back, then take in; returns counts."""
        from include.ytdlp_ops.ledger.answering import Queues, write_back
        from include.ytdlp_ops.ledger.intake import take_in

        queue = RedisQueueHook(self.redis_conn_id).get_queue(params["stage"], params["queue_base"])
        completed = write_back(Queues.of(queue, until=params["until"]), engine)
        room = int(params["most_waiting"]) - queue.depths()["inbox"]
        taken = take_in(queue, engine, most=max(0, min(int(params["most"]), room)))
        self.log.info(
            "%d rows completed, %d taken into %s (room for %d), %d refused",
            *(completed, taken.submitted, queue.keys.inbox, max(0, room), taken.refused),
        )
        return {"completed": completed, "submitted": taken.submitted, "refused": taken.refused}
