"""Whatever is sent to the described paths, the server does not fail."""

from __future__ import annotations

from typing import Any, cast

import schemathesis
from hypothesis import HealthCheck, given, settings

from tests.contract.conftest import Target

_QUIET = settings(
    max_examples=20, deadline=None, database=None, suppress_health_check=list(HealthCheck), derandomize=True
)


def test_nothing_that_is_sent_makes_it_fail(target: Target) -> None:
    described = schemathesis.openapi.from_url(f"{target.url}/openapi.json")
    headers = {"Authorization": f"Bearer {target.token}"}
    statuses = dict[str, set[int]]()

    for found in described.get_all_operations():
        operation: Any = cast("Any", found).ok()

        @_QUIET
        @given(case=operation.as_strategy())
        def send(case: Any, seen: set[int]) -> None:
            response = case.call(headers=headers, timeout=120)
            seen.add(response.status_code)
            assert response.status_code < 500, response.text

        send(seen=statuses.setdefault(operation.label, set()))

    assert {"POST /v1/info", "POST /v1/expand", "GET /v1/accounts"} <= statuses.keys()
    assert 401 not in set().union(*statuses.values())
