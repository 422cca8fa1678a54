"""Counters of a node, in the exposition format of Prometheus."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)


class Metrics:
    """One registry a node, so that two nodes in one process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "relay_requests", "Requests by route and status", ["route", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "relay_request_seconds",
            "Seconds to the end of an answer",
            ["route"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._received = Counter("relay_received_bytes", "Body bytes read", registry=self.registry)
        self._sent = Counter("relay_sent_bytes", "Body bytes written", registry=self.registry)
        self._gauges: dict[str, Gauge] = {}
        self._of_route: dict[tuple[str, int], tuple[Counter, Histogram]] = {}  # finding them costs most

    def observe(self, route: str, status: int, seconds: float, received: int, sent: int) -> None:
        """One finished request. `received` and `sent` are body bytes."""
        found = self._of_route.get((route, status))
        if found is None:
            found = self._requests.labels(route, str(status)), self._seconds.labels(route)
            self._of_route[route, status] = found
        requests, spent = found
        requests.inc()
        spent.observe(seconds)
        if received:
            self._received.inc(received)
        if sent:
            self._sent.inc(sent)

    def render(self, gauges: Mapping[str, float]) -> bytes:
        """The exposition; `gauges` are values of the moment by name, without the prefix `relay_`."""
        for name, value in gauges.items():
            if name not in self._gauges:
                self._gauges[name] = Gauge(f"relay_{name}", name.replace("_", " "), registry=self.registry)
            self._gauges[name].set(value)
        return generate_latest(self.registry)
