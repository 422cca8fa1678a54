"""What the whole suite shares."""

from __future__ import annotations

import gc

import pytest
from hypothesis import HealthCheck, settings

from tests import buckets, depth, schedule

# How fast examples are made and tried says how busy the machine is, and nothing of what is tested.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
COLLECTED_AFTER = 10_000  # new objects, as in a relay that serves


def pytest_configure() -> None:
    """Start the S3 server before the processes that share it: those of pytest-xdist inherit its address."""
    if buckets.EVERYWHERE:
        buckets.endpoint()
    gc.disable()  # until all is imported and collected


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()  # else each full collection would look at the half million objects of the tests themselves
    gc.set_threshold(COLLECTED_AFTER)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if left_out := depth.thin(items):
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    items.sort(key=lambda item: -schedule.seconds(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> schedule.Scheduling:
    return schedule.Scheduling(config, log)
