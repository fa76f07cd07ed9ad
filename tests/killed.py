"""Processes that are killed (SIGKILL) in the middle of their work, at a step of it."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from include.ytdlp_ops.queues.scripts import Scripts


def is_killed_at(number: int, work: Callable[[], None]) -> bool:
    """
    Run `work` in a process of its own that is killed at its `number`-th step.

    A call to Redis and a commit to SQL are two steps each: before it, and when it is done.

    :param work: opens its own connections.
    :returns: False if it came to its end before.
    """
    child = os.fork()
    if child == 0:
        try:
            _die_at(number)
            work()
        except BaseException:  # noqa: BLE001 - the parent's stack must not go on in the child
            traceback.print_exc(file=sys.__stderr__)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def _die_at(number: int) -> None:
    left = [number]

    def step() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    ask, commit = Scripts.ask, sa.engine.default.DefaultDialect.do_commit

    def ask_between(self: Scripts, question: Callable[[], Any], **options: Any) -> Any:
        step()
        answer = ask(self, question, **options)
        step()
        return answer

    def commit_between(self: Any, connection: Any) -> None:
        step()
        commit(self, connection)  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
        step()

    Scripts.ask = ask_between  # type: ignore[method-assign]  # in the child alone
    sa.engine.default.DefaultDialect.do_commit = commit_between  # type: ignore[method-assign]  # as above
