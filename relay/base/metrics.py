"""Counters of a node, in the text format of Prometheus.

Requests are counted in plain numbers, which the Prometheus library reads only when the metrics are rendered.
The library's own counters took 10 µs of every request.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from prometheus_client import CollectorRegistry, Gauge, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.utils import floatToGoString

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, float("inf"))


@dataclass(slots=True)
class _Count:
    """A counter, and the time at which it began (`created`, Unix seconds)."""

    value: int = 0
    created: float = field(default_factory=time.time)


@dataclass(slots=True)
class _RouteTimes:
    """Times of the requests to one route. `total`: the sum of their seconds. `counts`: for each of the bounds
    `_BOUNDS`, how many requests took at most this time, but longer than the bound before."""

    total: float = 0.0
    counts: list[int] = field(default_factory=lambda: [0] * len(_BOUNDS))
    created: float = field(default_factory=time.time)


class Metrics:
    """The metrics of one node. Each node has its own registry, so that two nodes in one process do not
    mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._requests: dict[tuple[str, int], _Count] = {}  # by route and status
        self._seconds: dict[str, _RouteTimes] = {}
        self._received, self._sent = _Count(), _Count()
        self._gauges: dict[str, Gauge] = {}

    def observe(self, route: str, status: int, seconds: float, received: int, sent: int) -> None:
        """Count one finished request. `received` and `sent`: bytes of its bodies."""
        count = self._requests.get((route, status))
        if count is None:
            count = self._requests[route, status] = _Count()
            self._seconds.setdefault(route, _RouteTimes())
        count.value += 1
        spent = self._seconds[route]
        spent.total += seconds
        spent.counts[bisect_left(_BOUNDS, seconds)] += 1
        self._received.value += received
        self._sent.value += sent

    def collect(self) -> Iterable[Metric]:
        """The metric families with the values that `observe` counted. The registry of the Prometheus library
        calls this method."""
        requests = CounterMetricFamily(
            "relay_requests", "Requests by route and status", labels=["route", "status"]
        )
        for (route, status), count in self._requests.items():
            requests.add_metric([route, str(status)], count.value, count.created)
        seconds = HistogramMetricFamily(
            "relay_request_seconds", "Seconds to the end of an answer", labels=["route"]
        )
        for route, spent in self._seconds.items():
            counts = zip(map(floatToGoString, _BOUNDS), accumulate(spent.counts), strict=True)
            seconds.add_metric([route], list(counts), spent.total)
            seconds.add_sample("relay_request_seconds_created", {"route": route}, spent.created)
        yield requests
        yield seconds
        for name, words, count in (
            ("relay_received_bytes", "Body bytes read", self._received),
            ("relay_sent_bytes", "Body bytes written", self._sent),
        ):
            yield CounterMetricFamily(name, words, count.value, created=count.created)

    def render(self, gauges: Mapping[str, float]) -> bytes:
        """The metrics as text for Prometheus. `gauges`: further current values by name, without the prefix
        `relay_`."""
        for name, value in gauges.items():
            if name not in self._gauges:
                self._gauges[name] = Gauge(f"relay_{name}", name.replace("_", " "), registry=self.registry)
            self._gauges[name].set(value)
        return generate_latest(self.registry)
