"""Inbox elements in, items out; and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.models import MAX_ELEMENT_BYTES, RECORD_FIELDS, FormatItem, UrlItem

URL = "https://www.youtube.com/watch?v=dQw4w9WgXcQ"
FORMAT = {
    "url": URL,
    "extractor": "youtube",
    "video_id": "dQw4w9WgXcQ",
    "format_id": "299",
    "info_json_path": "file:///infos/x.json",
}


def read(fields: Any) -> UrlItem:
    return UrlItem.from_inbox(json.dumps(fields).encode())


@pytest.mark.parametrize(
    "element", [b"dQw4w9WgXcQ", URL.encode(), b" https://youtu.be/dQw4w9WgXcQ \r\n", b'"dQw4w9WgXcQ"']
)
def test_a_bare_id_or_url_is_an_item(element: bytes) -> None:
    item = UrlItem.from_inbox(element)

    assert (item.item_id, item.attempt, item.tags, item.force) == (URL, 1, [], False)


def test_every_documented_key_is_read() -> None:
    fields = {
        "url": URL, "tags": ["a"], "formats": "bv+ba", "profile": "music", "priority": 3, "attempt": 2,
        "force": True, "submitted_at": "2026-01-01T00:00:00Z", "submitted_by": "me", "source": "list.txt",
    }  # fmt: skip

    item = read(fields)

    assert item.to_conf() == {**item.to_conf(), **fields, "id": URL}


def test_unknown_keys_are_carried_through() -> None:
    item = read({"url": URL, "ticket": {"n": [1, None]}, "naïve": "ü"})

    again = UrlItem.from_inbox(item.to_inbox().encode())

    assert again == item
    assert again.to_conf()["ticket"] == {"n": [1, None]}
    assert again.to_conf()["naïve"] == "ü"


@pytest.mark.parametrize(
    ("element", "complaint"),
    [
        (b"", "empty"),
        (b" \t\n", "empty"),
        (b"\x00", "control characters"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"x" * (MAX_ELEMENT_BYTES + 1), "at most 65536"),
        (b'{"url":', "is none"),
        (b"{'url': 'x'}", "is none"),
        (b'{"url":"dQw4w9WgXcQ"} trailing', "is none"),
        (b"[]", "JSON list"),
        (b"[1]", "JSON list"),
        (b"7", "neither"),
        (b"null", "neither"),
        (b"{}", "url"),
        (b'{"url":null}', "url"),
        (b'{"url":5}', "url"),
        (b'{"url":["dQw4w9WgXcQ"]}', "url"),
        (b'{"url":""}', "empty"),
        (b'{"url":"dQw4w9WgXcQ","tags":"a"}', "tags"),
        (b'{"url":"dQw4w9WgXcQ","tags":[1]}', "tags"),
        (b'{"url":"dQw4w9WgXcQ","attempt":0}', "attempt"),
        (b'{"url":"dQw4w9WgXcQ","attempt":"x"}', "attempt"),
        (b'{"url":"dQw4w9WgXcQ","force":{}}', "force"),
        (b'{"url":"dQw4w9WgXcQ","priority":1.5}', "priority"),
        (b'{"url":"dQw4w9WgXcQ","previous":"x"}', "previous"),
        (b'{"url":"dQw4w9WgXcQ","not_hosts":{"a":"x"}}', "not_hosts"),
        (b'{"url":"dQw4w9WgXcQ","x":NaN}', "is none"),
        (b'{"url":"dQw4w9WgXcQ","x":-Infinity}', "is none"),
        (b'{"url":"dQw4w9WgXcQ","x":1e999}', "is none"),
        (b'{"url":"dQw4w9WgXcQ","x":' + b"9" * 5000 + b"}", "is none"),
        (b'{"url":"dQw4w9WgXcQ","x":"\\ud800"}', "is none"),
        (b'{"\\udfff":1,"url":"dQw4w9WgXcQ"}', "is none"),
        (b'{"url":"https://example.org/\\u0000"}', "control characters"),
        (b'{"url":"dQw4w9WgXcQ","x":' + b"[" * 40 + b"]" * 40 + b"}", "deeper than 32"),
        (b'{"url":"dQw4w9WgXcQ","x":' + b"[" * 30_000 + b"]" * 30_000 + b"}", "deeper than 32"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "deeper than 32"),
        (b"[" * 60_000, "deeper than 32|is none"),
    ],
)
def test_a_bad_element_is_refused_with_the_reason(element: bytes, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        UrlItem.from_inbox(element)


@pytest.mark.parametrize("field", sorted(RECORD_FIELDS))
def test_a_producer_can_set_no_field_of_a_record(field: str) -> None:
    item = read({"url": URL, field: "forged"})

    assert item.to_conf().get(field) in (None, URL)


@pytest.mark.parametrize("key", ["model_config", "model_fields", "item_id", "to_conf", "__class__", "__dict__"])
def test_a_key_named_like_an_attribute_changes_no_behaviour(key: str) -> None:
    item = read({"url": URL, key: "forged"})

    assert item.item_id == URL
    assert UrlItem.from_inbox(item.to_inbox().encode()).item_id == URL


def test_who_met_a_refusal_stays_behind_when_a_url_goes_back() -> None:
    item = UrlItem.from_record({"url": URL, "egress": "proxy-1", "account": "a", "code": "bot_check"})

    assert item.to_conf().keys() & {"egress", "account", "code"} == set()


def test_a_format_job_keeps_its_egress() -> None:
    item = FormatItem.from_record({**FORMAT, "egress": "proxy-1", "account": "a", "code": "network"})

    assert (item.egress, item.account, item.item_id) == ("proxy-1", "a", "youtube:dQw4w9WgXcQ:299")
    assert "code" not in item.to_conf()


@pytest.mark.parametrize("field", ["extractor", "video_id", "format_id", "info_json_path"])
def test_a_format_job_without_what_it_needs_is_refused_by_name(field: str) -> None:
    fields = {name: value for name, value in FORMAT.items() if name != field}

    with pytest.raises(BadInput, match=field):
        FormatItem.from_record(fields)


def test_a_nul_inside_a_string_is_carried_through() -> None:
    item = read({"url": URL, "note": "a\x00b"})

    assert UrlItem.from_inbox(item.to_inbox().encode()).to_conf()["note"] == "a\x00b"
