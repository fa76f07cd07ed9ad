"""Bytes, records and elements: nothing is lost on the way and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.ytdlp_ops.models import MAX_ELEMENT_BYTES, UrlItem
from include.ytdlp_ops.queues.records import (
    bad_input_id,
    bytes_of_id,
    element_of,
    encode,
    ended,
    escape,
    read_record,
    text_of_id,
    unescape,
    wants,
)

URL = "https://www.youtube.com/watch?v=dQw4w9WgXcQ"


@settings(max_examples=50, database=None)
@given(st.binary(max_size=64))
def test_escaped_bytes_come_back(raw: bytes) -> None:
    text = escape(raw)

    assert unescape(text) == raw
    assert text.isascii()
    assert text.isprintable()


@pytest.mark.parametrize("raw", [b"\\", b"\\n", b"\\x41", b"a\nb", "ü€".encode(), bytes(range(256))])
def test_escaping_is_not_fooled_by_backslashes(raw: bytes) -> None:
    assert unescape(escape(raw)) == raw


@settings(max_examples=50, database=None)
@given(st.binary(max_size=32))
def test_an_id_of_any_bytes_comes_back(raw: bytes) -> None:
    assert bytes_of_id(text_of_id(raw)) == raw


@pytest.mark.parametrize(
    "raw", [b"", b"x", b"[1]", b"7", b"null", b"\xff", b'{"a":', b'{"a":NaN}', b"[" * 100_000, b'{"a":' * 50_000]
)
def test_what_is_no_record_is_kept_as_raw(raw: bytes) -> None:
    record = read_record(raw)

    assert record.keys() == {"raw"}
    assert unescape(record["raw"]) == raw


def test_a_record_that_json_has_no_words_for_is_still_written() -> None:
    raw = encode({"speed": float("inf"), "all": [float("nan"), {"x": (1.5, float("-inf"))}], "name": "a\udc80b"})

    assert json.loads(raw) == {"speed": None, "all": [None, {"x": [1.5, None]}], "name": "a?b"}


def test_an_ended_record_has_no_state_and_one_record_before_it() -> None:
    before = {"code": "network", "log_tail": "long", "previous": {"code": "older"}}
    record = {"id": "x", "state": "running", "progress": {}, "heartbeat_at": "…", "previous": before}

    made = ended(record, code="done")

    assert made == {"id": "x", "previous": {"code": "network"}, "code": "done"}


def test_an_element_takes_its_previous_record_along_only_as_far_as_it_fits() -> None:
    small = UrlItem(url=URL, previous={"path": "/a", "log_tail": "…"})
    large = UrlItem(url=URL, previous={"path": "x" * MAX_ELEMENT_BYTES})

    assert json.loads(element_of(small, attempt=2))["previous"] == {"path": "/a"}
    assert len(element_of(large).encode()) < MAX_ELEMENT_BYTES
    assert UrlItem.from_inbox(element_of(large).encode()).previous is None


def test_the_same_bytes_have_the_same_id_and_others_another() -> None:
    assert bad_input_id(b"a") == bad_input_id(b"a") != bad_input_id(b"b")


def test_requests_differ_by_formats_and_profile() -> None:
    one = UrlItem(url=URL)

    assert wants(one) == wants(UrlItem(url=URL, tags=["x"]))
    assert len({wants(one), wants(UrlItem(url=URL, formats="b")), wants(UrlItem(url=URL, profile="b"))}) == 3
