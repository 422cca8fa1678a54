"""Which servers are called through the proxy of the environment."""

from __future__ import annotations

import os

import pytest

from svc.http.proxy import proxy_for

PROXY = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def proxied(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("http_proxy", PROXY)


@pytest.mark.parametrize(
    ("exceptions", "server"),
    [
        ("node.test", "http://node.test"),
        ("node.test:18744", "http://node.test:18744"),
        ("node.test:80", "http://node.test"),
        ("*.test", "http://node.test"),
        (".test", "http://node.test"),
        ("TEST", "http://Node.test"),
        ("other, node.test", "http://node.test"),
        ("10.0.0.0/8", "http://10.1.2.3"),
        ("10.1.2.3/8", "http://10.200.0.1:8080"),
        ("10.1.2.3:8080", "http://10.1.2.3:8080"),
        ("fd00::/8", "http://[fd00::1]:8080"),
        ("[fd00::1]:8080", "http://[fd00::1]:8080"),
        ("fd00:0::1", "http://[fd00::1]"),
        ("*", "http://node.test"),
    ],
)
def test_what_no_proxy_names_is_called_directly(
    exceptions: str, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", exceptions)
    assert proxy_for(server) is None


@pytest.mark.parametrize(
    ("exceptions", "server"),
    [
        ("", "http://node.test"),
        ("node.test:18744", "http://node.test:18745"),
        ("de.test", "http://node.test"),
        ("10.0.0.0/8", "http://11.1.2.3"),
        ("10.0.0.0/8", "http://node10.test"),
        ("10.0.0.0/99,a/b", "http://10.1.2.3"),
        ("0.0.1", "http://10.0.0.1"),
        ("fd00::1", "http://[fd00::2]"),
        (":80", "http://node.test"),
    ],
)
def test_others_are_called_through_it(exceptions: str, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", exceptions)
    found = proxy_for(server)
    assert found is not None and found.url == PROXY
