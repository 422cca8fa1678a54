"""Where a page opens, and where its address is printed."""

from __future__ import annotations

import io

import pytest

from svc.cmd.frame.browser import can_open
from svc.console import Out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "opens"),
    [
        ({"BROWSER": "w3m"}, True),
        ({"BROWSER": "w3m", "SSH_CONNECTION": "1 2 3 4"}, True),
        ({"BROWSER": ""}, False),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "1 2 3 4"}, False),
        ({"DISPLAY": ":0"}, True),
    ],
)
def test_a_page_opens_where_somebody_sees_it(
    environment: dict[str, str], opens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("sys.platform", "linux")
    assert can_open(Out({"TERM": "xterm"}, Terminal(), Terminal()), environment) is opens
    assert not can_open(Out({"TERM": "xterm"}, io.StringIO(), Terminal()), environment)
