"""What the breaker makes of an end, and how a circuit reads."""

from __future__ import annotations

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.queues.circuit import SYSTEMIC, Circuit, class_of
from include.ytdlp_ops.queues.keys import Place


@pytest.mark.parametrize(
    ("place", "code", "wanted"),
    [
        (Place.RESULT, "", "ok"),
        (Place.SKIPPED, Code.PRIVATE, "ok"),
        (Place.FAIL, Code.BOT_CHECK, "bot_check"),
        (Place.DEFERRED, Code.HTTP_429, "rate_limit"),
        (Place.FAIL, "proxy", "proxy"),
        (Place.FAIL, Code.HTTP_403, "forbidden"),
        (Place.SKIPPED, Code.UNAVAILABLE_UNEXPLAINED, "ok"),
        (Place.SKIPPED, Code.MEDIA_403, "forbidden"),
        (Place.FAIL, Code.NETWORK, "undecided"),
        (Place.FAIL, "", "undecided"),
        (Place.DEFERRED, Code.UPCOMING, "ok"),
        (Place.DEFERRED, Code.DISK, "undecided"),
    ],
)
def test_an_end_has_a_class(place: Place, code: object, wanted: str) -> None:
    assert class_of(place, code) == wanted


def test_of_the_codes_that_skip_a_video_only_a_403_of_media_is_systemic() -> None:
    assert [code for code in SYSTEMIC if code.outcome is Outcome.SKIP] == [Code.MEDIA_403]


def test_a_closed_circuit_says_nothing() -> None:
    circuit = Circuit()

    assert (str(circuit), circuit.may_claim) == ("", True)


def test_an_open_and_paused_circuit_says_both() -> None:
    circuit = Circuit.of(
        {
            b"state": b"open",
            b"reason": b"bot_check",
            b"share": b"8 of the last 20",
            b"until": b"12:00",
            b"x": b"y",
        },
        {b"since": b"11:00", b"reason": b"new proxies"},
    )

    assert not circuit.may_claim
    assert str(circuit) == (
        "paused since 11:00: new proxies; "
        "circuit open: 8 of the last 20 ended bot_check; nothing is claimed until 12:00"
    )


def test_no_two_classes_have_one_letter() -> None:
    classes = {"ok", "undecided", *SYSTEMIC.values()}

    assert len({name[0] for name in classes}) == len(classes)
