"""What the whole suite shares."""

from __future__ import annotations

from tests import buckets


def pytest_configure() -> None:
    """Start the S3 server before the processes that share it: those of pytest-xdist inherit its address."""
    if buckets.EVERYWHERE:
        buckets.endpoint()
