"""The counters read like those of the library that writes them down."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from relay.base.metrics import _BOUNDS, Metrics

REQUEST = st.tuples(
    st.sampled_from(["repo.get_repo", "node.health", 'od"d\n']),
    st.sampled_from([200, 404, 499]),
    st.one_of(st.sampled_from(_BOUNDS[:-1]), st.floats(0, 100)),
    st.integers(0, 1 << 40),
    st.integers(0, 1 << 40),
)


def of_the_library(requests) -> bytes:
    registry = CollectorRegistry()
    count = Counter("relay_requests", "Requests by route and status", ["route", "status"], registry=registry)
    spent = Histogram(
        "relay_request_seconds",
        "Seconds to the end of an answer",
        ["route"],
        buckets=_BOUNDS,
        registry=registry,
    )
    received = Counter("relay_received_bytes", "Body bytes read", registry=registry)
    sent = Counter("relay_sent_bytes", "Body bytes written", registry=registry)
    for route, status, seconds, body, answer in requests:
        count.labels(route, str(status)).inc()
        spent.labels(route).observe(seconds)
        received.inc(body)
        sent.inc(answer)
    return generate_latest(registry)


def timeless(exposition: bytes) -> bytes:
    """Without the moments at which the counters were made."""
    return re.sub(rb"(?m)^(\w+_created(?:\{.*\})?) .*$", rb"\1", exposition)


@given(st.lists(REQUEST, max_size=20))
def test_the_exposition_is_that_of_the_library(requests):
    metrics = Metrics()
    for request in requests:
        metrics.observe(*request)
    assert timeless(metrics.render({})) == timeless(of_the_library(requests))


def test_values_of_the_moment_stand_beside_them():
    metrics = Metrics()
    metrics.render({"objects": 1})
    assert b"\nrelay_objects 2.0\n" in metrics.render({"objects": 2})
