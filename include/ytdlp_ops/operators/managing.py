"""The task of the DAG that operators work with: look at the queues, and change them by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from include.ytdlp_ops.hooks.redis_queue import DEFAULT_REDIS_CONN_ID, RedisQueueHook

if TYPE_CHECKING:
    from airflow.sdk import Context


class ManageQueuesOperator(BaseOperator):
    """
    Do the action that the run's form asks for; what changes something is a dry run unless told otherwise.

    The form's fields are those of `queues.asking.Request`; they are checked before anything is touched.

    :param redis_conn_id: where the queues are.
    """

    def __init__(self, *, redis_conn_id: str = DEFAULT_REDIS_CONN_ID, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.redis_conn_id = redis_conn_id

    def execute(self, context: Context) -> dict[str, Any]:
        """Do the action; returns counts and a few ids."""
        from include.ytdlp_ops.errors import YtdlpOpsError
        from include.ytdlp_ops.hooks.exchange_files import files_for
        from include.ytdlp_ops.queues.asking import Request
        from include.ytdlp_ops.queues.managing import perform
        from include.ytdlp_ops.settings import Settings

        try:
            request = Request.of(dict(context["params"]))
            client = RedisQueueHook(self.redis_conn_id).get_conn()
            done = perform(client, request, files_for(request.file, Settings.from_env()))
        except YtdlpOpsError as error:
            raise AirflowFailException(str(error)) from None
        for line in done.lines:
            self.log.info("%s", line)
        return done.summary
