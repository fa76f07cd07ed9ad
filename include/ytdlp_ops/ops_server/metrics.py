"""What ``GET /metrics`` says, in Prometheus' format."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from include.ytdlp_ops.ops_server.standing import Standing

_PREFIX = "ytdlp_ops_server_"
_STATES = ("healthy", "cooling", "banned")
_SECONDS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)


class Metrics:
    """One server's own; nothing is global, so that two can live in one process."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"{_PREFIX}{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"{_PREFIX}{name}", text, labels, registry=registry)

        self.requests = counter("requests", "HTTP requests", "path", "status")
        self.answers = counter("answers", "Answers of the site", "egress", "code")
        self.seconds = Histogram(
            f"{_PREFIX}extraction_seconds", "One question through one egress", registry=registry, buckets=_SECONDS
        )
        self._processes = gauge("processes", "Extraction processes that are ready")
        self._config_ok = gauge("config_ok", "0: the file as it is now can't be used")
        self._states = gauge("standing", "1 for the state that it is in", "kind", "name", "state")
        self._success = gauge("success_share", "Videos that came, last hour", "kind", "name")

    def render(self, standings: Iterable[Standing], *, processes: int, config_ok: bool) -> bytes:
        """The page; standings, processes and configuration as they are now."""
        self._processes.set(processes)
        self._config_ok.set(config_ok)
        self._states.clear()
        self._success.clear()
        for standing in standings:
            kind, _, name = standing.subject.partition("/")
            for state in _STATES:
                self._states.labels(kind, name, state).set(state == standing.state)
            if standing.success_share is not None:
                self._success.labels(kind, name).set(standing.success_share)
        return generate_latest(self._registry)
