"""What a Celery worker consumes: a host that rests must not take what it would only hand back."""

from __future__ import annotations

import sys

from include.ytdlp_ops.errors import CeleryUnreachable

REPLY_SECONDS = 5.0


def own_node() -> str | None:
    """The name of the Celery worker that runs this task; nothing under another executor."""
    if "celery" not in sys.modules:
        return None
    from celery import current_task  # type: ignore[import-untyped]  # ships no types

    return str(current_task.request.hostname) if current_task else None


def stop_consuming(node: str, celery_queue: str) -> None:
    """
    Have a Celery worker take nothing more from a Celery queue; what it runs goes on.

    :raises CeleryUnreachable: if it was not told.
    """
    _tell("cancel_consumer", node, celery_queue)


def consume(node: str, celery_queue: str) -> None:
    """
    Have it take from the queue again; one that does so already, or is gone, is left as it is.

    :raises CeleryUnreachable: if it was not told.
    """
    _tell("add_consumer", node, celery_queue)


def _tell(command: str, node: str, celery_queue: str) -> None:
    from airflow.providers.celery.executors.celery_executor_utils import app

    try:
        with app.connection_for_write() as connection:  # its own: a task shares the pool's with its parent
            tell = getattr(app.control, command)
            tell(celery_queue, destination=[node], connection=connection, reply=True, timeout=REPLY_SECONDS)
    except Exception as error:  # noqa: BLE001 - the broker's client raises what it likes
        raise CeleryUnreachable(
            f"Celery worker {node!r} was not told to {command} {celery_queue!r}: {error}"
        ) from None
