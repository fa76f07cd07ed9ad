"""A task for people: look at the ops server's egresses and accounts, and act on one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from include.ytdlp_ops.errors import Refusal, YtdlpOpsError
from include.ytdlp_ops.hooks.ops_server import DEFAULT_OPS_SERVER_CONN_ID, OpsServerHook

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.ytdlp_ops.ops_server.client import Kind, OpsServerClient, StandingAnswer

KINDS = ("egress", "account")


class ManageOpsServerOperator(BaseOperator):
    """
    Look at the pool of the ops server, or act on one of it.

    ``list`` shows how all stand; ``ban``, ``unban`` and ``reset`` act on one; ``test`` has a URL extracted through
    it, and fails with the site's own reason where that does not work.

    :param action: ``list``, ``ban``, ``unban``, ``reset`` or ``test``. (templated)
    :param kind: ``egress`` or ``account``. (templated)
    :param name: which one; not needed for ``list``. (templated)
    :param reason: of a ban, for people. (templated)
    :param url: what to extract for ``test``. (templated)
    :param ops_server_conn_id: which ops server.
    """

    template_fields: Sequence[str] = ("action", "kind", "name", "reason", "url")

    def __init__(
        self,
        *,
        action: str = "{{ params.action }}",
        kind: str = "{{ params.kind }}",
        name: str = "{{ params.name or '' }}",
        reason: str = "{{ params.reason or '' }}",
        url: str = "{{ params.url or '' }}",
        ops_server_conn_id: str = DEFAULT_OPS_SERVER_CONN_ID,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.action = action
        self.kind = kind
        self.name = name
        self.reason = reason
        self.url = url
        self.ops_server_conn_id = ops_server_conn_id

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Do the action; returns names and states, or what the test gave."""
        actions: dict[str, Callable[[OpsServerClient], dict[str, Any]]] = {
            "list": self._list, "ban": self._override, "unban": self._override, "reset": self._override,
            "test": self._test,
        }  # fmt: skip
        if self.action not in actions:
            raise AirflowFailException(f"action {self.action!r} is none of {', '.join(actions)}")
        if self.kind not in KINDS:
            raise AirflowFailException(f"kind {self.kind!r} is none of {', '.join(KINDS)}")
        if self.action != "list" and not self.name:
            raise AirflowFailException(f"name: say which {self.kind} to {self.action}; the action list shows them")
        try:
            with OpsServerHook(self.ops_server_conn_id).get_conn() as client:
                return actions[self.action](client)
        except Refusal as refusal:
            raise AirflowFailException(f"{refusal.code} ({refusal.outcome}): {refusal.message}") from None
        except YtdlpOpsError as error:
            raise AirflowFailException(str(error)) from None

    def _list(self, client: OpsServerClient) -> dict[str, Any]:
        found = {"egresses": client.egresses(), "accounts": client.accounts()}
        for kind, listed in found.items():
            for line in as_table(kind, listed):
                self.log.info("%s", line)
        return {kind: {one.name: one.state for one in listed} for kind, listed in found.items()}

    def _override(self, client: OpsServerClient) -> dict[str, Any]:
        kind = cast("Kind", self.kind)
        if self.action == "ban":
            client.ban(self.name, kind=kind, reason=self.reason or "by hand")
        elif self.action == "unban":
            client.unban(self.name, kind=kind)
        else:
            client.reset(self.name, kind=kind)
        self.log.info("%s %s: %s done", self.kind, self.name, self.action)
        return {self.kind: self.name, "action": self.action}

    def _test(self, client: OpsServerClient) -> dict[str, Any]:
        if not self.url:
            raise AirflowFailException("url: give the video to test with")
        answer = client.info(self.url, **{self.kind: self.name})  # type: ignore[arg-type]  # egress or account
        found = {
            "egress": answer.egress,
            "account": answer.account,
            "client": answer.client,
            "formats": len(answer.info.get("formats") or ()),
            "height": max((each.get("height") or 0 for each in answer.info.get("formats") or ()), default=0),
            "warnings": len(answer.warnings),
        }
        self.log.info("%s: %s", self.url, ", ".join(f"{name} {value}" for name, value in found.items()))
        for warning in answer.warnings:
            self.log.warning("yt-dlp: %s", warning)
        return found


def as_table(kind: str, listed: Iterable[StandingAnswer]) -> list[str]:
    """The lines that say how they stand."""
    lines = [f"{kind:20} {'state':8} {'asked/h':>9} {'ok':>5}  why"]
    for one in listed:
        share = "-" if one.success_share is None else f"{one.success_share:.0%}"
        budget = f"{one.asked_last_hour}/{one.hourly or '∞'}"
        lines.append(f"{one.name:20} {one.state:8} {budget:>9} {share:>5}  {one.reason or ''}".rstrip())
    return lines
