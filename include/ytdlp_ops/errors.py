"""
Every error that this package raises on purpose.

    YtdlpOpsError
    ├── BadInput                   an element, a URL or a parameter that can't be worked on; says what is wrong
    ├── ConfigurationError         a setting or file that can't be used; says which and how to mend it
    ├── QueueError
    │   ├── CancelRequested        the item is still the caller's: stop, and finish it as skipped
    │   ├── LeaseLost              another worker has the item: stop, touch nothing
    │   ├── UnsafeRedis            this server would lose items; the message says what to change
    │   └── WrongKeyType           a key of ours holds another type of value
    ├── OpsServerError
    │   ├── OpsServerUnavailable   no answer, or an answer that is none of ours
    │   └── ExtractionRefused      it answered: code, outcome, retry_after
    ├── RunNotStarted              Airflow did not start a run for a claimed item
    ├── CeleryUnreachable          a Celery worker was not told what to consume
    └── DownloadFailed             the bytes did not come, or are not what was promised: code, outcome

Domain code raises these; operators alone turn them into Airflow's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from include.ytdlp_ops.codes import Code, Outcome


class YtdlpOpsError(Exception):
    """Base of all."""


class BadInput(YtdlpOpsError):
    """Input that no attempt can work on; the message names the value and what is wrong with it."""


class ConfigurationError(YtdlpOpsError):
    """A setting or file that can't be used; the message names it, its value and the way out."""


class QueueError(YtdlpOpsError):
    """The queue can't do what was asked."""


class CancelRequested(QueueError):
    """The item shall be cancelled, and is still the caller's: stop, finish it as skipped with code cancelled."""


class LeaseLost(QueueError):
    """The token no longer owns the item: stop at once, touch nothing."""


class UnsafeRedis(QueueError):
    """This server would lose items; the message says what to change."""


class WrongKeyType(QueueError):
    """A key of ours holds another type of value; nothing was written."""


class OpsServerError(YtdlpOpsError):
    """The ops server did not give an info."""


class OpsServerUnavailable(OpsServerError):
    """No answer, or one that is not the contract's: host and status are in the message."""


class RunNotStarted(YtdlpOpsError):
    """Airflow did not start a run; the message says which, and why."""


class Refusal(YtdlpOpsError):
    """
    A reason with a code, so that the queue knows what to do with the item.

    :param code: why, from the one enum shared by server, workers and reports.
    :param message: for people; never holds secrets.
    :param outcome: what to do; by default the code's own.
    :param retry_after: seconds to wait before the next attempt, if the site or server said so.
    :param egress: the egress that met the refusal.
    :param account: the account that met the refusal.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        outcome: Outcome | None = None,
        retry_after: float | None = None,
        egress: str | None = None,
        account: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.outcome = outcome or code.outcome
        self.retry_after = retry_after
        self.egress = egress
        self.account = account


class ExtractionRefused(Refusal, OpsServerError):
    """The ops server answered that it has no info for this URL, and why."""


class CeleryUnreachable(YtdlpOpsError):
    """A Celery worker was not told what to consume: the broker, or the worker, does not answer."""


class DownloadFailed(Refusal):
    """The download of one format failed, and why."""
