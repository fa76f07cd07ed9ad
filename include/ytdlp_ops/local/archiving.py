"""One run: wait until the stack is ready, hand URLs in, show how they get on, report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from include.ytdlp_ops.local.airflow_client import AirflowClient
from include.ytdlp_ops.local.folder import write_private
from include.ytdlp_ops.local.stack import Stack
from include.ytdlp_ops.local.telling import Screen, as_report, summary
from include.ytdlp_ops.local.watching import SeenUrl, Watch
from include.ytdlp_ops.models import UrlItem
from include.ytdlp_ops.queues.connecting import connect

LOOK_SECONDS = 0.2


class Run:
    """
    One run of a stack that is starting.

    :param stack: entered, perhaps not ready yet.
    :param screen: where the run is shown.
    :param started: `time.monotonic()` of the run's beginning.
    """

    def __init__(self, stack: Stack, screen: Screen, started: float) -> None:
        self._stack = stack
        self._screen = screen
        self._started = started
        self._report: dict[str, Any] = {"airflow_url": stack.airflow_url, "seconds_to_first_file": None}

    def archive(self, items: Sequence[UrlItem], *, timeout_seconds: float) -> bool:
        """
        Hand the items in and wait for their ends; what became of them is in ``last_run.json``.

        :returns: whether all ended in time.
        :raises PartDied: if a part of the stack ends meanwhile.
        """
        for problem in self._stack.wait_ready():
            self._screen.say(f"this DAG file can't be imported: {problem}")
        self._report["seconds_to_ready"] = self._seconds()
        self._screen.say(f"ready; {self._ui()}")
        client = connect(self._stack.redis_address)
        try:
            urls = self._watch(Watch(client, items), self._seconds() + timeout_seconds)
        finally:
            client.close()
        ended = all(url.ended for url in urls)
        self._report |= {"seconds_in_all": self._seconds(), "urls": as_report(urls)}
        write_private(self._stack.folder.root / "last_run.json", self._report)
        self._screen.say("all have ended" if ended else f"not all have ended within {timeout_seconds:.0f} s")
        self._screen.lines([*summary(urls), self._ui()])
        return ended

    def settle(self, seconds: float = 15.0) -> None:
        """
        Let runs end whose items have ended: to Airflow they have not yet. Not for long: others may take hours.

        :raises PartDied: if a part of the stack ends meanwhile.
        """
        deadline = time.monotonic() + seconds
        with AirflowClient(self._stack.airflow_url, *self._stack.login) as client:
            while not client.is_idle() and time.monotonic() < deadline:
                self._stack.check()
                time.sleep(LOOK_SECONDS)

    def stay(self) -> None:
        """
        Watch over the stack until a signal raises.

        :raises PartDied: if a part of it ends.
        """
        self._screen.say("Ctrl-C ends everything; what is queued stays for the next run")
        while True:
            self._stack.check()
            time.sleep(LOOK_SECONDS)

    def _watch(self, watch: Watch, until: float) -> list[SeenUrl]:
        with self._screen.live():
            while True:
                urls = watch.look()
                self._screen.show(urls)
                if self._report["seconds_to_first_file"] is None and any(url.files for url in urls):
                    self._report["seconds_to_first_file"] = self._seconds()
                if all(url.ended for url in urls) or self._seconds() > until:
                    return urls
                self._stack.check()
                time.sleep(LOOK_SECONDS)

    def _seconds(self) -> float:
        return round(time.monotonic() - self._started, 3)

    def _ui(self) -> str:
        user, password = self._stack.login
        return f"Airflow: {self._stack.airflow_url} (user {user}, password {password})"
