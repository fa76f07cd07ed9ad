"""The task of every worker DAG: one item, from its claim to its end."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import Asset, AssetAlias, BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, AirflowTaskTimeout

from include.ytdlp_ops.ending import end_with_parent
from include.ytdlp_ops.errors import CeleryUnreachable
from include.ytdlp_ops.hooks.celery_workers import own_node, stop_consuming
from include.ytdlp_ops.hooks.ops_server import DEFAULT_OPS_SERVER_CONN_ID, OpsServerHook
from include.ytdlp_ops.hooks.redis_queue import DEFAULT_REDIS_CONN_ID, RedisQueueHook

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.ytdlp_ops.downloading.profiles import Destination, Profiles
    from include.ytdlp_ops.queues.queue import Queue
    from include.ytdlp_ops.queues.records import Record
    from include.ytdlp_ops.settings import Settings
    from include.ytdlp_ops.stages.running import Ended, RunningItem
    from include.ytdlp_ops.stages.working import Runner
    from include.ytdlp_ops.storage.info_store import InfoStore
    from include.ytdlp_ops.storage.publishing.destinations import Place


VIDEOS = Asset(name="ytdlp_videos", uri="ytdlp://videos")
"""One event for each published video: id, path, bytes, sha256, codecs, duration. Other DAGs run on it."""

PUBLISHED = AssetAlias(name="ytdlp_videos_published")
"""By way of an alias, since an asset among a task's outlets has an event whenever the task succeeds."""


class WorkOnItemOperator(BaseOperator):
    """
    Work on the item whose claim this run was triggered with; by hand, on a URL or on the next that waits.

    A failed item fails the task, a skipped or deferred one skips it, and so does one that went to another
    worker: the grid tells the truth. Airflow never retries it; attempts belong to the queue.

    :param item_id: id of the claimed item. (templated)
    :param token: the claim's token; empty if triggered by hand. (templated)
    :param url: by hand: the URL to submit and claim; empty for the next that waits. (templated)
    :param queue_base: the installation, if not the default one. (templated)
    :param redis_conn_id: where the queue is.
    :param ops_server_conn_id: where infos come from.
    """

    stage: ClassVar[str]
    publishes: ClassVar[bool] = True
    _told_to_end = False
    template_fields: Sequence[str] = ("item_id", "token", "url", "queue_base")

    def __init__(
        self,
        *,
        item_id: str = "{{ params.id or '' }}",
        token: str = "{{ params.token or '' }}",  # noqa: S107 - a template
        url: str = "{{ params.get('url') or '' }}",
        queue_base: str = "{{ params.queue_base or '' }}",
        redis_conn_id: str = DEFAULT_REDIS_CONN_ID,
        ops_server_conn_id: str = DEFAULT_OPS_SERVER_CONN_ID,
        **kwargs: Any,
    ) -> None:
        if self.publishes:
            kwargs.setdefault("outlets", [PUBLISHED])
        super().__init__(**kwargs)
        self.item_id = item_id
        self.token = token
        self.url = url
        self.queue_base = queue_base
        self.redis_conn_id = redis_conn_id
        self.ops_server_conn_id = ops_server_conn_id

    def work(self, running: RunningItem, settings: Settings, queue: Queue) -> Ended:
        """What the stage does with the item."""
        raise NotImplementedError

    def execute(self, context: Context) -> dict[str, Any]:
        """Begin the item, work on it, and tell Airflow how it ended; returns ids and counts."""
        from include.ytdlp_ops.errors import BadInput, LeaseLost
        from include.ytdlp_ops.settings import Settings
        from include.ytdlp_ops.stages.working import Runner, work_on

        self._told_to_end = False
        end_with_parent(os.getppid(), signal.SIGTERM)  # or a killed supervisor's task would go on, seen by nobody
        settings = Settings.from_env()
        lease_ms = round(settings.lease_seconds * 1000)
        queue = RedisQueueHook(self.redis_conn_id).get_queue(
            self.stage, self.queue_base, running_lease_ms=lease_ms
        )
        try:
            item_id, token = self._claimed(queue)
        except BadInput as error:
            raise AirflowFailException(str(error)) from None
        ti = context["ti"]
        node = own_node()
        runner = Runner(
            host=settings.host,
            dag_id=ti.dag_id,
            run_id=ti.run_id,
            node=node,
            celery_queue=self.queue,
            take_no_more=partial(self._take_no_more, node) if node else None,
        )
        self.log.info("stage %s works on %s", self.stage, item_id)
        try:
            ended = work_on(
                queue, item_id, token, partial(self._work_in_time, settings=settings, queue=queue), runner=runner
            )
        except LeaseLost as error:
            raise AirflowSkipException(f"superseded: {error}") from None
        if published := self.after(ended, settings, queue, runner):
            context["outlet_events"][PUBLISHED].add(VIDEOS, extra=published)
        return self._told(item_id, ended)

    def after(self, ended: Ended, settings: Settings, queue: Queue, runner: Runner) -> dict[str, Any] | None:  # noqa: ARG002 - for those that do
        """What else the run does when its item has ended; returns what is told of a video it has published."""
        return ended.summary if self.publishes else None

    def _take_no_more(self, node: str) -> None:
        """This host's Celery worker takes nothing more from this queue, until the sweeper says so."""
        try:
            stop_consuming(node, self.queue)
        except CeleryUnreachable as error:
            self.log.warning("%s", error)

    def on_kill(self) -> None:
        """Called at SIGTERM: end the work here and now, so that the item is handed back before SIGKILL."""
        from include.ytdlp_ops.stages.running import Terminated

        if not self._told_to_end:  # a second signal must not break the handing back
            self._told_to_end = True
            raise Terminated("the task was told to end")

    def _work_in_time(self, running: RunningItem, settings: Settings, queue: Queue) -> Ended:
        """The work; where it takes longer than `execution_timeout`, that is a failure like others."""
        from include.ytdlp_ops.codes import Code
        from include.ytdlp_ops.errors import Refusal

        try:
            return self.work(running, settings, queue)
        except AirflowTaskTimeout:
            raise Refusal(Code.TIMED_OUT, f"not done within execution_timeout={self.execution_timeout}") from None

    def info_store(self, settings: Settings, queue: Queue) -> InfoStore:
        """Where infos lie between auth and dl."""
        from include.ytdlp_ops.storage.info_store import open_info_store

        return open_info_store(settings.info_store, redis=queue.client)

    def _claimed(self, queue: Queue) -> tuple[str, str]:
        """The claim that this run was triggered with, or one made now."""
        from include.ytdlp_ops.stages.working import claim_by_hand

        if self.token:
            return self.item_id, self.token
        record = claim_by_hand(queue, self.url)
        if record is None:
            what = f"{self.url!r} runs or is done already" if self.url else f"{queue.keys.inbox} is empty"
            raise AirflowSkipException(f"nothing to do: {what}")
        return record["id"], record["token"]

    def _told(self, item_id: str, ended: Ended) -> dict[str, Any]:
        from include.ytdlp_ops.queues.keys import Place

        said = f"{item_id}: {ended.place or 'handed back'} {ended.code or ''} {ended.message}".rstrip()
        if ended.place is Place.RESULT:
            self.log.info("%s", said)
            return ended.summary or {}
        if ended.place in (Place.SKIPPED, Place.DEFERRED):
            raise AirflowSkipException(said)
        raise AirflowFailException(said)


class AuthenticateUrlOperator(WorkOnItemOperator):
    """
    Turn a URL into an info, and into one job for each format that is wanted.

    Parameters are those of :class:`WorkOnItemOperator`.
    """

    stage = "auth"
    publishes = False

    def work(self, running: RunningItem, settings: Settings, queue: Queue) -> Ended:
        """Extract by the ops server, keep the infos, push the format jobs."""
        from include.ytdlp_ops.stages.auth import run_auth

        with OpsServerHook(self.ops_server_conn_id).get_conn() as server:
            store = self.info_store(settings, queue)
            return run_auth(running, server=server, store=store, settings=settings, profiles=profiles_of(settings))


class DownloadFormatOperator(WorkOnItemOperator):
    """
    Download one format and put the verified file into staging; publish the video if it was its last.

    Parameters are those of :class:`WorkOnItemOperator`; `url` is not used: a format job is made by auth alone.
    """

    stage = "dl"

    def work(self, running: RunningItem, settings: Settings, queue: Queue) -> Ended:
        """Download through the egress that extracted, verify, place."""
        from include.ytdlp_ops.stages.dl import run_dl

        store = self.info_store(settings, queue)
        return run_dl(running, store=store, settings=settings, profiles=profiles_of(settings))

    def after(self, ended: Ended, settings: Settings, queue: Queue, runner: Runner) -> dict[str, Any] | None:
        """Publish in place what this end has claimed, then tidy up."""
        from include.ytdlp_ops.stages.cleaning import clean_leftovers

        published = None
        if ended.publishes:  # first: its lease runs
            published = self._publish_in_place(ended.publishes, settings, queue, runner)
        clean_leftovers(queue, settings)
        self._tell_ops_server(ended)
        return published

    def _publish_in_place(
        self, claimed: Record, settings: Settings, queue: Queue, runner: Runner
    ) -> dict[str, Any] | None:
        """Publish a video in this run; if that fails, its record in publish says why."""
        from include.ytdlp_ops.errors import LeaseLost
        from include.ytdlp_ops.queues.queue import Queue
        from include.ytdlp_ops.stages.working import work_on

        publish = Queue(
            queue.client,
            "publish",
            queue_base=queue.keys.queue_base,
            running_lease_ms=queue.running_lease_ms,
        )
        work = partial(publish_item, store=self.info_store(settings, queue), settings=settings)
        video = claimed["id"]
        try:
            published = work_on(publish, video, claimed["token"], work, runner=runner)
        except LeaseLost as error:
            self.log.warning("publish went to another run: %s", error)
            return None
        self.log.info("publish %s: %s %s", video, published.place or "handed back", published.message)
        return published.summary

    def _tell_ops_server(self, ended: Ended) -> None:
        """What the egress met later counts for its health; a server that does not listen changes nothing."""
        from include.ytdlp_ops.errors import OpsServerError

        if not ended.egress or ended.code is None:
            return
        try:
            with OpsServerHook(self.ops_server_conn_id).get_conn() as server:
                server.outcome(ended.egress, ended.code, account=ended.account, stage=self.stage)
        except OpsServerError as error:
            self.log.warning("the ops server was not told: %s", error)


class PublishVideoOperator(WorkOnItemOperator):
    """
    Merge a video's formats, write its sidecars, and move all to the destination.

    Parameters are those of :class:`WorkOnItemOperator`; `url` is not used: the join alone makes publish items.
    """

    stage = "publish"

    def work(self, running: RunningItem, settings: Settings, queue: Queue) -> Ended:
        """Merge, publish, verify there, delete staging."""
        return publish_item(running, store=self.info_store(settings, queue), settings=settings)


class ArchiveUrlOperator(WorkOnItemOperator):
    """
    Do it all in one run: auth, every wanted format, and publish.

    Parameters are those of :class:`WorkOnItemOperator`.
    """

    stage = "v01"

    def work(self, running: RunningItem, settings: Settings, queue: Queue) -> Ended:  # noqa: ARG002 - as the others
        """Extract by the ops server, download, verify, merge and publish."""
        from include.ytdlp_ops.stages.v01 import run_v01

        with OpsServerHook(self.ops_server_conn_id).get_conn() as server:
            return run_v01(
                running, server=server, settings=settings, profiles=profiles_of(settings), opener=open_place
            )


def publish_item(running: RunningItem, *, store: InfoStore, settings: Settings) -> Ended:
    """The stage publish, with Airflow's connections for its destinations."""
    from include.ytdlp_ops.stages.publish import run_publish

    return run_publish(running, store=store, settings=settings, profiles=profiles_of(settings), opener=open_place)


def profiles_of(settings: Settings) -> Profiles:
    """The profiles of this host."""
    from include.ytdlp_ops.downloading.profile_files import load_profiles

    return load_profiles(settings.profiles_file)


def open_place(destination: Destination) -> Place:
    """The place that a destination names; credentials come from its Airflow connection, if it has one."""
    from include.ytdlp_ops.hooks.destinations import DestinationHook
    from include.ytdlp_ops.stages.publish import open_without_connection

    if not destination.conn_id:
        return open_without_connection(destination)
    return DestinationHook(destination.conn_id).open(destination.path, destination.options)
