"""What goes into a diagnosis and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass

from include.ytdlp_ops.codes import Code, Outcome


@dataclass(frozen=True, kw_only=True)
class Playability:
    """
    What one player client was told of a video.

    :param status: playabilityStatus: ``OK``, ``ERROR``, ``LOGIN_REQUIRED``, …
    :param reason: the reason beside it, as the site worded it.
    :param screen: the kind of error screen: ``playerCaptchaViewModel``.
    :param starts: when a live begins, ISO 8601.
    :param client: yt-dlp's name of the client.
    """

    status: str | None = None
    reason: str | None = None
    screen: str | None = None
    starts: str | None = None
    client: str | None = None


@dataclass(frozen=True, kw_only=True)
class Signal:
    """
    All that is known of one failure.

    :param stage: ``auth`` (extraction) or ``download``.
    :param text: what yt-dlp said.
    :param classes: names of the exception's classes, the outermost first, then what it wrapped.
    :param status: HTTP status of the answer that failed.
    :param host: host of that answer.
    :param errno: of an `OSError` that is not the network's.
    :param playability: what each player client was told.
    :param warned: the parts of yt-dlp's warnings that explain a failure: ``HTTP Error 429``.
    :param countries: where a video plays, if the site said so.
    :param media_url: the URL that was being downloaded.
    """

    stage: str
    text: str = ""
    classes: tuple[str, ...] = ()
    status: int | None = None
    host: str | None = None
    errno: int | None = None
    playability: tuple[Playability, ...] = ()
    warned: tuple[str, ...] = ()
    countries: tuple[str, ...] = ()
    media_url: str | None = None


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """
    Why, and what to do.

    :param message: for people; holds no query string and no secret.
    :param rule: the rule that decided, for counting: ``status:429``, ``text:bot``, ``unknown``.
    :param retry_after: seconds; given where the outcome is `Outcome.DEFER`.
    :param countries: where the video plays, if the site said so.
    """

    code: Code
    outcome: Outcome
    message: str
    rule: str
    retry_after: float | None = None
    countries: tuple[str, ...] = ()
