"""The lines of the log: one JSON object each, also those of the standard library's logging."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from localstore.core.errors import Unavailable
from relay.base import logs


@pytest.fixture
def configured() -> Iterator[None]:
    logs.configure("info")
    yield
    logs.configure("critical")


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize("error", [Unavailable("the database cannot be reached"), RuntimeError("a\n{fault")])
def test_each_record_is_one_object(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise error from OSError("refused")
    except type(error):
        logging.getLogger("relay.events.jobs").exception("jobs of %s", "x\n{forged")
        logs.logger().warning("check failed", exc_info=True)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == ["jobs of x\n{forged", "check failed"]
    for line in lines:
        expected = isinstance(error, Unavailable)
        assert line.get("error") == (str(error) if expected else None)
        assert ("Traceback" in line.get("exception", "")) is not expected
