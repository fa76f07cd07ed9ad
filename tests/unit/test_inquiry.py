"""Who is asked next, and what several answers mean together: the course of a request, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from include.ytdlp_ops.codes import Code, Outcome
from include.ytdlp_ops.errors import ExtractionRefused
from include.ytdlp_ops.ops_server.blaming import verdicts
from include.ytdlp_ops.ops_server.config import OpsServerConfig
from include.ytdlp_ops.ops_server.contract import InfoRequest
from include.ytdlp_ops.ops_server.inquiry import Inquiry, Step
from include.ytdlp_ops.ops_server.jobs import SiteRefused
from include.ytdlp_ops.ops_server.standing import Effect, NoneReady

EGRESSES: list[dict[str, Any]] = [
    {"name": "us1", "country": "US"},
    {"name": "us2", "country": "US"},
    {"name": "de1", "country": "DE", "tags": ["news"]},
]
ACCOUNTS: list[dict[str, Any]] = [
    {"name": "anna", "cookies": "a"},
    {"name": "ben", "cookies": "b"},
    {"name": "vip", "cookies": "c", "tags": ["vip"]},
]


def inquiry(accounts: list[dict[str, Any]] | None = None, **asked: Any) -> Inquiry:
    config = {"egresses": EGRESSES, "accounts": ACCOUNTS if accounts is None else accounts}
    return Inquiry(OpsServerConfig.model_validate(config), InfoRequest(url="x", **asked))


def refused(code: Code, egress: str = "us1", account: str | None = None, *countries: str) -> SiteRefused:
    refusal = SiteRefused(code, f"said {code}", egress=egress, account=account)
    refusal.countries = countries
    return refusal


def allowed(course: Inquiry, step: Step) -> list[str]:
    return [one.name for one in course.candidates(step)[0] if one.allowed]


def accounts(course: Inquiry, step: Step) -> list[str]:
    return [one.name for one in course.candidates(step)[1] or []]


def test_cookies_are_not_used_where_nobody_asked_for_them() -> None:
    course = inquiry()

    assert course.first() == Step()
    assert course.candidates(course.first())[1] is None


@pytest.mark.parametrize("code", [Code.AGE, Code.MEMBERS, Code.PRIVATE])
def test_an_account_is_asked_where_signing_in_helps(code: Code) -> None:
    course = inquiry()

    step = course.heard(refused(code))

    assert step == Step(signed_in=True)
    assert accounts(course, step) == ["anna", "ben"]
    assert allowed(course, step) == ["us1", "us2", "de1"]


@pytest.mark.parametrize("code", [Code.REMOVED, Code.COPYRIGHT, Code.DRM, Code.UPCOMING, Code.PAYMENT])
def test_what_is_said_of_the_video_is_believed_at_once(code: Code) -> None:
    course = inquiry()

    assert course.heard(refused(code)) is None
    assert course.conclusion().code is code


def test_two_accounts_are_asked_and_no_third() -> None:
    course = inquiry([*ACCOUNTS[:2], {"name": "carl", "cookies": "d"}])
    course.heard(refused(Code.MEMBERS))

    second = course.heard(refused(Code.MEMBERS, account="anna"))
    third = course.heard(refused(Code.MEMBERS, account="ben"))

    assert second == Step(signed_in=True)
    assert third is None
    assert (course.conclusion().code, course.conclusion().outcome) == (Code.MEMBERS, Outcome.SKIP)


def test_an_account_with_tags_is_for_items_that_have_one_of_them() -> None:
    course = inquiry(tags=["vip"])

    step = course.heard(refused(Code.AGE))

    assert step
    assert accounts(course, step) == ["anna", "ben", "vip"]


def test_where_no_account_is_ready_the_video_is_put_off_and_not_skipped() -> None:
    course = inquiry()
    step = course.heard(refused(Code.AGE))
    assert step

    course.unready(step, NoneReady(90_000))

    said = course.conclusion()
    assert (said.code, said.outcome, said.retry_after) == (Code.AGE, Outcome.DEFER, 90)


def test_without_accounts_the_refusal_stands() -> None:
    course = inquiry([])

    assert course.heard(refused(Code.AGE)) is None
    assert course.conclusion().outcome is Outcome.SKIP


def test_a_bare_unavailable_is_asked_again_elsewhere_without_account_and_then_believed() -> None:
    course = inquiry(account="anna")

    step = course.heard(refused(Code.UNAVAILABLE_UNEXPLAINED, "us1", "anna"))
    assert step == Step()
    assert allowed(course, step) == ["us2", "de1"]
    nobody = course.heard(refused(Code.UNAVAILABLE_UNEXPLAINED, "us2"))

    assert nobody is None
    assert (course.conclusion().code, course.conclusion().outcome) == (Code.REMOVED, Outcome.SKIP)


def test_one_egress_alone_never_makes_a_skip_of_it() -> None:
    course = inquiry(egress="us1")

    assert course.heard(refused(Code.UNAVAILABLE_UNEXPLAINED)) is None
    assert course.conclusion().outcome is Outcome.ROTATE


def test_where_the_second_opinion_has_to_wait_the_answer_says_how_long() -> None:
    course = inquiry()
    step = course.heard(refused(Code.UNAVAILABLE_UNEXPLAINED))
    assert step

    course.unready(step, NoneReady(60_000))

    assert (course.conclusion().outcome, course.conclusion().retry_after) == (Outcome.ROTATE, 60)


@pytest.mark.parametrize("code", [Code.BOT_CHECK, Code.HTTP_429, Code.PROXY, Code.NETWORK])
def test_another_egress_is_asked_as_long_as_it_is_their_fault(code: Code) -> None:
    course = inquiry()

    steps = [course.heard(refused(code, name)) for name in ("us1", "us2")]

    assert steps == [Step(), Step()]
    assert allowed(course, Step()) == ["de1"]


@pytest.mark.parametrize("code", [Code.CLIENT_BROKEN, Code.NO_USABLE_FORMATS, Code.LOW_QUALITY, Code.HTTP_403])
def test_of_all_else_two_opinions_are_enough(code: Code) -> None:
    course = inquiry()

    assert course.heard(refused(code, "us1")) == Step()
    assert course.heard(refused(code, "us2")) is None


def test_a_geo_locked_video_goes_out_through_a_country_where_it_plays() -> None:
    course = inquiry()

    step = course.heard(refused(Code.GEO, "us1", None, "DE", "AT"))

    assert step
    assert allowed(course, step) == ["de1"]


def test_where_no_egress_is_in_its_countries_it_is_a_skip() -> None:
    course = inquiry()

    assert course.heard(refused(Code.GEO, "us1", None, "FR")) is None
    assert course.conclusion().outcome is Outcome.SKIP


def test_where_nobody_says_in_which_countries_each_other_country_is_tried_once() -> None:
    course = inquiry()

    step = course.heard(refused(Code.GEO, "us1"))
    assert step
    assert allowed(course, step) == ["de1"]

    assert course.heard(refused(Code.GEO, "de1")) is None


def test_tags_choose_country_and_egress() -> None:
    german, news = inquiry(tags=["country:DE"]), inquiry(tags=["news", "of no egress"])

    assert allowed(german, german.first()) == ["de1"]
    assert allowed(news, news.first()) == ["de1"]


def test_an_account_whose_session_is_refused_gives_way_to_another() -> None:
    course = inquiry()
    course.heard(refused(Code.AGE))

    step = course.heard(refused(Code.COOKIES_ROTATED, "us1", "anna"))

    assert step
    assert accounts(course, step) == ["ben"]


def test_where_all_egresses_rest_the_item_is_put_off_until_the_first_returns() -> None:
    course = inquiry()

    course.unready(course.first(), NoneReady(30_000))

    said = course.conclusion()
    assert (said.code, said.outcome, said.retry_after) == (Code.OPS_SERVER_UNAVAILABLE, Outcome.DEFER, 30)


@pytest.mark.parametrize(("field", "known"), [("egress", "us1"), ("account", "anna"), ("profile", "no profiles")])
def test_a_name_that_is_not_there_is_told_the_known_ones(field: str, known: str) -> None:
    with pytest.raises(ExtractionRefused, match=f"{field}: 'mars' is unknown; this server has .*{known}"):
        inquiry(None, **{field: "mars"})


# -- whose fault it is -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "account", "effects"),
    [
        (None, "anna", [Effect.OK, Effect.OK]),
        (Code.PRIVATE, None, [Effect.OK]),  # it is the video: the egress works
        (Code.BOT_CHECK, None, [Effect.COOL]),
        (Code.BOT_CHECK, "anna", [Effect.COOL, Effect.COOL]),
        (Code.RATE_LIMITED_SESSION, None, [Effect.COOL]),
        (Code.RATE_LIMITED_SESSION, "anna", [Effect.NONE, Effect.COOL]),
        (Code.COOKIES_ROTATED, "anna", [Effect.NONE, Effect.BAN]),
        (Code.NETWORK, None, [Effect.STRIKE]),
        (Code.CLIENT_BROKEN, None, [Effect.NONE]),
        (Code.UNAVAILABLE_UNEXPLAINED, None, [Effect.NONE]),
        (Code.MEDIA_403, None, [Effect.NONE]),
        (Code.DISK, None, [Effect.NONE]),
    ],
)
def test_an_answer_is_counted_on_those_whose_fault_it_is(
    code: Code | None, account: str | None, effects: list[Effect]
) -> None:
    found = verdicts("us1", account, code, 90.5)

    assert [one.effect for one in found] == effects
    assert [one.cool_ms for one in found] == [90_500] * len(effects)


@pytest.mark.parametrize("code", list(Code))
def test_no_code_that_rotates_or_may_be_the_site_s_shows_that_an_egress_works(code: Code) -> None:
    (found,) = verdicts("us1", None, code, None)

    assert (found.effect is Effect.OK) <= (code.outcome in (Outcome.SKIP, Outcome.DEFER))
